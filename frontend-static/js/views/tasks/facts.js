/** What views say about uploaded tasks, always in the same words. */

import { h } from '../../core/dom.js'
import { integer, none, plural } from '../../core/format.js'
import { wilson } from '../../core/metrics.js'
import { intervalFigure } from '../../components/figures.js'

/** @type {Record<string, [string, string]>} */
const STATUSES = { pending: ['Not started', 'idle'], running: ['Running', 'active'], completed: ['Completed', 'good'] }

/** Formats of tasks. @type {Record<string, string>} */
const FORMATS = { harbor: 'Harbor', 'terminal-bench-1': 'Terminal-Bench 1' }

/** @param {string} format */
export function formatName(format) {
  return FORMATS[format] ?? format
}

/** @param {string} status */
export function taskBadge(status) {
  const [label, kind] = STATUSES[status] ?? [status, 'idle']
  return h('span', { class: `badge ${kind}` }, label)
}

/**
 * Returns a time of these routes, which are UTC without a zone.
 *
 * @param {string | null} time
 */
export function utc(time) {
  return time && !/Z|[+-]\d\d:\d\d$/.test(time) ? `${time}Z` : time
}

/**
 * Makes the pass rate of graded episodes, with its interval.
 *
 * @param {number} passed
 * @param {number} graded
 */
export function passRate(passed, graded) {
  return graded > 0 ? intervalFigure(passed / graded, wilson(passed, graded)) : none
}

/**
 * Makes the pass rate of a task over all of its orders. Episodes without a grade are in no rate, and stand beside it.
 *
 * @param {Api.Task} task
 */
export function taskRate({ results: { passed, failed, errors } }) {
  return [passRate(passed, passed + failed), errors > 0 && ' ', errors > 0 && h('span', { class: 'caution', title: 'They ended without a grade, and are in no rate.' }, `${integer(errors)} not graded`)]
}

/**
 * Counts the episodes of all orders of a task in words: `7 of 10`, `10`, or that there are none.
 *
 * @param {Api.Task} task
 */
export function episodesText({ results: { episodes, passed, failed, errors } }) {
  if (episodes === 0) return none
  const over = passed + failed + errors
  return over < episodes ? `${integer(over)} of ${integer(episodes)}` : integer(episodes)
}

/**
 * Says the counts of all orders in one line.
 *
 * @param {Api.TaskStats} stats
 */
export function statsText({ results: { tasks, episodes: runs } }) {
  const states = [[tasks.pending, 'not started'], [tasks.running, 'running'], [tasks.completed, 'completed']]
    .filter(([n]) => Number(n) > 0).map(([n, word]) => `${integer(Number(n))} ${word}`)
  const list = states.length > 1 ? ` (${states.join(', ')})` : states.length === 1 && tasks.total > 0 ? `, ${states[0].replace(/^\S+ /, tasks.total === 1 ? '' : 'all ')}` : ''
  return `${plural(tasks.total, 'task')}${list}. ${plural(runs.total, 'episode')}${runs.total > 0 ? `: ${integer(runs.passed)} passed, ${integer(runs.failed)} failed${runs.error > 0 ? `, ${integer(runs.error)} not graded` : ''}` : ''}.`
}
