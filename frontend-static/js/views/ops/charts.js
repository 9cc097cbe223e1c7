/** Load over time: workers and runs, and the processors, memory and disk of the sandbox host. */

import { timeChart } from '../../charts/time-chart.js'
import { h } from '../../core/dom.js'
import { number, percent } from '../../core/format.js'

/** Milliseconds between two points above which they aren't joined. */
const GAP = 150_000

/**
 * Makes the chart of workers and runs by minute.
 *
 * @param {Api.OverviewView} overview
 */
export function loadChart({ timeseries }) {
  if (timeseries.length === 0) return nothing('Workers and runs', 'No worker has worked in this time.')
  const series = /** @type {const} */ ([['Workers', 'worker_count'], ['Running runs', 'running_runs'], ['Queued runs', 'queued_runs']])
    .map(([label, field]) => ({ label, points: points(timeseries, field) }))
  const text = (/** @type {number} */ value) => number(Math.round(value * 10) / 10)
  return timeChart({ title: 'Workers and runs', note: `${summary(series, text, true)} Minutes without a working worker are left out.`,
    series, format: text })
}

/**
 * Makes the chart of the host's load.
 *
 * @param {Api.HostMetric[] | null} metrics null without a sandbox host
 */
export function hostChart(metrics) {
  if (!metrics || metrics.length === 0) return nothing('CPU, memory and disk', 'No load of a sandbox host was recorded in this time.')
  const series = /** @type {const} */ ([['CPU', 'cpu_ratio'], ['Memory', 'memory_ratio'], ['Disk', 'disk_ratio']])
    .map(([label, field]) => ({ label, points: points(metrics, field) }))
  const text = (/** @type {number} */ value) => percent(value, 0)
  return timeChart({ title: 'CPU, memory and disk of the host', note: summary(series, text, false), series, format: text, max: 1 })
}

/**
 * Returns the points of a field, with an empty one in each gap.
 *
 * @template {string} F
 * @param {({timestamp: string} & Record<F, number | null>)[]} rows
 * @param {F} field
 * @returns {[number, number | null][]}
 */
function points(rows, field) {
  /** @type {[number, number | null][]} */
  const found = []
  for (const row of rows) {
    const time = Date.parse(row.timestamp)
    const last = found.at(-1)
    if (last && time - last[0] > GAP) found.push([last[0] + 60_000, null])
    found.push([time, row[field]])
  }
  return found
}

/**
 * Describes the latest value, the average and the peak of each series.
 *
 * @param {{label: string, points: [number, number | null][]}[]} series
 * @param {(value: number) => string} format
 * @param {boolean} hasPeak
 */
function summary(series, format, hasPeak) {
  return series.map(({ label, points }) => {
    const values = points.map(([, value]) => value).filter((value) => value !== null)
    if (values.length === 0) return `${label}: no data.`
    const average = values.reduce((sum, value) => sum + value, 0) / values.length
    return `${label}: latest ${format(/** @type {number} */ (values.at(-1)))}, average ${format(average)}${hasPeak ? `, peak ${format(Math.max(...values))}` : ''}.`
  }).join(' ')
}

/**
 * @param {string} title
 * @param {string} text
 */
function nothing(title, text) {
  return h('section', { class: 'chart-nothing' }, h('h2', null, title), h('p', { class: 'dim' }, text))
}
