/** Small figures: a value with its interval, counts of outcomes, progress. */

import { h, replace, setText } from '../core/dom.js'
import { integer, interval, percent } from '../core/format.js'
import { OUTCOME_NAMES, outcomeMark, outcomeOf } from '../core/outcomes.js'

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

export class BenchOutcomes extends HTMLElement {
  /**
   * @param {Record<string, number>} counts by outcome
   * @param {{open?: number, link?: (outcome: string) => string}} [options] `open` is the number of samples that aren't over;
   *   `link` makes the address of the samples with an outcome
   */
  show(counts, { open = 0, link } = {}) {
    const names = [...new Set([...OUTCOME_NAMES, ...Object.keys(counts)])].filter((name) => counts[name] > 0)
    const parts = /** @type {[string | null, number][]} */ (names.map((name) => [name, counts[name]]))
    if (open > 0) parts.push([null, open])
    replace(this,
      h('div', { class: 'bar', 'aria-hidden': 'true' }, parts.map(([name, n]) =>
        h('span', { style: { '--n': n, '--color': name ? `var(${outcomeOf(name).color})` : 'transparent' } }))),
      h('ul', null, parts.map(([name, n]) => h('li', null, h('b', null, integer(n)), ' ',
        name && link ? h('a', { href: link(name) }, outcomeMark(name)) : outcomeMark(name)))))
  }
}
customElements.define('bench-outcomes', BenchOutcomes)

/**
 * Makes a bar of outcomes.
 *
 * @param {Record<string, number>} counts
 * @param {{open?: number, link?: (outcome: string) => string}} [options]
 */
export function outcomesFigure(counts, options) {
  const element = /** @type {BenchOutcomes} */ (document.createElement('bench-outcomes'))
  element.show(counts, options)
  return element
}

export class BenchProgress extends HTMLElement {
  #bar = h('div', { class: 'bar', role: 'progressbar', 'aria-valuemin': '0', 'aria-valuemax': '100' }, h('div', { class: 'fill' }))
  #left = h('span', null)
  #right = h('span', { class: 'dim' })

  connectedCallback() {
    if (!this.#bar.isConnected) this.append(this.#bar, h('div', { class: 'text' }, this.#left, this.#right))
  }

  /**
   * @param {number} completed
   * @param {number} total
   * @param {{label: string, note?: string, unit?: string}} options `label` names the bar for screen readers
   */
  show(completed, total, { label, note = '', unit = 'items' }) {
    const part = total > 0 ? Math.min(1, completed / total) : 0
    this.#bar.style.setProperty('--part', String(part))
    this.#bar.setAttribute('aria-valuenow', String(Math.floor(part * 100)))
    this.#bar.setAttribute('aria-label', label)
    setText(this.#left, `${integer(completed)} of ${integer(total)} ${unit}, ${percent(Math.floor(part * 1000) / 1000)}`)
    setText(this.#right, note)
  }
}
customElements.define('bench-progress', BenchProgress)

/** Makes a progress bar. */
export function progressBar() {
  return /** @type {BenchProgress} */ (document.createElement('bench-progress'))
}
