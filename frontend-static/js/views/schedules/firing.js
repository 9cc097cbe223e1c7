/** How a planned time ended, in words that need no color. */

import { h } from '../../core/dom.js'
import { percent, points } from '../../core/format.js'

/** @type {Record<string, [string, string]>} */
const STATUSES = {
  starting: ['Starting', 'active'], started: ['Running', 'active'], not_started: ['Not started', 'bad'], missed: ['Missed', 'warn'],
  succeeded: ['Succeeded', 'good'], failed: ['Failed', 'bad'], canceled: ['Canceled', 'warn'], ended: ['Run deleted', ''],
}

/**
 * Makes the mark of a firing's state.
 *
 * @param {any} firing
 */
export function firingStatus(firing) {
  const [label, kind] = STATUSES[firing.status === 'ended' ? firing.run_status ?? 'ended' : firing.status] ?? [firing.status, '']
  return [h('span', { class: `badge ${kind}` }, label), firing.overdue_at && !firing.ended_at && [' ', h('span', { class: 'badge warn' }, 'Overdue')],
    firing.comparison?.regressed && [' ', h('span', { class: 'badge bad' }, 'Regressed')]]
}

/**
 * Describes the difference from the run before, for each benchmark.
 *
 * @param {any} comparison null without one
 * @returns {any[]}
 */
export function differences(comparison) {
  return (comparison?.benchmarks ?? []).map((/** @type {any} */ each) => h('span', { class: each.regressed ? 'difference regressed' : 'difference' },
    h('span', { class: 'dim' }, each.benchmark_name), ' ',
    each.difference === null ? 'not comparable' : points(each.difference),
    each.interval && h('span', { class: 'dim' }, ` (${range(each.interval)})`),
    each.regressed && ' ▼ worse'))
}

/**
 * Returns the reasons to doubt a comparison, each once.
 *
 * @param {any} comparison null without one
 * @returns {string[]}
 */
export function doubts(comparison) {
  return [...new Set(/** @type {string[]} */ ((comparison?.benchmarks ?? []).flatMap((/** @type {any} */ each) => each.warnings)))]
}

/** @param {any} interval `low` and `high`, or both in an array */
function range(interval) {
  const [low, high] = Array.isArray(interval) ? interval : [interval.low, interval.high]
  return `${points(low).replace(' pp', '')} to ${points(high)}`
}

/**
 * Makes the score of a firing's run as a link.
 *
 * @param {any} firing
 */
export function firingScore(firing) {
  if (!firing.run_id) return h('span', { class: 'dim' }, '–')
  return h('a', { href: `/runs/${firing.run_id}` }, firing.score === null ? 'View run' : percent(firing.score))
}
