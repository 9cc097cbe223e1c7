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
 * @param {Api.FiringView} firing
 */
export function firingStatus(firing) {
  const [label, kind] = STATUSES[firing.status === 'ended' ? firing.run_status ?? 'ended' : firing.status] ?? [firing.status, '']
  return [h('span', { class: `badge ${kind}` }, label), firing.overdue_at && !firing.ended_at && [' ', h('span', { class: 'badge warn' }, 'Overdue')],
    firing.comparison?.regressed && [' ', h('span', { class: 'badge bad' }, 'Regressed')]]
}

/**
 * Describes the difference from the run before, for each benchmark.
 *
 * @param {Api.FiringComparison | null} comparison null without one
 * @returns {import('../../core/dom.js').Child[]}
 */
export function differences(comparison) {
  return (comparison?.benchmarks ?? []).map((each) => h('span', { class: each.regressed ? 'difference regressed' : 'difference' },
    h('span', { class: 'dim' }, each.benchmark_name), ' ',
    each.difference === null ? 'not comparable' : points(each.difference),
    each.interval && h('span', { class: 'dim' }, ` (${range(each.interval)})`),
    each.regressed && ' ▼ worse'))
}

/**
 * Returns the reasons to doubt a comparison, each once.
 *
 * @param {Api.FiringComparison | null} comparison null without one
 * @returns {string[]}
 */
export function doubts(comparison) {
  return [...new Set((comparison?.benchmarks ?? []).flatMap((each) => each.warnings))]
}

/** @param {{low: number, high: number}} interval */
function range({ low, high }) {
  return `${points(low).replace(' pp', '')} to ${points(high)}`
}

/**
 * Makes the score of a firing's run as a link.
 *
 * @param {Api.FiringView} firing
 */
export function firingScore(firing) {
  if (!firing.run_id) return h('span', { class: 'dim' }, '–')
  return h('a', { href: `/runs/${firing.run_id}` }, firing.score === null ? 'View run' : percent(firing.score))
}
