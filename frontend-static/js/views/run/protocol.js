/**
 * Markdown protocol of a benchmark: its settings, then every sample with all its texts, as one file. It has the form of the
 * server's export, which doesn't have archives, open runs and canceled ones.
 */

import { announce, toast } from '../../core/states.js'
import { setText } from '../../core/dom.js'
import { integer } from '../../core/format.js'
import { promptInWords } from '../../core/run-facts.js'
import { code, fenced, sentence } from '../../text/markdown.js'
import { save } from './download.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../../core/source.js').Sample} Sample */

/** Samples of a page. Pages can end earlier, as a response has at most 4 MiB. */
const PAGE = 200
/** Text for what isn't known, or what the run doesn't have. */
const NONE = '-'
/** Rows of the head that are left out if the run has nothing to say there. */
const OPTIONAL = new Set(['Endpoint', 'Judge', 'User model', 'Options'])
const DEMO = 'DEMO DATA: these items came with the program. The scores say nothing about the real benchmark.'
const HIDDEN = 'Prompts and answers are left out: the dataset is gated or private, and only the run\'s owner and the operator may read them.'
/** Fields about the worker's attempts and connections, which say nothing about the sample. */
const INTERNALS = new Set(['worker_attempt', 'worker_attempts', 'response_attempts', 'lost_attempts', 'waits', 'request_id', 'choices_count'])

/**
 * Loads all samples and saves the file. The button shows how far it is.
 *
 * @param {{source: import('../../core/source.js').RunSource, run: Run, b: RunBenchmark, button: HTMLButtonElement, signal: AbortSignal}} options
 */
export async function saveProtocol({ source, run, b, button, signal }) {
  const label = button.textContent ?? ''
  button.disabled = true
  announce('Making the protocol.')
  try {
    const parts = await protocolOf({ source, run, b, signal, tell: (text) => setText(button, text) })
    save(new Blob(parts, { type: 'text/markdown' }), `benchmark_protocol_${run.id}_${b.benchmark_name}.md`)
    announce('The protocol was saved.')
  } catch (error) {
    if (!signal.aborted) toast(`The protocol failed: ${/** @type {Error} */ (error).message}`, { kind: 'bad' })
  } finally {
    button.disabled = false
    setText(button, label)
  }
}

/**
 * Loads all samples, and returns the parts of the file.
 *
 * @param {{source: import('../../core/source.js').RunSource, run: Run, b: RunBenchmark, signal?: AbortSignal, tell?: (text: string) => void}} options
 * @returns {Promise<BlobPart[]>}
 */
export async function protocolOf({ source, run, b, signal, tell }) {
  // Without its name, the file still has everything else.
  const name = await source.nameOf(b.benchmark_name, signal).catch((error) => { if (signal?.aborted) throw error; return null })
  /** @type {BlobPart[]} */
  const parts = []
  let done = 0
  let cursor
  let offset = 0
  for (;;) {
    const { items } = await source.items({ benchmark: b.benchmark_name, limit: PAGE, ...(cursor ? { cursor } : { offset }) }, signal)
    if (done === 0) parts.push(head({ run, b, name, isHidden: items.items.some(({ hidden }) => hidden) }))
    parts.push(new Blob(items.items.map((item) => sampleText(item, (b.samples_per_item ?? 1) > 1))))
    done += items.items.length
    offset = done
    tell?.(`${integer(done)} of ${integer(items.total)} samples`)
    cursor = items.next_cursor
    if (!cursor || items.items.length === 0) return parts
  }
}

/** @param {string | null | undefined} text */
function maybe(text) {
  return text ? code(text) : NONE
}

/** Formats a share or a score in percent. @param {number | null | undefined} value */
function share(value) {
  return value === null || value === undefined ? NONE : `${(value * 100).toFixed(2)}%`
}

/** @param {number | null} value */
function count(value) {
  return value === null ? NONE : String(value)
}

/**
 * @param {object} options
 * @param {Run} options.run
 * @param {RunBenchmark} options.b
 * @param {string | null} options.name the benchmark's name for readers, if it is known
 * @param {boolean} options.isHidden true if texts are left out
 */
function head({ run, b, name, isHidden }) {
  const title = name ? `${sentence(name)} (${code(b.benchmark_name)})` : code(b.benchmark_name)
  const rows = [
    ['Run', code(run.id)], ['Model', code(run.model)], ['Provider', code(run.provider)], ['Endpoint', maybe(run.endpoint_host)],
    ['Benchmark', code(b.benchmark_name)], ['Protocol', maybe(b.protocol_name)],
    ['Dataset', b.dataset ? `${code(b.dataset.id)} at ${code(b.dataset.revision)}` : NONE], ['Demo data', b.demo ? 'yes' : 'no'],
    ['Prompt', prompt(b)], ['Judge', judge(b.judge?.model)], ['User model', maybe(run.user_model?.model)],
    ['Changed settings', b.changed_settings?.length ? sentence(b.changed_settings.join('; ')) : 'none'],
    ['Options', Object.keys(b.options ?? {}).length > 0 ? code(JSON.stringify(b.options)) : NONE],
    ['Subset', subset(run)], ['Seed', maybe(run.subset_seed)], ['Items', `${b.sampled_items} of ${b.total_items}`], ['Samples', samples(b)],
    ['Status', b.status], ['Score', share(b.score)],
    ['95% interval', b.interval ? `${share(b.interval.low)} to ${share(b.interval.high)} (${b.interval.method})` : NONE],
    ['Coverage', share(b.coverage)], ['Outcomes', outcomes(b)], ['Run completed', run.completed_at ? `${run.completed_at.slice(0, 19)}Z` : NONE],
    ['Software', run.software ? `bench-runner ${sentence(run.software)}` : NONE],
  ].filter(([label, value]) => value !== NONE || !OPTIONAL.has(label))
  return [
    `# Benchmark protocol: ${title}\n\n`, ...rows.map(([label, value]) => `- ${label}: ${value}\n`),
    b.demo ? `\n${DEMO}\n` : '', isHidden ? `\n${HIDDEN}\n` : '', b.error_message && !isHidden ? `\nError: ${sentence(b.error_message)}\n` : '',
  ].join('')
}

/** @param {RunBenchmark} b */
function prompt({ prompt_source: source, prompt_digest: digest }) {
  if (source === null || source === undefined) return NONE
  if (!digest) return sentence(source)
  // Words without a digest say that there is no text around the item.
  return promptInWords({ source, digest }).digest ? `${sentence(source)} (${code(digest)})` : 'the item\'s text alone'
}

/** @param {string | undefined} model */
function judge(model) {
  if (!model) return NONE
  return model === 'oracle' ? `${code(model)} (text comparison with the gold answer, no model)` : code(model)
}

/** @param {Run} run */
function subset({ items, subset_count: number, subset_pct: percent }) {
  if (items?.length) return `${items.length} named items`
  return number ? `${number} items` : `${percent}%`
}

/** @param {RunBenchmark} b */
function samples({ graded_samples: graded, planned_samples: planned, samples_per_item: perItem }) {
  return `${graded} graded of ${planned}${(perItem ?? 1) > 1 ? `, ${perItem} of each item` : ''}`
}

/** @param {RunBenchmark} b */
function outcomes(b) {
  return Object.entries(b.outcomes ?? {}).filter(([, n]) => n > 0).map(([outcome, n]) => `${n} ${outcome}`).join(', ') || NONE
}

/**
 * @param {Sample} item
 * @param {boolean} hasSeveral true if items have several samples
 */
function sampleText(item, hasSeveral) {
  const outcome = item.outcome ?? 'not ended'
  const facts = [
    `row ${code(item.item_id)}`, `hash ${maybe(item.item_hash)}`, `outcome ${outcome}`, `correct ${item.is_correct === null ? NONE : item.is_correct ? 'yes' : 'no'}`,
    `score ${share(item.score)}`, `time ${item.latency_ms === null ? NONE : `${item.latency_ms} ms`}`,
    `tokens ${count(item.input_tokens)} in, ${count(item.output_tokens)} out`, ...(item.group ? [`group ${code(item.group)}`] : []),
  ]
  const name = code(item.source_id || `#${item.item_id}`)
  return [
    `\n## ${item.position + 1}. Item ${name}${hasSeveral ? `, sample ${item.sample + 1}` : ''} – ${outcome}\n\n${facts.join(' · ')}\n`,
    item.error ? `\nError: ${sentence(item.error)}\n` : '', item.reason && item.reason !== item.error ? `\nReason: ${sentence(item.reason)}\n` : '',
    item.cut?.length ? `\nToo long for this file, and shortened: ${item.cut.map(code).join(', ')}\n` : '',
    ...(item.steps ?? []).flatMap((step) => [fenced(`Step ${step.name}: prompt`, step.prompt), fenced(`Step ${step.name}: reasoning`, step.reasoning), fenced(`Step ${step.name}: response`, step.response)]),
    fenced('Prompt', item.prompt), fenced('Reasoning', item.reasoning), fenced('Response', item.response), fenced('Extracted', item.extracted), fenced('Expected', item.expected),
    fenced('Executed code', item.test_code), fenced('Judge prompt', item.judge_prompt), fenced('Judge output', withoutInternals(item.judge_output)),
    fenced('Grader', item.detail), fenced('Metadata', withoutInternals(item.item_metadata)),
  ].join('')
}

/**
 * Returns the fields that are about the sample.
 *
 * @param {Record<string, unknown> | null | undefined} fields
 */
function withoutInternals(fields) {
  return fields ? Object.fromEntries(Object.entries(fields).filter(([name]) => !INTERNALS.has(name))) : null
}
