/** Causes of errors of a benchmark, most frequent first. */

import { h } from '../../core/dom.js'
import { integer } from '../../core/format.js'
import { causeOf, messageParts } from '../../core/messages.js'

/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/**
 * @param {RunBenchmark} b
 * @param {Api.SummaryView | null} summary
 */
export function errorsOf(b, summary) {
  const breakdown = summary?.error_breakdown ?? []
  const causes = grouped(breakdown.length > 0 ? breakdown : b.error_causes ?? [])
  if (causes.length === 0) return h('p', { class: 'dim' }, 'No sample ended with an error.')
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Causes of errors' }, h('table', { class: 'figures causes' },
    h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'number' }, 'Samples'), h('th', { scope: 'col' }, 'Code'), h('th', { scope: 'col' }, 'Error'))),
    h('tbody', null, causes.map((cause) => h('tr', null,
      h('td', { class: 'number' }, integer(cause.count)), h('td', null, cause.code ? h('code', null, cause.code) : ''), h('td', { class: 'message' }, messageParts(cause.message)))))))
}

/**
 * Adds up messages of the same cause: the sums of the samples have those of each sample.
 *
 * @param {Api.ErrorCount[]} all
 */
function grouped(all) {
  /** @type {Map<string, Api.ErrorCount>} */
  const found = new Map()
  for (const cause of all) {
    const key = `${cause.code} ${causeOf(cause.message)}`
    found.set(key, { ...cause, ...found.get(key), count: (found.get(key)?.count ?? 0) + cause.count })
  }
  return [...found.values()].sort((a, b) => b.count - a.count)
}
