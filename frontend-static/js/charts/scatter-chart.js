/** Two values of each run against each other: score against cost. */

import { chart, shape } from './chart.js'
import { bottomAxis, label, leftAxis, uprightWhisker, widthOf } from './parts.js'
import { linear, logarithmic } from './scale.js'

/**
 * @typedef {object} Point
 * @property {string} label
 * @property {number} x
 * @property {number} y
 * @property {number | null} [low] lower end of the interval of `y`
 * @property {number | null} [high]
 * @property {number} series
 * @property {string | null} [href]
 */

/** Values further apart than this factor get a logarithmic axis. */
const LOGARITHMIC_FROM = 20

/**
 * Makes a chart of points with an interval of their height.
 *
 * @param {object} options
 * @param {string} options.title
 * @param {string} [options.note]
 * @param {{label: string, format: (value: number) => string}} options.x
 * @param {{label: string, format: (value: number) => string, formatTick?: (value: number) => string, formatInterval: (low: number, high: number) => string}} options.y
 * @param {Point[]} options.points
 */
export function scatterChart({ title, note, x, y, points }) {
  const interval = (/** @type {Point} */ { low, high }) => (typeof low === 'number' && typeof high === 'number' ? y.formatInterval(low, high) : '–')
  return chart({
    title, note,
    draw: (width) => draw(width, { x, y, points, interval }),
    table: {
      columns: [{ label: 'Run' }, { label: x.label, isNumber: true }, { label: y.label, isNumber: true }, { label: '95% interval', isNumber: true }],
      rows: points.map((point) => [point.label, x.format(point.x), y.format(point.y), interval(point)]),
    },
  })
}

/**
 * @param {number} width
 * @param {Pick<Parameters<typeof scatterChart>[0], 'x' | 'y' | 'points'> & {interval: (point: Point) => string}} options
 * @returns {import('./chart.js').Drawing}
 */
function draw(width, { x, y, points, interval }) {
  const [left, right, top, bottom] = [52, width - 16, 24, 240]
  const xs = points.map((point) => point.x)
  const isLogarithmic = Math.min(...xs) > 0 && Math.max(...xs) / Math.min(...xs) > LOGARITHMIC_FROM
  const across = isLogarithmic ? logarithmic([Math.min(...xs), Math.max(...xs)], [left + 8, right - 8])
    : linear([0, Math.max(...xs)], [left + 8, right - 8], { count: Math.max(2, Math.min(5, Math.floor(width / 110))) })
  const ys = points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y])
  const up = linear([Math.min(...ys), Math.max(...ys)], [bottom, top], { count: 4 })
  const title = isLogarithmic ? `${x.label}, logarithmic` : x.label
  /** @type {SVGElement[]} */
  const shapes = [
    ...leftAxis(up, y.formatTick ?? y.format, { left, right }), ...bottomAxis(across, x.format, { top, bottom, title, right }),
    label(y.label, { x: 0, y: 10, class: 'dim' }),
  ]
  const marks = points.map((point) => {
    const place = { x: across.to(point.x), y: up.to(point.y) }
    if (typeof point.low === 'number' && typeof point.high === 'number') {
      shapes.push(...uprightWhisker(place.x, up.to(point.high), up.to(point.low), point.series))
    }
    shapes.push(shape(point.series, place.x, place.y))
    const isRight = place.x + 10 + widthOf(point.label) > right
    shapes.push(label(point.label, { x: place.x + (isRight ? -10 : 10), y: place.y - 6, class: isRight ? 'end' : '', width: isRight ? place.x - 10 : right - place.x }))
    return { ...place, text: `${point.label}: ${y.label.toLowerCase()} ${y.format(point.y)} (${interval(point)}), ${x.label.toLowerCase()} ${x.format(point.x)}`, href: point.href }
  })
  return { height: bottom + 42, shapes, marks }
}
