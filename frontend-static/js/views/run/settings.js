/** Settings of a benchmark in a run: everything that its score depends on. */

import { h } from '../../core/dom.js'
import { integer, none, plural, tokens, usd } from '../../core/format.js'
import { hasConversations } from '../../core/agents.js'
import { cautionList, promptInWords, promptOfRun, subsetText } from '../../core/run-facts.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/**
 * @param {RunBenchmark} b
 * @param {Run} run
 */
export function settingsOf(b, run) {
  return [
    (b.changed_settings ?? []).length > 0 && h('div', null, h('p', null, 'These differ from the benchmark\'s own settings:'),
      cautionList(b.changed_settings.map((/** @type {string} */ text) => ({ text, title: text })))),
    h('dl', { class: 'facts settings' }, settingRows(b, run).map(([term, value]) => [h('dt', null, term), h('dd', null, value)])),
  ]
}

/**
 * Lists the settings as pairs of words.
 *
 * @param {RunBenchmark} b
 * @param {Run} run
 * @returns {[string, import('../../core/dom.js').Child][]}
 */
export function settingRows(b, run) {
  const d = b.dataset
  /** @type {[string, import('../../core/dom.js').Child][]} */
  const rows = [
    ['Protocol', b.protocol ?? b.protocol_name ?? none],
    ['Prompt', prompt(promptOfRun(b, run))],
    ['Dataset', d ? [d.id, ` (${d.source})`] : none],
    ['Revision', d ? h('code', null, d.revision) : none],
    ['Items', `${subsetText(run)}: ${integer(b.sampled_items)} of ${integer(b.total_items)}`],
    ['Samples per item', integer(b.samples_per_item)],
    ...settings(b.generation),
  ]
  for (const [name, value] of Object.entries(b.options ?? {})) rows.push([`Option ${name}`, plain(value)])
  for (const attachment of d?.attachments ?? []) rows.push([`File ${attachment.name}`, h('code', null, attachment.sha256)])
  if (b.judge) {
    const judge = b.judge
    rows.push(['Judge', [judge.model ?? none, judge.endpoint_host && ` at ${judge.endpoint_host}`]])
    rows.push(['Judge\'s prompt', prompt(promptInWords({ source: judge.prompt_source, digest: judge.prompt_digest }))])
    for (const [term, value] of settings(judge)) rows.push([`Judge: ${String(term).toLowerCase()}`, value])
  }
  const user = hasConversations(b.benchmark_name) ? /** @type {{user_model?: Partial<Api.JudgeOrderView> | null}} */ (run).user_model : null
  if (user) {
    rows.push(['User model', user.model ?? none])
    for (const [term, value] of settings(user)) rows.push([`User model: ${String(term).toLowerCase()}`, value])
  }
  if (run.limits) {
    if (run.limits.requests_per_minute) rows.push(['Requests per minute', integer(run.limits.requests_per_minute)])
    if (run.limits.timeout_seconds) rows.push(['Time limit of an answer', plural(run.limits.timeout_seconds, 'second')])
    if (run.limits.max_failures) rows.push(['Stops after', plural(run.limits.max_failures, 'failure')])
  }
  if (run.budget) rows.push(['Budget', [run.budget.usd !== null && usd(run.budget.usd), run.budget.tokens !== null && ` ${tokens(run.budget.tokens)} tokens`]])
  if (run.concurrency) rows.push(['Samples at once', integer(run.concurrency)])
  if (run.software) rows.push(['Program', `bench ${run.software}`])
  return rows
}

/** @type {[keyof Api.GenerationView, string][]} */
const NAMES = [
  ['temperature', 'Temperature'], ['top_p', 'Top p'], ['top_k', 'Top k'], ['max_tokens', 'Longest answer'], ['seed', 'Sampler seed'], ['stop', 'Stop texts'],
  ['system_prompt', 'System prompt'], ['reasoning_effort', 'Reasoning effort'], ['thinking_budget', 'Thinking budget'], ['extra_body', 'Extra fields'],
  ['omit', 'Left out'], ['max_tokens_field', 'Field of the length'],
]

/**
 * @param {Partial<Api.GenerationView> | null} generation settings of the model, or of a judge, which has fewer
 * @returns {[string, import('../../core/dom.js').Child][]}
 */
function settings(generation) {
  if (!generation) return []
  return NAMES.filter(([name]) => {
    const value = generation[name]
    return value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)
  }).map(([name, label]) => [label, name === 'max_tokens' || name === 'thinking_budget' ? plural(/** @type {number} */ (generation[name]), 'token') : plain(generation[name])])
}

/** @param {unknown} value */
function plain(value) {
  return typeof value === 'string' ? value : h('code', null, JSON.stringify(value))
}

/** @param {ReturnType<typeof promptInWords>} prompt */
function prompt({ text, digest }) {
  return text ? [text, digest && [', digest ', h('code', { title: digest }, digest.slice(0, 16))]] : none
}
