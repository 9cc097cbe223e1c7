/** `<bench-progress>`: a bar with its share, and a text below that says it in figures. */

import { h, setText } from '../core/dom.js'
import { integer, percent } from '../core/format.js'

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
