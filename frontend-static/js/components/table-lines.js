/** Lines of a windowed table: only those in sight are in the document, and their elements are reused. */

import { h, replace, setText, uniqueId } from '../core/dom.js'

/** Height of a row in pixels: that of a touch target where a finger points, otherwise 2 rem. */
export function rowHeight() {
  return matchMedia('(pointer: coarse)').matches ? 44 : 32
}

/** @template T */
export class TableLines {
  /** Lines in the document by index. @type {Map<number, {line: HTMLElement, row: T | undefined}>} */
  #lines = new Map()
  /** @type {import('./table.js').TableOptions<T> | null} */
  #options = null
  #id = uniqueId('table')
  #body
  #rowHeight

  /**
   * @param {HTMLElement} body
   * @param {number} rowHeight pixels
   */
  constructor(body, rowHeight) {
    this.#body = body
    this.#rowHeight = rowHeight
  }

  /**
   * Removes all lines. New ones get these columns.
   *
   * @param {import('./table.js').TableOptions<T>} options
   */
  reset(options) {
    this.#options = options
    this.#lines.clear()
    replace(this.#body)
  }

  /**
   * Returns the line of a row; undefined if it isn't in the document.
   *
   * @param {number} index
   */
  at(index) { return this.#lines.get(index)?.line }

  /**
   * Draws the rows from `first` to before `last`, and changes only lines that differ.
   *
   * @param {(T | undefined)[]} rows
   * @param {{first: number, last: number, selected: number}} range
   * @returns {boolean} true if a row isn't loaded
   */
  draw(rows, { first, last, selected }) {
    /** @type {HTMLElement[]} */
    const free = []
    for (const [index, { line }] of this.#lines) {
      if (index < first || index >= last) { free.push(line); this.#lines.delete(index) }
    }
    let isMissing = false
    for (let index = first; index < last; index += 1) {
      const row = rows[index]
      isMissing ||= row === undefined
      let entry = this.#lines.get(index)
      if (!entry) {
        const line = free.pop() ?? this.#newLine()
        entry = { line, row: undefined }
        this.#lines.set(index, entry)
        this.#place(line, index)
        this.#fill(line, row)
        entry.row = row
      } else if (entry.row !== row) {
        this.#fill(entry.line, row)
        entry.row = row
      }
      const isSelected = String(index === selected)
      if (entry.line.getAttribute('aria-selected') !== isSelected) entry.line.setAttribute('aria-selected', isSelected)
    }
    for (const line of free) line.remove()
    return isMissing
  }

  #newLine() {
    const columns = this.#options?.columns ?? []
    const line = h('div', { class: 'line', role: 'row' },
      columns.map((column) => h('div', { role: 'gridcell', class: column.number ? 'number' : null })))
    this.#body.append(line)
    return line
  }

  /**
   * @param {HTMLElement} line
   * @param {number} index
   */
  #place(line, index) {
    line.dataset.index = String(index)
    line.id = `${this.#id}-${index}`
    line.setAttribute('aria-rowindex', String(index + 2))
    line.style.setProperty('transform', `translateY(${index * this.#rowHeight}px)`)
  }

  /**
   * @param {HTMLElement} line
   * @param {T | undefined} row
   */
  #fill(line, row) {
    const { columns, href } = /** @type {import('./table.js').TableOptions<T>} */ (this.#options)
    columns.forEach((column, i) => {
      const content = row === undefined ? (i === 0 ? '…' : '') : column.cell(row)
      const cell = /** @type {Element} */ (line.children[i])
      if (row !== undefined && i === 0 && href) {
        const link = cell.firstElementChild
        if (link instanceof HTMLAnchorElement && typeof content === 'string') { link.href = href(row); setText(link, content) }
        else replace(cell, h('a', { href: href(row), tabindex: '-1' }, content))
      }
      else if (typeof content === 'string') setText(cell, content)
      // Most neighbors have the same outcome: an equal element needs no style and no layout of its own.
      else if (!(content instanceof Node && cell.childNodes.length === 1 && content.isEqualNode(cell.firstChild))) replace(cell, content)
    })
  }
}
