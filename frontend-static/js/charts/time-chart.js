/** Series over time, such as queues, workers and tokens. Series of different units belong into charts of their own. */

import { svg } from '../core/dom.js'
import { dateTime } from '../core/format.js'
import { chart, shape } from './chart.js'
import { bottomAxis, leftAxis } from './parts.js'
import { linear, timeScale } from './scale.js'

/** @typedef {{label: string, points: [number, number | null][]}} Series Points are milliseconds and values; null is a gap. */

/** Rows of the table at most; the chart has all points. */
const ROWS_MAX = 200

/**
 * Makes a chart of series over time.
 *
 * @param {object} options
 * @param {string} options.title
 * @param {string} [options.note]
 * @param {Series[]} options.series All with the same times.
 * @param {(value: number) => string} options.format
 * @param {number} [options.max] Highest value of the axis, such as 1 for shares.
 */
export function timeChart({ title, note, series, format, max }) {
  const value = (/** @type {number | null | undefined} */ one) => (one === null || one === undefined ? '–' : format(one))
  const times = series[0]?.points.map(([time]) => time) ?? []
  return chart({
    title, note,
    legend: series.length > 1 ? series.map(({ label }, index) => ({ label, series: index })) : [],
    draw: (width) => draw(width, { series, format, value, times, max }),
    table: {
      columns: [{ label: 'Time' }, ...series.map(({ label }) => ({ label, isNumber: true }))],
      rows: times.map((time, at) => [dateTime(new Date(time)), ...series.map(({ points }) => value(points[at]?.[1]))]).reverse().slice(0, ROWS_MAX),
    },
  })
}

/**
 * @param {number} width
 * @param {Pick<Parameters<typeof timeChart>[0], 'series' | 'format' | 'max'> &
 *   {value: (one: number | null | undefined) => string, times: number[]}} options
 * @returns {import('./chart.js').Drawing}
 */
function draw(width, { series, format, value, times, max }) {
  const [left, right, top, bottom] = [56, width - 28, 12, 172]
  const all = series.flatMap(({ points }) => points.map(([, one]) => one ?? 0))
  const first = times.length > 0 ? times[0] : Date.now() - 3_600_000
  const across = timeScale([first, times.at(-1) ?? Date.now()], [left, right], Math.max(2, Math.floor(width / 110)))
  const up = linear([0, max ?? Math.max(...all, 1)], [bottom, top], { count: 4, isExact: max !== undefined })
  const shapes = [...leftAxis(up, format, { left, right }), ...bottomAxis(across, across.label, { spans: [[top, bottom]], bottom, right })]
  for (const [index, { points }] of series.entries()) {
    let d = ''
    let isPen = false
    for (const [time, one] of points) {
      if (one === null) { isPen = false; continue }
      d += `${isPen ? 'L' : 'M'}${across.to(time).toFixed(1)} ${up.to(one).toFixed(1)}`
      isPen = true
    }
    shapes.push(svg('path', { class: `chart-line series-${index % 6 + 1}`, d }))
    const last = points.at(-1)
    if (last && last[1] !== null) shapes.push(shape(index, across.to(last[0]), up.to(last[1])))
  }
  const marks = times.map((time, at) => {
    const values = series.map(({ label, points }) => `${series.length > 1 ? `${label} ` : ''}${value(points[at]?.[1])}`)
    return { x: across.to(time), y: up.to(series[0].points[at]?.[1] ?? 0), text: `${dateTime(new Date(time))}: ${values.join(', ')}` }
  })
  return { height: bottom + 24, shapes, marks }
}
