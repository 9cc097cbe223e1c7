/**
 * Element around every chart: drawing at the width that it has, reading by pointer and keyboard, and the same numbers as
 * a table.
 */

import { h, replace, svg, uniqueId, useStyles } from '../core/dom.js'
import { router } from '../core/router.js'

await useStyles('components/chart.css')

/**
 * A readable point of a chart.
 *
 * @typedef {object} Mark
 * @property {number} x pixels from the left
 * @property {number} y pixels from the top
 * @property {string} text everything about it, in one line
 * @property {string | null} [href] view that Enter and a click open
 */

/**
 * @typedef {object} Drawing
 * @property {number} height pixels
 * @property {SVGElement[]} shapes
 * @property {Mark[]} marks in reading order
 */

/**
 * @typedef {object} Model
 * @property {string} title
 * @property {string} [note] one sentence about how to read it
 * @property {{label: string, series: number}[]} [legend] names of series
 * @property {(width: number) => Drawing} draw
 * @property {{columns: {label: string, isNumber?: boolean}[], rows: (string | Node)[][]}} table
 */

/** Distance within which the pointer selects a mark, in pixels. */
const REACH = 60

/** Narrowest drawing, in pixels. */
const WIDTH_MIN = 240

export class BenchChart extends HTMLElement {
  /** @type {Model | null} */
  #model = null
  /** @type {ResizeObserver | null} */
  #observer = null
  /** @type {Drawing | null} */
  #drawing = null
  #width = 0
  #selected = -1
  #plot = h('div', { class: 'chart-plot', tabindex: '0', role: 'group', 'aria-roledescription': 'chart' })
  #readout = h('p', { class: 'chart-readout', 'aria-live': 'polite' })
  #ring = svg('circle', { class: 'chart-ring', r: '9' })

  /** What the chart shows. Setting it again redraws and keeps the selected mark. @param {Model} model */
  set model(model) {
    const isFirst = this.#model === null
    this.#model = model
    if (!this.isConnected) return
    if (isFirst || !this.firstChild) this.#build()
    else this.#update()
  }

  connectedCallback() {
    if (this.#model) this.#build()
    this.#observer = new ResizeObserver(() => this.#redraw(false))
    this.#observer.observe(this)
  }

  disconnectedCallback() {
    this.#observer?.disconnect()
  }

  #build() {
    const label = uniqueId('chart')
    const table = h('details', { class: 'chart-table' })
    replace(this, h('figure', { class: 'chart', 'aria-labelledby': label },
      h('figcaption', { id: label, class: 'chart-title' }),
      h('div', { class: 'chart-legend' }), this.#plot,
      h('div', { class: 'chart-foot' }, this.#readout, h('p', { class: 'chart-note' })), table))
    this.#plot.onkeydown = (event) => this.#onKey(event)
    this.#plot.onpointermove = (event) => this.#onPointer(event)
    this.#plot.onpointerleave = () => { if (document.activeElement !== this.#plot) this.#select(-1) }
    this.#plot.onclick = (event) => { this.#onPointer(event); this.#open() }
    this.#plot.onfocus = () => { if (this.#selected < 0 && this.#plot.matches(':focus-visible')) this.#select(0) }
    this.#plot.onblur = () => this.#select(-1)
    this.#update()
  }

  #update() {
    const { title, note, legend = [], table } = /** @type {Model} */ (this.#model)
    const part = (/** @type {string} */ name) => /** @type {HTMLElement} */ (this.querySelector(`.chart-${name}`))
    part('title').textContent = title
    part('note').textContent = note ?? ''
    part('note').hidden = !note
    replace(part('legend'), ...legend.map(({ label, series }) => h('span', { class: 'chart-key' },
      svg('svg', { width: '12', height: '12', 'aria-hidden': 'true' }, shape(series, 6, 6)), label)))
    part('legend').hidden = legend.length === 0
    const open = part('table').hasAttribute('open')
    replace(part('table'), h('summary', null, 'Table'), tableOf(table, title))
    part('table').toggleAttribute('open', open)
    this.#redraw(true)
  }

  /** @param {boolean} isChanged True if the data changed, false if only the width may have. */
  #redraw(isChanged) {
    const width = Math.max(Math.floor(this.#plot.clientWidth), WIDTH_MIN)
    if (!this.#model || !this.isConnected || (!isChanged && width === this.#width)) return
    this.#width = width
    this.#drawing = this.#model.draw(width)
    const { height, shapes, marks } = this.#drawing
    const count = marks.length
    this.#plot.setAttribute('aria-label', `${this.#model.title}. ${count === 1 ? '1 point' : `${count} points`}; arrow keys read them.`)
    replace(this.#plot, svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true', focusable: 'false' }, ...shapes, this.#ring))
    this.#select(Math.min(this.#selected, count - 1))
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const count = this.#drawing?.marks.length ?? 0
    if (count === 0 || event.ctrlKey || event.metaKey || event.altKey) return
    const next = {
      ArrowRight: this.#selected + 1, ArrowDown: this.#selected + 1, ArrowLeft: this.#selected - 1, ArrowUp: this.#selected - 1,
      Home: 0, End: count - 1,
    }[event.key]
    if (next !== undefined) this.#select(Math.max(0, Math.min(next, count - 1)))
    else if (event.key === 'Enter') this.#open()
    else if (event.key === 'Escape') this.#select(-1)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  /** @param {MouseEvent} event */
  #onPointer(event) {
    const box = this.#plot.getBoundingClientRect()
    const [x, y] = [event.clientX - box.left, event.clientY - box.top]
    let nearest = -1
    let least = REACH
    for (const [index, mark] of (this.#drawing?.marks ?? []).entries()) {
      const distance = Math.hypot(mark.x - x, mark.y - y)
      if (distance < least) [nearest, least] = [index, distance]
    }
    this.#select(nearest)
  }

  /** @param {number} index -1 for none. */
  #select(index) {
    this.#selected = index
    const mark = this.#drawing?.marks[index]
    this.#ring.toggleAttribute('hidden', !mark)
    this.#plot.classList.toggle('has-link', Boolean(mark?.href))
    if (mark) {
      this.#ring.setAttribute('cx', String(mark.x))
      this.#ring.setAttribute('cy', String(mark.y))
    }
    const text = mark ? mark.text + (mark.href ? ' · Enter opens it' : '') : ''
    if (this.#readout.textContent !== text) this.#readout.textContent = text
  }

  #open() {
    const href = this.#drawing?.marks[this.#selected]?.href
    if (href) router.go(href)
  }
}

customElements.define('bench-chart', BenchChart)

/**
 * Makes a chart.
 *
 * @param {Model} model
 */
export function chart(model) {
  const made = /** @type {BenchChart} */ (document.createElement('bench-chart'))
  made.model = model
  return made
}

/** @param {Model['table']} table @param {string} title */
function tableOf({ columns, rows }, title) {
  const kind = (/** @type {number} */ at) => (columns[at]?.isNumber ? 'number' : null)
  return h('div', { class: 'chart-scroll', tabindex: '0', role: 'region', 'aria-label': `${title}: table` }, h('table', null,
    h('thead', null, h('tr', null, columns.map(({ label }, at) => h('th', { scope: 'col', class: kind(at) }, label)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((cell, at) =>
      (at === 0 ? h('th', { scope: 'row' }, cell) : h('td', { class: kind(at) }, cell))))))))
}

/** Number of series that differ in shape and color. */
export const SERIES = 6

/**
 * Makes the mark of a series. Series differ in shape as well as in color.
 *
 * @param {number} series Index from 0.
 * @param {number} x
 * @param {number} y
 * @param {string} [kind] Further class.
 */
export function shape(series, x, y, kind = '') {
  const index = series % SERIES
  const name = `chart-mark series-${index + 1} ${kind}`.trim()
  const path = (/** @type {string} */ d) => svg('path', { class: name, d: `M${x} ${y}${d}` })
  switch (index) {
    case 0: return svg('circle', { class: name, cx: x, cy: y, r: 4.5 })
    case 1: return svg('rect', { class: name, x: x - 4, y: y - 4, width: 8, height: 8 })
    case 2: return path('m0 -5.5l5.2 9.5h-10.4z')
    case 3: return path('m0 -5.8l5.8 5.8l-5.8 5.8l-5.8 -5.8z')
    case 4: return path('m0 5.5l5.2 -9.5h-10.4z')
    default: return path('m-1.8 -5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z')
  }
}
