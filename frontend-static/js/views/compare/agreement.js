/** Agreement of runs: how often two of them are both right or both wrong. */

import { h } from '../../core/dom.js'
import { integer, percent } from '../../core/format.js'
import { pairOf } from './load.js'
import { agreement } from './statistics.js'

/** @typedef {import('./load.js').Compared} Compared */

/**
 * Makes the table of right and wrong for two runs, from the API's counts.
 *
 * @param {Compared[]} all
 * @param {string} name Benchmark.
 */
export function rightAndWrong(all, name) {
  const tables = all.flatMap((compared) => {
    const pair = pairOf(compared, name)
    if (!pair || pair.items === 0) return []
    const { letter } = compared
    const agreed = (pair.both_right + pair.both_wrong) / pair.items
    const cell = (/** @type {number} */ count, /** @type {boolean} */ isSame) => h('td', { class: isSame ? 'same' : 'differs', style: { '--share': (count / pair.items).toFixed(3) } }, integer(count), h('small', null, percent(count / pair.items)))
    return [h('table', { class: 'agreement' },
      h('caption', null, `A and ${letter} agree on ${percent(agreed)} of ${integer(pair.items)} items`),
      h('thead', null, h('tr', null, h('td', null), h('th', { scope: 'col' }, `${letter} right`), h('th', { scope: 'col' }, `${letter} wrong`))),
      h('tbody', null,
        h('tr', null, h('th', { scope: 'row' }, 'A right'), cell(pair.both_right, true), cell(pair.only_a_right, false)),
        h('tr', null, h('th', { scope: 'row' }, 'A wrong'), cell(pair.only_b_right, false), cell(pair.both_wrong, true))))]
  })
  return tables.length > 0 ? h('div', { class: 'agreements' }, tables) : null
}

/**
 * Makes the matrix of agreement of all runs; null for two, whose table says the same.
 *
 * @param {Compared[]} shown Runs in the order of the items' sides.
 * @param {import('./statistics.js').PairedItem[]} items
 */
export function agreementMatrix(shown, items) {
  if (shown.length < 3) return null
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Agreement of all runs' }, h('table', { class: 'agreement matrix' },
    h('caption', null, 'Share of items on which two runs are both right or both wrong'),
    h('thead', null, h('tr', null, h('td', null), shown.map(({ letter }) => h('th', { scope: 'col' }, letter)))),
    h('tbody', null, shown.map((row, a) => h('tr', null, h('th', { scope: 'row' }, row.letter), shown.map((column, b) => {
      if (a === b) return h('td', { class: 'self' }, '–')
      const { bothRight, bothWrong, onlyA, onlyB } = agreement(items, a, b)
      const total = bothRight + bothWrong + onlyA + onlyB
      const share = total === 0 ? null : (bothRight + bothWrong) / total
      return h('td', { class: 'same', style: { '--share': share ?? 0 }, title: `${row.letter} and ${column.letter}: ${integer(bothRight)} both right, ${integer(bothWrong)} both wrong, ${integer(onlyA)} only ${row.letter} right, ${integer(onlyB)} only ${column.letter} right` },
        percent(share), h('small', null, `of ${integer(total)}`))
    }))))))
}
