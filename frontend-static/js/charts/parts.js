/** Parts that several charts draw: axes, texts, whiskers. */

import { svg } from '../core/dom.js'

/** Width of a character of a chart's text, in pixels; a rough mean, to keep texts inside. */
const CHARACTER = 6.7

/**
 * Makes a text. It is cut to a width and then has its whole text as a title.
 *
 * @param {string} text
 * @param {{x: number, y: number, class?: string, width?: number}} place
 */
export function label(text, { x, y, class: name = '', width = Infinity }) {
  const room = Math.max(Math.floor(width / CHARACTER), 3)
  const isCut = text.length > room
  return svg('text', { x, y, class: `chart-text ${name}`.trim() }, isCut ? `${text.slice(0, room - 1)}…` : text, isCut && svg('title', null, text))
}

/** Returns the width that a text takes, in pixels. @param {string} text */
export function widthOf(text) {
  return text.length * CHARACTER
}

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} name */
export function line(x1, y1, x2, y2, name) {
  return svg('line', { x1, y1, x2, y2, class: name })
}

/**
 * Draws the vertical grid and the labels below it.
 *
 * @param {import('./scale.js').Scale} scale
 * @param {(value: number) => string} format
 * @param {{spans: [number, number][], bottom: number, title?: string, right: number}} place `spans` are the heights that the
 *   lines of the grid cover
 */
export function bottomAxis(scale, format, { spans, bottom, title, right }) {
  const shapes = scale.ticks.flatMap((tick) => {
    const x = scale.to(tick)
    const text = format(tick)
    // A label at the edge begins there, so that none of it is outside.
    const isAtEdge = x < widthOf(text) * 0.6
    return [
      ...spans.map(([top, end]) => line(x, top, x, end, 'chart-grid')),
      label(text, { x: isAtEdge ? 0 : x, y: bottom + 16, class: isAtEdge ? 'dim' : 'middle dim' }),
    ]
  })
  if (title) shapes.push(label(title, { x: right, y: bottom + 34, class: 'end dim' }))
  return shapes
}

/**
 * Draws the horizontal grid and the labels left of it.
 *
 * @param {import('./scale.js').Scale} scale
 * @param {(value: number) => string} format
 * @param {{left: number, right: number}} place
 */
export function leftAxis(scale, format, { left, right }) {
  return scale.ticks.flatMap((tick) => {
    const y = scale.to(tick)
    return [line(left, y, right, y, 'chart-grid'), label(format(tick), { x: left - 8, y: y + 4, class: 'end dim' })]
  })
}

/**
 * Draws a horizontal interval with caps.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} y
 * @param {number} series
 */
export function whisker(from, to, y, series) {
  const name = `chart-whisker series-${series % 6 + 1}`
  return [line(from, y, to, y, name), line(from, y - 4, from, y + 4, name), line(to, y - 4, to, y + 4, name)]
}

/**
 * Draws a vertical interval with caps.
 *
 * @param {number} x
 * @param {number} from
 * @param {number} to
 * @param {number} series
 */
export function uprightWhisker(x, from, to, series) {
  const name = `chart-whisker series-${series % 6 + 1}`
  return [line(x, from, x, to, name), line(x - 4, from, x + 4, from, name), line(x - 4, to, x + 4, to, name)]
}
