/** Charts of a comparison: score with interval, score against cost, score by group. */

import { h } from '../../core/dom.js'
import { integer, interval, percent, usd } from '../../core/format.js'
import { scaleOf } from '../../core/run-facts.js'
import { intervalChart } from '../../charts/interval-chart.js'
import { scatterChart } from '../../charts/scatter-chart.js'
import { wilson } from '../../core/metrics.js'
import { groupScores } from '../run/groups.js'
import { benchmarkOf, pairOf } from './load.js'

/** Groups that the chart has at most: the largest ones. */
const GROUPS_MAX = 20

/** @typedef {import('./load.js').Compared} Compared */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {{compared: Compared, b: RunBenchmark, score: number, label: string}} Scored */

/**
 * Makes the charts of a benchmark.
 *
 * @param {Compared[]} all
 * @param {string} name
 */
export function chartsOf(all, name) {
  const scored = all.flatMap((compared) => {
    const b = benchmarkOf(compared, name)
    return b && b.score !== null ? [{ compared, b, score: b.score, label: `${compared.letter} ${compared.label}` }] : []
  })
  if (scored.length === 0) return h('p', { class: 'dim' }, 'None of the runs has a score on this benchmark.')
  const [low, high] = scaleOf(name)
  const format = (/** @type {number} */ value) => percent(value)
  const formatTick = (/** @type {number} */ value) => percent(value, 0)
  const formatInterval = (/** @type {number} */ from, /** @type {number} */ to) => interval([from, to])
  const isPaired = all.some((compared) => (pairOf(compared, name)?.items ?? 0) > 0)
  const isCut = (/** @type {Scored} */ { b }) => b.coverage !== null && b.coverage < 1
  const charts = [intervalChart({
    title: 'Score with 95% interval', column: 'Run', series: ['Score'], domain: [low, high],
    note: scored.some(isCut) ? 'Not every planned sample was graded: the coverage of each run is beside its score.' : `Each run on all of its own items. Overlapping intervals don’t mean that two runs are equal${isPaired ? '; the paired difference above is the sharper test' : ''}.`,
    rows: scored.map((one) => ({
      label: one.label,
      values: [{ value: one.score, low: one.b.interval?.low, high: one.b.interval?.high, note: `${integer(one.b.graded_samples)} graded samples${isCut(one) ? `, coverage ${percent(one.b.coverage)}` : ''}`, href: one.compared.source.runPath() }],
    })),
    format, formatInterval, formatTick, seriesOf: (row) => scored[row].compared.series,
  })]
  const paid = scored.flatMap((one) => {
    const cost = costOf(one.b)
    return cost === null ? [] : [{ ...one, cost }]
  })
  // One point shows no relation.
  if (paid.length > 1) {
    charts.push(scatterChart({
      title: 'Score against cost',
      note: paid.length < scored.length ? `Without ${scored.filter((one) => !paid.some(({ b }) => b === one.b)).map(({ compared }) => compared.letter).join(', ')}, whose price isn’t known.` : 'Cost of the answers and of the judge in this benchmark. Higher and further left is better.',
      x: { label: 'Cost', format: usd }, y: { label: 'Score', format, formatTick, formatInterval },
      points: paid.map(({ compared, b, score, label, cost }) => ({ label, x: cost, y: score, low: b.interval?.low, high: b.interval?.high, series: compared.series, href: compared.source.runPath() })),
    }))
  }
  const groups = groupChart(scored, name, { format, formatTick, formatInterval })
  return h('section', { class: 'compare-charts', 'aria-labelledby': 'charts-title' }, h('h2', { id: 'charts-title' }, 'Charts'), charts, groups,
    paid.length < 2 && h('p', { class: 'hint' }, 'There is no chart of score against cost: it needs two runs whose cost is known.'))
}

/** Cost of a benchmark with its judge and user model, in dollars; null if the price isn't known. @param {RunBenchmark} b @returns {number | null} */
function costOf(b) {
  const answers = b.cost?.total_usd ?? null
  if (answers === null || (b.judge && b.judge_cost?.total_usd === undefined && b.judge_input_tokens > 0)) return null
  if (b.user_cost?.total_usd === undefined && b.user_input_tokens > 0) return null
  return answers + (b.judge_cost?.total_usd ?? 0) + (b.user_cost?.total_usd ?? 0)
}

/** @param {Scored[]} scored @param {string} name @param {Pick<Parameters<typeof intervalChart>[0], 'format' | 'formatTick' | 'formatInterval'>} formats */
function groupChart(scored, name, formats) {
  /** @type {Map<string, number>} */
  const sizes = new Map()
  for (const { b } of scored) for (const [group, { graded }] of Object.entries(groupScores(b) ?? {})) sizes.set(group, Math.max(sizes.get(group) ?? 0, graded))
  if (sizes.size < 2) return null
  const names = [...sizes].sort((one, other) => other[1] - one[1]).slice(0, GROUPS_MAX).map(([group]) => group).sort()
  const isBinary = scored.every(({ b }) => b.interval?.method === 'wilson')
  const left = sizes.size - names.length
  return intervalChart({
    title: isBinary ? 'Score by group with 95% interval' : 'Score by group', column: 'Group', series: scored.map(({ compared }) => compared.letter), domain: scaleOf(name),
    note: `${left > 0 ? `The ${GROUPS_MAX} largest groups; ${left} smaller ones are left out. ` : ''}${isBinary ? 'Groups are small, so their intervals are wide. ' : ''}With many groups, some differ by chance alone.`,
    rows: names.map((group) => ({
      label: group,
      values: scored.map(({ b }) => {
        const found = groupScores(b)?.[group]
        const range = isBinary && found ? wilson(found.correct, found.graded) : null
        return { value: found?.score ?? null, low: range?.low, high: range?.high, note: found ? `${integer(found.graded)} graded` : '' }
      }),
    })),
    ...formats,
  })
}
