/** Scores over time with their intervals; regressions are marked. */

import { dateTime } from '../core/format.js'
import { svg } from '../core/dom.js'
import { chart, shape } from './chart.js'
import { bottomAxis, label, leftAxis, uprightWhisker } from './parts.js'
import { linear, timeScale } from './scale.js'

/**
 * @typedef {object} Point
 * @property {string} time RFC 3339
 * @property {number | null} value null for a planned time without a score
 * @property {number | null} [low]
 * @property {number | null} [high]
 * @property {boolean} [isRegression]
 * @property {string} [note] such as why there is no score
 * @property {string | null} [href]
 */

/**
 * Makes a chart of scores over time.
 *
 * @param {object} options
 * @param {string} options.title
 * @param {string} [options.note]
 * @param {Point[]} options.points
 * @param {(value: number) => string} options.format
 * @param {(low: number, high: number) => string} options.formatInterval
 * @param {(value: number) => string} [options.formatTick] Text at the axis.
 */
export function historyChart({ title, note, points, format, formatInterval, formatTick = format }) {
  const inOrder = points.toSorted((one, other) => Date.parse(one.time) - Date.parse(other.time))
  const has = (/** @type {Point} */ { low, high }) => typeof low === 'number' && typeof high === 'number'
  const interval = (/** @type {Point} */ point) => (has(point) ? formatInterval(/** @type {number} */ (point.low), /** @type {number} */ (point.high)) : '–')
  const remark = (/** @type {Point} */ point) => [point.isRegression ? 'Regression' : '', point.note ?? ''].filter(Boolean).join(': ')
  return chart({
    title, note,
    draw: (width) => draw(width, inOrder, formatTick, (point) => {
      const score = point.value === null ? 'no score' : `${format(point.value)}${has(point) ? ` (${interval(point)})` : ''}`
      return [`${dateTime(point.time)}: ${score}`, remark(point)].filter(Boolean).join(', ')
    }),
    table: {
      columns: [{ label: 'Time' }, { label: 'Score', isNumber: true }, { label: '95% interval', isNumber: true }, { label: 'Remark' }],
      rows: inOrder.map((point) => [dateTime(point.time), point.value === null ? '–' : format(point.value), interval(point), remark(point)]),
    },
  })
}

/** @param {number} width @param {Point[]} points @param {(value: number) => string} formatTick @param {(point: Point) => string} text @returns {import('./chart.js').Drawing} */
function draw(width, points, formatTick, text) {
  const [left, right, top, bottom] = [52, width - 16, 20, 220]
  const times = points.map(({ time }) => Date.parse(time))
  const across = timeScale([Math.min(...times), Math.max(...times)], [left + 12, right - 12], Math.max(2, Math.floor(width / 120)))
  const values = points.flatMap(({ value, low, high }) => [value, low, high].filter((one) => typeof one === 'number'))
  const up = linear(values.length > 0 ? [Math.min(...values), Math.max(...values)] : [0, 1], [bottom, top], { count: 4 })
  const shapes = [...leftAxis(up, formatTick, { left, right }), ...bottomAxis(across, across.label, { spans: [[top, bottom]], bottom, right })]
  const scored = points.filter(({ value }) => value !== null)
  const path = scored.map(({ time, value }, at) => `${at === 0 ? 'M' : 'L'}${across.to(Date.parse(time))} ${up.to(/** @type {number} */ (value))}`)
  shapes.push(svg('path', { class: 'chart-line series-1', d: path.join('') }))
  const marks = points.map((point) => {
    const x = across.to(Date.parse(point.time))
    const y = point.value === null ? bottom - 6 : up.to(point.value)
    if (typeof point.low === 'number' && typeof point.high === 'number') shapes.push(...uprightWhisker(x, up.to(point.high), up.to(point.low), 0))
    if (point.value === null) shapes.push(svg('path', { class: 'chart-missing', d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8` }))
    else shapes.push(shape(0, x, y, point.isRegression ? 'regression' : ''))
    if (point.isRegression) shapes.push(label('▼', { x, y: Math.min(y, typeof point.high === 'number' ? up.to(point.high) : y) - 8, class: 'middle bad' }))
    return { x, y, text: text(point), href: point.href }
  })
  return { height: bottom + 24, shapes, marks }
}
