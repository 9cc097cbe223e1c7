/** `<bench-interval>`: a value, its interval drawn to scale, and the interval in figures. */

import { h, replace } from '../core/dom.js'
import { interval, percent } from '../core/format.js'

/** Draws on a scale from `low` to `high`, by default 0 to 1. */
export class BenchInterval extends HTMLElement {
  /**
   * @param {number | null | undefined} value
   * @param {{low: number, high: number} | null | undefined} range
   * @param {{scale?: [number, number], text?: boolean}} [options] `text: false` leaves the interval in figures out
   */
  show(value, range, { scale = [0, 1], text = true } = {}) {
    const at = (/** @type {number} */ v) => Math.min(1, Math.max(0, (v - scale[0]) / (scale[1] - scale[0])))
    const known = value !== null && value !== undefined
    replace(this,
      h('span', { class: 'value' }, percent(value)),
      known && h('span', {
        class: 'track', 'aria-hidden': 'true',
        style: { '--at': at(value), '--low': at(range?.low ?? value), '--high': at(range?.high ?? value) },
      }, range && h('span', { class: 'range' }), h('span', { class: 'dot' })),
      text && range && h('span', { class: 'text' },
        h('span', { class: 'visually-hidden' }, '95% interval '), interval(range)))
  }
}
customElements.define('bench-interval', BenchInterval)

/**
 * Makes a value with its interval.
 *
 * @param {number | null | undefined} value
 * @param {{low: number, high: number} | null | undefined} range
 * @param {{scale?: [number, number], text?: boolean}} [options]
 */
export function intervalFigure(value, range, options) {
  const element = /** @type {BenchInterval} */ (document.createElement('bench-interval'))
  element.show(value, range, options)
  return element
}
