/**
 * `<bench-table>`: a table of any number of rows, of which only those in sight are in the document.
 *
 * Keyboard: arrow keys or `j`/`k` select, Page Up, Page Down, Home and End jump, Enter opens. The selection is kept by key
 * when rows change, so that updates move nothing that stays.
 */

import { h, replace, setText } from '../core/dom.js'
import { rowHeight, TableLines } from './table-lines.js'

/**
 * @template T
 * @typedef {object} Column
 * @property {string} key name in `sort`
 * @property {string} label
 * @property {string} width for `grid-template-columns`, in rem: `8rem` or `minmax(10rem, 2fr)`
 * @property {boolean} [number] aligned to the right
 * @property {boolean} [sortable]
 * @property {string} [title] explanation of the column
 * @property {(row: T) => import('../core/dom.js').Child} cell
 */

/**
 * @template T
 * @typedef {object} TableOptions
 * @property {string} label name for screen readers
 * @property {Column<T>[]} columns
 * @property {(row: T) => string} key
 * @property {(row: T) => string} [href] address that a row opens; the first cell becomes a link
 * @property {(row: T) => void} [open] opens a row without an address
 * @property {(key: string, descending: boolean) => void} [sort] asks for another order
 * @property {(first: number, last: number) => void} [need] asks for rows that aren't loaded
 * @property {string} [nothing] text if there are no rows
 */

/** Rows before and after the visible ones that are kept, so that scrolling shows no gaps. */
const MARGIN = 10

/** @template T */
export class BenchTable extends HTMLElement {
  /** @type {TableOptions<T> | null} */
  #options = null
  /** @type {(T | undefined)[]} */
  #rows = []
  #count = 0
  /** False while rows can't be sorted, because not all are loaded. */
  isSortable = true
  #selected = -1
  #selectedKey = ''
  #rowHeight = rowHeight()
  #frame = 0
  #head = h('div', { class: 'head', role: 'row', 'aria-rowindex': '1' })
  #body = h('div', { class: 'body', role: 'rowgroup' })
  /** Lines in the document. @type {TableLines<T>} */
  #lines = new TableLines(this.#body, this.#rowHeight)
  #nothing = h('p', { class: 'nothing' })
  #viewport = h('div', { class: 'viewport', role: 'grid', tabindex: '0', 'aria-readonly': 'true' },
    h('div', { role: 'rowgroup', class: 'headgroup' }), this.#body)
  /** @type {ResizeObserver | null} */
  #observer = null

  connectedCallback() {
    if (!this.#viewport.isConnected) {
      this.append(this.#viewport, this.#nothing)
      this.#viewport.firstElementChild?.replaceWith(this.#head)
      this.#viewport.addEventListener('scroll', () => this.#schedule(), { passive: true })
      this.#viewport.addEventListener('keydown', (event) => this.#key(event))
      this.#viewport.addEventListener('focus', () => { if (this.#selected < 0 && this.#count > 0) this.select(0) })
      this.#body.addEventListener('click', (event) => this.#click(event))
    }
    this.#observer = new ResizeObserver(() => this.#schedule())
    this.#observer.observe(this.#viewport)
    this.#schedule()
  }

  disconnectedCallback() {
    this.#observer?.disconnect()
    cancelAnimationFrame(this.#frame)
    this.#frame = 0
  }

  /** @param {TableOptions<T>} options */
  set options(options) {
    this.#options = options
    this.#viewport.setAttribute('aria-label', options.label)
    this.#viewport.setAttribute('aria-colcount', String(options.columns.length))
    this.style.setProperty('--row-height', `${this.#rowHeight}px`)
    this.style.setProperty('--columns', options.columns.map(({ width }) => width).join(' '))
    const least = options.columns.reduce((sum, { width }) => sum + Number(/([\d.]+)rem/.exec(width)?.[1] ?? 5), 0)
    this.style.setProperty('--table-min', `${least}rem`)
    setText(this.#nothing, options.nothing ?? 'No rows.')
    this.setSort('', false)
    this.#lines.reset(options)
    this.#schedule()
  }

  /**
   * Shows in which order the rows are.
   *
   * @param {string} key
   * @param {boolean} descending
   */
  setSort(key, descending) {
    const { columns, sort } = /** @type {TableOptions<T>} */ (this.#options)
    replace(this.#head, columns.map((column) => {
      const isSorted = column.key === key
      return h('div', {
        role: 'columnheader', class: column.number ? 'number' : null, title: column.title,
        'aria-sort': isSorted ? (descending ? 'descending' : 'ascending') : null,
      }, column.sortable && sort && this.isSortable
        ? h('button', { type: 'button', on: { click: () => sort(column.key, isSorted ? !descending : Boolean(column.number)) } },
          column.label, isSorted && h('span', { 'aria-hidden': 'true' }, descending ? ' ↓' : ' ↑'))
        : column.label)
    }))
  }

  /**
   * Shows these rows. A row that isn't loaded is undefined.
   *
   * @param {(T | undefined)[]} rows
   * @param {number} [count] number of rows, if more exist than are given
   */
  setRows(rows, count = rows.length) {
    this.#rows = rows
    this.#count = count
    this.#viewport.setAttribute('aria-rowcount', String(count + 1))
    this.#body.style.setProperty('height', `${count * this.#rowHeight}px`)
    this.#nothing.hidden = count > 0
    this.#viewport.hidden = count === 0
    if (this.#selectedKey) {
      const key = this.#options?.key
      this.#selected = rows.findIndex((row) => row !== undefined && key?.(row) === this.#selectedKey)
    }
    this.#schedule()
  }

  /** Index of the first row in sight. */
  get firstVisible() { return Math.floor(this.#viewport.scrollTop / this.#rowHeight) }

  /** Row that is selected; null for none. @returns {T | null} */
  get selected() { return this.#rows[this.#selected] ?? null }

  /**
   * Selects a row and scrolls to it.
   *
   * @param {number} index
   */
  select(index) {
    if (this.#count === 0) return
    this.#selected = Math.max(0, Math.min(this.#count - 1, index))
    const row = this.#rows[this.#selected]
    this.#selectedKey = row === undefined ? '' : this.#options?.key(row) ?? ''
    const top = this.#selected * this.#rowHeight
    const view = this.#viewport
    const space = view.clientHeight - this.#head.offsetHeight
    if (top < view.scrollTop) view.scrollTop = top
    else if (top + this.#rowHeight > view.scrollTop + space) view.scrollTop = top + this.#rowHeight - space
    this.#draw()
  }

  /**
   * Selects a row by its key, as when the reader comes back from it.
   *
   * @param {string} key
   */
  selectKey(key) {
    const index = this.#rows.findIndex((row) => row !== undefined && this.#options?.key(row) === key)
    if (index >= 0) this.select(index)
  }

  #schedule() {
    if (!this.#frame && this.isConnected) this.#frame = requestAnimationFrame(() => { this.#frame = 0; this.#draw() })
  }

  #draw() {
    if (!this.#options || this.#viewport.hidden) return
    const { scrollTop, clientHeight } = this.#viewport
    const top = Math.floor(scrollTop / this.#rowHeight)
    const end = Math.ceil((scrollTop + clientHeight) / this.#rowHeight)
    // After a jump, no line can stay. Those in sight come first, and the margins with the next frame.
    const isJump = !this.#lines.at(top) && !this.#lines.at(end - 1)
    const margin = isJump ? 0 : MARGIN
    const first = Math.max(0, top - margin)
    const last = Math.min(this.#count, end + margin)
    if (isJump && first < last) this.#schedule()
    const isMissing = this.#lines.draw(this.#rows, { first, last, selected: this.#selected })
    const selected = this.#lines.at(this.#selected)
    if (selected) this.#viewport.setAttribute('aria-activedescendant', selected.id)
    else this.#viewport.removeAttribute('aria-activedescendant')
    if (isMissing) this.#options.need?.(first, last)
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {Element} */ (event.target)
    const line = /** @type {HTMLElement | null} */ (target.closest('.line'))
    if (!line || target.closest('a, button, input, label') || getSelection()?.toString()) return
    this.#selected = Number(line.dataset.index)
    this.#open(line)
  }

  /** @param {HTMLElement | undefined} line */
  #open(line) {
    const row = this.selected
    if (row === null) return
    if (this.#options?.href) line?.querySelector('a')?.click()
    else this.#options?.open?.(row)
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.#viewport) return
    const page = Math.max(1, Math.floor(this.#viewport.clientHeight / this.#rowHeight) - 2)
    const at = this.#selected
    const to = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.#count - 1,
    }[event.key]
    if (to !== undefined) this.select(to)
    else if (event.key === 'Enter') this.#open(this.#lines.at(at))
    else return
    event.preventDefault()
  }
}
customElements.define('bench-table', BenchTable)

/**
 * Makes a windowed table.
 *
 * @template T
 * @param {TableOptions<T>} options
 * @returns {BenchTable<T>}
 */
export function windowedTable(options) {
  const table = /** @type {BenchTable<T>} */ (document.createElement('bench-table'))
  table.options = options
  return table
}
