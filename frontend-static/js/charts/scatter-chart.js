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
    ...leftAxis(up, y.formatTick ?? y.format, { left, right }), ...bottomAxis(across, x.format, { spans: [[top, bottom]], bottom, title, right }),
    label(y.label, { x: 0, y: 10, class: 'dim' }),
  ]
  /** What labels must not cover. @type {Box[]} */
  const taken = []
  const marks = points.map((point) => {
    const place = { x: across.to(point.x), y: up.to(point.y) }
    taken.push({ left: place.x - 6, right: place.x + 6, top: place.y - 6, bottom: place.y + 6 })
    if (typeof point.low === 'number' && typeof point.high === 'number') {
      shapes.push(...uprightWhisker(place.x, up.to(point.high), up.to(point.low), point.series))
      taken.push({ left: place.x - 5, right: place.x + 5, top: up.to(point.high), bottom: up.to(point.low) })
    }
    shapes.push(shape(point.series, place.x, place.y))
    return { ...place, text: `${point.label}: ${y.label.toLowerCase()} ${y.format(point.y)} (${interval(point)}), ${x.label.toLowerCase()} ${x.format(point.x)}`, href: point.href }
  })
  for (const [index, point] of points.entries()) {
    const { box, isLeft } = placeOf(marks[index], widthOf(point.label), { left, right, top: top - 12, bottom }, taken)
    taken.push(box)
    shapes.push(label(point.label, { x: isLeft ? box.right : box.left, y: box.bottom - 4, class: isLeft ? 'end' : '', width: box.right - box.left + 1 }))
  }
  return { height: bottom + 42, shapes, marks }
}

/** @typedef {{left: number, right: number, top: number, bottom: number}} Box */

/** Height of a label in pixels. */
const LABEL_HEIGHT = 16
/** Heights of a label relative to its point: beside it first, then ever further above and below. */
const SHIFTS = [-6, 10, -22, 26, -38, 42]

/**
 * Finds the place of a label beside its point where it covers least of what is there.
 *
 * @param {{x: number, y: number}} point
 * @param {number} width
 * @param {Box} room
 * @param {Box[]} taken
 * @returns {{box: Box, isLeft: boolean}}
 */
function placeOf(point, width, room, taken) {
  const places = SHIFTS.flatMap((shift) => [false, true].map((isLeft) => {
    const bottom = point.y + shift + 4
    const box = isLeft ? { left: Math.max(room.left, point.x - 10 - width), right: point.x - 10, top: bottom - LABEL_HEIGHT, bottom }
      : { left: point.x + 10, right: Math.min(room.right, point.x + 10 + width), top: bottom - LABEL_HEIGHT, bottom }
    const cut = width - (box.right - box.left)
    const isOutside = box.top < room.top || box.bottom > room.bottom
    const covered = taken.reduce((sum, other) => sum + overlap(box, other), 0)
    return { box, isLeft, cost: covered + Math.max(0, cut) * LABEL_HEIGHT + (isOutside ? width * LABEL_HEIGHT : 0) + Math.abs(shift) / 100 }
  }))
  return places.reduce((best, place) => (place.cost < best.cost ? place : best))
}

/**
 * Returns the area that two boxes share, in square pixels.
 *
 * @param {Box} one
 * @param {Box} other
 */
function overlap(one, other) {
  const width = Math.min(one.right, other.right) - Math.max(one.left, other.left)
  const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
  return width > 0 && height > 0 ? width * height : 0
}
