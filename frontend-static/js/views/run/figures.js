/** All figures of a benchmark: sums of its samples, and every metric. */

import { h } from '../../core/dom.js'
import { duration, integer, interval, none, number, percent, tokens, usd } from '../../core/format.js'
import { metricLabel } from '../../core/metrics.js'
import { isBenchmarkOpen } from '../../core/run-facts.js'

/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/** Metrics that other parts of the view show. */
const SHOWN_ELSEWHERE = new Set(['groups', 'categories', 'outcomes', 'score', 'coverage', 'coverage_min', 'correct', 'graded', 'planned', 'usage', 'cost', 'error_causes', 'subset_seed', 'subset_count'])

/**
 * @param {RunBenchmark} b
 * @param {Api.SummaryView | null} summary sums over the samples that are over; null until loaded
 */
export function figuresOf(b, summary) {
  return [
    h('dl', { class: 'tiles' }, tiles(b, summary).map(([term, value, small]) =>
      h('div', null, h('dt', null, term), h('dd', null, value, small && [' ', h('small', null, small)])))),
    b.metrics ? metricsTable(b.metrics) : h('p', { class: 'dim' }, 'Metrics are computed when the benchmark is over.'),
  ]
}

/**
 * @param {RunBenchmark} b
 * @param {Api.SummaryView | null} s
 * @returns {[string, import('../../core/dom.js').Child, string?][]}
 */
function tiles(b, s) {
  const share = b.total_items ? `sampled ${integer(b.sampled_items)} of ${integer(b.total_items)} (${percent(b.sampled_items / b.total_items, 2)})` : ''
  const ungraded = b.completed_samples - b.graded_samples
  const score = isBenchmarkOpen(b) ? b.score_of_graded : b.score
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const list = [
    [isBenchmarkOpen(b) ? 'Score so far' : 'Score', percent(score)],
    ['95% interval', interval(b.interval), b.interval ? (b.interval.method === 'wilson' ? 'Wilson' : 'clustered by item') : ''],
    ['Items', `${integer(b.completed_items)} / ${integer(b.sampled_items)}`, share],
    ['Correct', integer(b.correct_samples)],
    ['Incorrect', integer(s?.incorrect ?? Math.max(0, b.graded_samples - b.correct_samples)), 'graded, not correct'],
    ['Errors', integer(s?.errors ?? ungraded), s ? 'see the tab Errors' : 'not graded'],
    ['Coverage', percent(b.coverage), `needed ${percent(b.coverage_min)}`],
    ['Correct of all', percent(b.accuracy_all), 'errors count as wrong'],
    ['Average time', s?.avg_latency_ms !== null && s?.avg_latency_ms !== undefined ? duration(s.avg_latency_ms / 1000) : none],
    ['Input tokens', integer(b.input_tokens)], ['Output tokens', integer(b.output_tokens)], ['Total tokens', integer(b.input_tokens + b.output_tokens)],
    ['Cost', dollars(b.cost?.total_usd), b.cost ? `${dollars(b.cost.input_usd)} in, ${dollars(b.cost.output_usd)} out` : 'price unknown'],
  ]
  if (s?.pricing_input_per_million_usd !== null && s?.pricing_input_per_million_usd !== undefined) {
    list.push(['Price per million', `${usd(s.pricing_input_per_million_usd)} / ${usd(s.pricing_output_per_million_usd)}`, 'in / out'])
  }
  if (b.judge) list.push(['Judge\'s tokens', `${tokens(b.judge_input_tokens)} / ${tokens(b.judge_output_tokens)}`, 'in / out'], ['Judge\'s cost', dollars(b.judge_cost?.total_usd)])
  if (b.user_input_tokens > 0) list.push(['User model\'s tokens', `${tokens(b.user_input_tokens)} / ${tokens(b.user_output_tokens)}`, 'in / out'], ['User model\'s cost', dollars(b.user_cost?.total_usd)])
  if (s?.without_usage) list.push(['Without token counts', integer(s.without_usage), 'answers; in no sum of tokens or costs'])
  if (s?.unjudged) list.push(['Not yet judged', integer(s.unjudged)])
  return list
}

/** @param {number | null | undefined} value */
function dollars(value) {
  return value === null || value === undefined ? none : `$${value.toFixed(4)}`
}

/** @param {Api.Metrics} metrics */
function metricsTable(metrics) {
  const entries = flat(metrics)
  return h('details', { class: 'metrics', open: entries.length <= 40 }, h('summary', null, h('h3', null, 'All metrics'), h('span', { class: 'dim' }, ` ${entries.length}`)),
    h('div', { class: 'metric-columns' }, h('table', { class: 'figures' },
      h('thead', { class: 'visually-hidden' }, h('tr', null, h('th', { scope: 'col' }, 'Metric'), h('th', { scope: 'col' }, 'Value'))),
      h('tbody', null, entries.map(([path, value]) => h('tr', null, h('th', { scope: 'row', title: path.join('.') }, metricLabel(path)), h('td', { class: 'number' }, value)))))))
}

/**
 * Lists single figures of nested metrics, with their path.
 *
 * @param {Record<string, unknown>} metrics
 * @param {string[]} outer names of the metrics that contain these
 * @returns {[string[], string][]}
 */
function flat(metrics, outer = []) {
  return Object.entries(metrics).flatMap(([key, value]) => {
    if (outer.length === 0 && SHOWN_ELSEWHERE.has(key)) return []
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return flat(/** @type {Record<string, unknown>} */ (value), [...outer, key])
    const path = [...outer, key]
    return [/** @type {[string[], string]} */ ([path, typeof value === 'number' ? number(value) : value === null ? none : String(value)])]
  })
}
