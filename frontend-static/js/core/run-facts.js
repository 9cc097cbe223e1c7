/** What views say about a run in several places, always in the same words. */

import { hasConversations, hasEpisodes, leveled, needsModel, withAgent, withUser } from './agents.js'
import { h } from './dom.js'
import { integer, none, number, percent, plural } from './format.js'
import { outcomeOf } from './outcomes.js'

/**
 * A run of the server or of an archive. Archives lack what is optional here.
 *
 * @typedef {Omit<Api.RunView, 'benchmarks' | 'cost' | 'coverage_min' | 'spent' | 'visibility' | 'is_mine'> &
 *   {benchmarks: RunBenchmark[], cost: Cost | null, coverage_min?: number, spent?: Api.SpentView, visibility?: string, is_mine?: boolean}} Run
 */
/**
 * @typedef {Omit<Api.RunBenchmarkView, 'cost' | 'coverage_min' | 'judge_cost' | 'user_cost'> &
 *   {cost: Cost | null, coverage_min?: number, judge_cost: Cost | null, user_cost: Cost | null}} RunBenchmark
 */
/** @typedef {{total_usd: number, input_usd?: number, output_usd?: number}} Cost */

/**
 * True for a benchmark of a run whose samples are episodes of an agent.
 *
 * @param {RunBenchmark} b
 */
export function hasAgent(b) {
  return hasEpisodes(b.benchmark_name) || hasConversations(b.benchmark_name) || Boolean(b.options?.agent)
}

/**
 * Returns the agent of a run; '' for runs without one, and until it is known.
 *
 * @param {Run} run
 */
export function agentOf(run) {
  const b = run.benchmarks.find((one) => hasAgent(one) && !hasConversations(one.benchmark_name))
  // Agents that ask no model are the run's model.
  return b ? b.options?.agent ?? (needsModel(run.model) ? '' : run.model) : ''
}

/**
 * Names a benchmark of a run, with the agent if it asks a model: `terminal_tasks with bash`. Other agents stand in the place of the model.
 *
 * @param {Run} run
 * @param {string} benchmark
 */
export function benchmarkOfRun(run, benchmark) {
  const b = run.benchmarks.find(({ benchmark_name: name }) => name === benchmark)
  return b && hasAgent(b) ? withAgent(benchmark, agentOf(run)) : benchmark
}

/** @typedef {{reasoning_effort?: string | null, thinking_budget?: number | null}} Thinking settings of a run, or of a schedule */

/**
 * Names the model of a run or of a schedule, with its thinking level if one was ordered, and with the model that simulates users:
 * two levels of a model are two results, and so are two user models.
 *
 * @param {{model: string, generation?: Thinking | null, user_model?: {model: string} | null} & Thinking} order
 */
export function modelOf(order) {
  const { reasoning_effort: effort, thinking_budget: budget } = order.generation ?? order
  return withUser(leveled(order.model, budget ? `${budget} tokens` : effort), order.user_model?.model)
}

/** Digest of a prompt without any text around the item. */
const NO_TEXT = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/**
 * Says what stands around an item in a prompt: `official`, `own wording`, or that nothing does.
 *
 * @param {{source: string | null, digest: string | null}} prompt
 * @returns {{text: string, digest: string}} the digest is '' if it is unknown or of no text; the text is '' if nothing is known
 */
export function promptInWords({ source, digest }) {
  if (digest === NO_TEXT) return { text: 'the item’s text alone', digest: '' }
  return source ? { text: source === 'own' ? 'own wording' : source, digest: digest ?? '' } : { text: '', digest: '' }
}

/**
 * Says the same of a benchmark of a run, whose agent may ask no model.
 *
 * @param {RunBenchmark} b
 * @param {Run} run
 */
export function promptOfRun(b, run) {
  const agent = hasEpisodes(b.benchmark_name) ? agentOf(run) : ''
  if (agent && !needsModel(agent)) return { text: 'none: the agent asks no model', digest: '' }
  return promptInWords({ source: b.prompt_source, digest: b.prompt_digest })
}

/**
 * Says what the field `model` of a run or a schedule is: an agent that asks no model, or a model.
 *
 * @param {string} model
 * @param {string[]} benchmarks
 */
export function modelLabel(model, benchmarks) {
  return !needsModel(model) && benchmarks.length > 0 && benchmarks.every(hasEpisodes) ? 'Agent' : 'Model'
}

/** @param {{status: string}} run */
export function isOpen(run) {
  return run.status === 'queued' || run.status === 'running'
}

/**
 * Returns what the caller may do with a run. Servers that don't say so get it from the status.
 *
 * @param {Run} run
 */
export function canOf(run) {
  if (run.can) return run.can
  const over = !isOpen(run)
  const unfinished = run.status === 'failed' || run.status === 'canceled'
  return {
    cancel: !over, resume: run.interrupted, requeue: unfinished, requeue_errors: over && countOf(run, 'infrastructure-error') > 0,
    rejudge: over && run.benchmarks.some((b) => b.judge), delete: over, edit: true, export: over,
    needs_key: false, needs_judge_key: false, needs_user_key: false,
  }
}

/** Codes of errors that come again however often a sample is repeated: their cause is the item or the order. */
const PERMANENT = new Set(['invalid_item', 'task_refused', 'no_stored_response', 'item_not_found', 'dataset_rows_missing'])

/**
 * Says what to change in a run that is over, if all samples without a grade would end the same way again; '' for other runs.
 *
 * @param {Run} run
 */
export function changeAdvice(run) {
  if (isOpen(run) || run.status === 'canceled' || run.benchmarks.some(mayChange)) return ''
  const codes = run.benchmarks.flatMap((b) => [b.error_code, ...(b.error_causes ?? []).map(({ code }) => code)])
  if (codes.includes('task_refused')) return 'Repeating the samples would change nothing. Change the task as the error says, upload it again, and order a new run.'
  if (codes.includes('no_stored_response')) return 'Repeating the samples would change nothing, since the run keeps the responses that it was ordered with. Order a new run with a file that has all of them.'
  return codes.some((code) => PERMANENT.has(code ?? '')) ? 'Repeating the samples would change nothing: the cause is in the items or in the order.' : ''
}

/** @param {RunBenchmark} b */
function mayChange(b) {
  if (b.planned_samples === 0) return b.status !== 'succeeded' && !PERMANENT.has(b.error_code ?? '')
  const stay = (b.error_causes ?? []).reduce((sum, { code, count }) => sum + (PERMANENT.has(code ?? '') ? count : 0), 0)
  return b.completed_samples < b.planned_samples || b.completed_samples - b.graded_samples > stay
}

/**
 * Number of samples with an outcome, in all benchmarks.
 *
 * @param {Run} run
 * @param {string} outcome
 */
export function countOf(run, outcome) {
  return run.benchmarks.reduce((sum, b) => sum + (b.outcomes?.[outcome] ?? 0), 0)
}

/**
 * Returns a run's score as it may be shown: the overall score, with the interval if it is that of one benchmark.
 *
 * @param {Run} run
 * @returns {{score: number | null, interval: Api.IntervalView | null, label: string, scale: [number, number]}}
 */
export function scoreOf(run) {
  const [only] = run.benchmarks
  const isOne = run.benchmarks.length === 1
  return {
    score: run.overall_score, interval: isOne ? only.interval : null, label: run.overall_score_label ?? '',
    scale: scaleOf(isOne ? only.benchmark_name : ''),
  }
}

/**
 * Lowest and highest possible score of a benchmark.
 *
 * @param {string} benchmark
 * @returns {[number, number]}
 */
export function scaleOf(benchmark) {
  return benchmark === 'aa_omniscience' ? [-1, 1] : [0, 1]
}

/**
 * Lists what a reader has to know before using a benchmark's score: short text and explanation.
 *
 * @param {RunBenchmark} b
 * @returns {{text: string, title: string}[]}
 */
export function cautionsOf(b) {
  const list = []
  if (b.demo) list.push({ text: 'DEMO', title: 'Items bundled with the program. The score says nothing about the real benchmark.' })
  if (b.prompt_source === 'own') list.push({ text: 'prompt: own', title: 'The authors\' prompt text was not available; our own wording was used. Scores aren\'t comparable with published ones.' })
  if (b.judge?.prompt_source === 'own') list.push({ text: 'judge prompt: own', title: 'The authors\' prompt for the judge was not available; our own wording was used.' })
  if (b.dataset?.source === 'local') list.push({ text: 'local dataset', title: `Items come from a file, not from the benchmark\'s published dataset: ${b.dataset.id}.` })
  if (b.coverage !== null && b.coverage !== undefined && b.coverage < 1 && !isBenchmarkOpen(b)) {
    list.push({ text: `coverage ${floorPercent(b.coverage)}`, title: `${integer(b.graded_samples)} of ${integer(b.planned_samples)} samples were graded; the others are in no score.` })
  }
  for (const [name, n] of Object.entries(b.outcomes ?? {})) {
    if (n > 0 && !outcomeOf(name).graded) list.push({ text: countText(name, n), title: outcomeOf(name).meaning })
  }
  for (const setting of b.changed_settings ?? []) list.push({ text: setting, title: 'Differs from the benchmark\'s own settings, so the score may too.' })
  if (b.dataset?.note) list.push({ text: 'demo data used', title: b.dataset.note })
  return list
}

/**
 * Lists the cautions of a whole run, each once.
 *
 * @param {Run} run
 * @returns {{text: string, title: string}[]}
 */
export function runCautionsOf(run) {
  /** @type {Map<string, {text: string, title: string}>} */
  const all = new Map()
  if (run.demo) all.set('DEMO', { text: 'DEMO', title: 'Items bundled with the program. The score says nothing about the real benchmark.' })
  if (run.rejudges) all.set('judging', { text: `judging ${run.rejudges.version}`, title: 'The answers of an earlier run were judged again.' })
  for (const b of run.benchmarks) {
    for (const caution of cautionsOf(b)) {
      const isCount = caution.text.startsWith('coverage') || /^[\d.,]+ /.test(caution.text)
      if (!isCount) all.set(caution.text, caution)
    }
  }
  if (!isOpen(run) && run.coverage !== null && run.coverage < 1) {
    all.set('coverage', { text: `coverage ${floorPercent(run.coverage)}`, title: 'Graded / planned samples of all benchmarks.' })
  }
  const errors = countOf(run, 'infrastructure-error')
  if (errors > 0) all.set('errors', { text: countText('infrastructure-error', errors), title: outcomeOf('infrastructure-error').meaning })
  return [...all.values()]
}

/**
 * Makes the list of cautions.
 *
 * @param {{text: string, title: string}[]} cautions
 * @param {number} [max] further ones are counted only
 */
export function cautionList(cautions, max = Infinity) {
  if (cautions.length === 0) return null
  const shown = cautions.slice(0, max)
  const rest = cautions.slice(max)
  return h('ul', { class: 'cautions', 'aria-label': 'What to know about this score' },
    shown.map(({ text, title }) => h('li', { class: 'caution', title }, text)),
    rest.length > 0 && h('li', { class: 'caution', title: rest.map(({ text }) => text).join('; ') }, `+${rest.length}`))
}

/** @param {RunBenchmark} b */
export function isBenchmarkOpen(b) {
  return b.status === 'pending' || b.status === 'running'
}

/**
 * Describes which items were ordered: `10% of the items, seed “demo”`.
 *
 * @param {Run} run
 * @param {number} [seedMax] characters of the seed; longer ones are cut
 */
export function subsetText(run, seedMax = Infinity) {
  const text = run.subset_seed ?? ''
  const seed = text && `, seed “${text.length > seedMax ? `${text.slice(0, seedMax / 2)}…` : text}”`
  if (run.items) return plural(run.items.length, 'named item')
  if (run.subset_count) return `${plural(run.subset_count, 'item')} of each benchmark${seed}`
  return run.subset_pct === 100 ? 'all items' : `${number(run.subset_pct)}% of the items${seed}`
}

/**
 * Seconds that a run has taken so far; null before it starts.
 *
 * @param {Run} run
 */
export function elapsedSeconds(run) {
  if (!run.started_at) return null
  const end = run.completed_at ? new Date(run.completed_at).getTime() : Date.now()
  return Math.max(0, (end - new Date(run.started_at).getTime()) / 1000)
}

/**
 * Returns true if all samples of a run are episodes of an agent.
 *
 * @param {Run} run
 */
export function isOfEpisodes(run) {
  return run.benchmarks.length > 0 && run.benchmarks.every(hasAgent)
}

/**
 * Returns how far a run is, by its samples once all of its benchmarks are planned, before by its items. Samples of runs of
 * terminal tasks are called episodes.
 *
 * @param {Run} run
 * @returns {{completed: number, total: number, percent: number, unit: 'item' | 'sample' | 'episode'}}
 */
export function progressOf(run) {
  const { completed, total, percent: share } = run.progress
  const isPlanned = run.benchmarks.length > 0 && run.benchmarks.every((b) => b.planned_samples > 0)
  const hasSeveral = run.benchmarks.some((b) => (b.samples_per_item ?? 1) > 1)
  if (!isPlanned || !(hasSeveral || isOfEpisodes(run))) return { completed, total, percent: share, unit: 'item' }
  const sum = (/** @type {'completed_samples' | 'planned_samples'} */ name) => run.benchmarks.reduce((all, b) => all + b[name], 0)
  const [done, planned] = [sum('completed_samples'), sum('planned_samples')]
  return { completed: done, total: planned, percent: done / planned * 100, unit: isOfEpisodes(run) ? 'episode' : 'sample' }
}

/** @param {number} share */
function floorPercent(share) {
  return percent(Math.min(share, 0.999))
}

/**
 * @param {string} outcome
 * @param {number} n
 */
function countText(outcome, n) {
  const { label } = outcomeOf(outcome)
  return outcome === 'infrastructure-error' ? plural(n, 'infrastructure error') : `${integer(n)} ${label.toLowerCase()}`
}

/**
 * Formats a score of a sample with two digits.
 *
 * @param {number | null | undefined} score
 */
export function sampleScore(score) {
  return score === null || score === undefined ? none : score.toFixed(2).replace('-', '−')
}
