/** Markdown protocol of a benchmark: every sample with all its texts, as one file. */

import { announce, toast } from '../../core/states.js'
import { setText } from '../../core/dom.js'
import { dateTime, integer, none, number, timeZone } from '../../core/format.js'
import { benchmarkOfRun, modelLabel, modelOf, promptOfRun } from '../../core/run-facts.js'
import { save } from './download.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../../core/source.js').Sample} Sample */

/** Samples of a page. Pages can end earlier, as a response has at most 4 MiB. */
const PAGE = 200

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
    /** @type {BlobPart[]} */
    const parts = [head(run, b)]
    let done = 0
    let cursor
    let offset = 0
    for (;;) {
      const { items } = await source.items({ benchmark: b.benchmark_name, limit: PAGE, ...(cursor ? { cursor } : { offset }) }, signal)
      parts.push(new Blob(items.items.map(sampleText)))
      done += items.items.length
      offset = done
      setText(button, `${integer(done)} of ${integer(items.total)} samples`)
      cursor = items.next_cursor
      if (!cursor || items.items.length === 0) break
    }
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
 * @param {Run} run
 * @param {RunBenchmark} b
 */
function head(run, b) {
  const rows = [
    ['Run', run.id], [modelLabel(run.model, [b.benchmark_name]), modelOf(run)], ['Provider', run.provider], ['Benchmark', benchmarkOfRun(run, b.benchmark_name)], ['Protocol', b.protocol ?? none],
    ['Dataset', b.dataset ? `${b.dataset.id} at ${b.dataset.revision}` : none], ['Demo data', b.demo ? 'yes' : 'no'], ['Prompt', promptOfRun(b, run).text || none],
    ['Changed settings', (b.changed_settings ?? []).join('; ') || 'none'],
    ['Subset', run.subset_count ? `${run.subset_count} items` : `${run.subset_pct} %`], ['Seed', run.subset_seed ?? none], ['Items', `${b.sampled_items} of ${b.total_items}`],
    ['Status', b.status], ['Score', number(b.score)], ['95% interval', b.interval ? `${number(b.interval.low)} to ${number(b.interval.high)} (${b.interval.method})` : none],
    ['Coverage', number(b.coverage)], ['Made', `${dateTime(new Date())} (${timeZone()})`],
  ]
  return `# Benchmark protocol: ${b.benchmark_name}\n\n${rows.map(([name, value]) => `- ${name}: ${value}`).join('\n')}\n`
}

/** @param {Sample} item */
function sampleText(item) {
  const facts = [
    `hash ${item.item_hash ?? none}`, `outcome ${item.outcome ?? 'not ended'}`, `correct ${item.is_correct === null ? none : item.is_correct ? 'yes' : 'no'}`,
    `score ${number(item.score)}`, `time ${item.latency_ms === null ? none : `${item.latency_ms} ms`}`, `tokens ${integer(item.input_tokens)} in, ${integer(item.output_tokens)} out`,
  ]
  const title = `\n## ${item.position + 1}. Item ${code(item.source_id ?? `#${item.item_id}`)}${item.sample ? `, sample ${item.sample + 1}` : ''}\n\n${facts.join(' · ')}\n`
  const steps = (item.steps ?? []).flatMap((step) => [fenced(`Step ${step.name}: prompt`, step.prompt), fenced(`Step ${step.name}: reasoning`, step.reasoning), fenced(`Step ${step.name}: response`, step.response)])
  return [
    title, item.error ? `\nError: ${item.error}\n` : '', item.reason ? `\nReason: ${item.reason}\n` : '',
    fenced('Prompt', item.prompt), fenced('Reasoning', item.reasoning), fenced('Response', item.response), fenced('Extracted', item.extracted), fenced('Expected', item.expected),
    fenced('System prompt', item.item_metadata?.system_prompt), ...steps, fenced('Executed code', item.test_code), fenced('Judge prompt', item.judge_prompt),
    fenced('Judge output', item.judge_output), fenced('Grader', item.detail), fenced('Metadata', item.item_metadata),
  ].join('')
}

/**
 * Writes a name as a code span on one line.
 *
 * @param {string} text
 */
function code(text) {
  const line = text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ').trim()
  const fence = '`'.repeat(Math.max(0, ...(line.match(/`+/g) ?? []).map((run) => run.length)) + 1)
  return line === '' || line.startsWith('`') || line.endsWith('`') ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`
}

/**
 * Writes a text in a fence that is longer than any in it.
 *
 * @param {string} title
 * @param {unknown} value
 */
function fenced(title, value) {
  if (value === null || value === undefined || value === '') return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `\n**${title}**\n\n${fence}\n${text}\n${fence}\n`
}
