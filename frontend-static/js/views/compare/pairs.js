/** Paired differences with the baseline: difference, interval, test, and what they say. */

import { h } from '../../core/dom.js'
import { integer, percent, points } from '../../core/format.js'
import { intervalChart } from '../../charts/interval-chart.js'
import { pairOf } from './load.js'
import { conclusion } from './statistics.js'

/** @typedef {import('./load.js').Compared} Compared */

/**
 * Makes the table of differences to the baseline, with a sentence for each.
 *
 * @param {Compared[]} all
 * @param {string} name Benchmark.
 * @param {ReturnType<typeof import('./load.js').adjustedValues>} adjusted
 */
export function pairedDifferences(all, name, adjusted) {
  const pairs = all.flatMap((compared) => {
    const pair = pairOf(compared, name)
    return pair ? [{ compared, pair }] : []
  })
  if (pairs.length === 0) return h('p', { class: 'dim' }, 'No run can be compared with the baseline on this benchmark.')
  if (pairs.every(({ pair }) => pair.items === 0)) {
    return h('section', { class: 'compare-paired', 'aria-labelledby': 'paired-title' }, h('h2', { id: 'paired-title' }, 'Difference to A on the same items'),
      h('p', { class: 'conclusion' }, 'The runs have no graded item in common, so there is no difference to state. Their scores below are of different items.'))
  }
  const isCorrected = adjusted.count > 0
  const columns = [
    'Run', 'Mean of A', 'Mean of the run', 'Difference', '95% interval', 'p', ...(isCorrected ? ['p (Holm)'] : []), 'Items', 'Only A right', 'Only the run right',
  ]
  return h('section', { class: 'compare-paired', 'aria-labelledby': 'paired-title' },
    h('h2', { id: 'paired-title' }, 'Difference to A on the same items'),
    pairs.map(({ compared, pair }) => h('p', { class: 'conclusion' }, sentence(compared, pair, isCorrected ? adjusted.of(compared, name) : pair.mcnemar_p, isCorrected))),
    h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Paired differences' }, h('table', { class: 'figures compare-pairs' },
      h('thead', null, h('tr', null, columns.map((column, at) => h('th', { scope: 'col', class: at > 0 ? 'number' : null }, column)))),
      h('tbody', null, pairs.map(({ compared, pair }) => h('tr', null,
        h('th', { scope: 'row' }, `${compared.letter} − A`),
        number(percent(pair.mean_a)), number(percent(pair.mean_b)),
        h('td', { class: 'number' }, h('b', null, points(pair.difference))),
        number(pair.interval ? `${points(pair.interval.low)} to ${points(pair.interval.high)}` : '–'),
        number(pValue(pair.mcnemar_p)), isCorrected && number(pValue(adjusted.of(compared, name))),
        number(integer(pair.items)), number(integer(pair.only_a_right)), number(integer(pair.only_b_right))))))),
    h('p', { class: 'hint' }, 'On the items that both runs have graded, each with the same weight; positive if the run is better than A. The interval is Student’s for paired items, clustered by item. p is the exact McNemar test on the items that only one of the two got right.',
      isCorrected && ` Holm’s method corrects p for the ${adjusted.count} comparisons on this page.`),
    differenceChart(pairs))
}

/** @param {Compared} compared @param {import('./load.js').PairedBenchmark} pair @param {number | null} p @param {boolean} isCorrected */
function sentence(compared, pair, p, isCorrected) {
  const test = p === null ? '' : `p ${pValue(p).startsWith('<') ? '' : '= '}${pValue(p)}${isCorrected ? ' after correction' : ''}`
  const isLike = pair.same_dataset && pair.same_protocol && pair.same_judge
  return conclusion(pair, p, { format: points, a: 'A', b: compared.letter, test }) + (isLike ? '' : ' What makes the runs not comparable may explain it too.')
}

/** @param {{compared: Compared, pair: import('./load.js').PairedBenchmark}[]} pairs */
function differenceChart(pairs) {
  const shown = pairs.filter(({ pair }) => pair.difference !== null)
  if (shown.length === 0) return null
  return intervalChart({
    title: 'Difference to A with 95% interval', column: 'Run', series: ['Difference'], reference: 0,
    rows: shown.map(({ compared, pair }) => ({
      label: `${compared.letter} ${compared.label}`,
      values: [{ value: pair.difference, low: pair.interval?.low, high: pair.interval?.high, note: `${integer(pair.items)} items` }],
    })),
    format: points, formatInterval: (low, high) => `${points(low)} to ${points(high)}`, formatTick: (value) => (value === 0 ? '0 pp' : points(value).replace('.0', '')),
    seriesOf: (row) => shown[row].compared.series,
  })
}

/** @param {string} text */
function number(text) {
  return h('td', { class: 'number' }, text)
}

/**
 * Formats a p-value with three digits.
 *
 * @param {number | null} p
 */
export function pValue(p) {
  if (p === null) return '–'
  return p < 0.001 ? '< 0.001' : p.toFixed(3)
}
