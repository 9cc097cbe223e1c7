/** `<bench-menu>`: a button with a list of actions and links. Arrow keys move, Escape closes; what is chosen or closed gives the focus back. */

import { h, replace, uniqueId } from '../core/dom.js'

/** @typedef {{label: string, run?: () => void, href?: string, download?: boolean | string, danger?: boolean} | null} MenuItem null is a line */

export class BenchMenu extends HTMLElement {
  #button = h('button', { type: 'button', class: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false' })
  #list = h('div', { class: 'items', role: 'menu', hidden: true, id: uniqueId('menu') })
  /** @type {AbortController | null} */
  #open = null

  connectedCallback() {
    if (this.#button.isConnected) return
    this.#button.setAttribute('aria-controls', this.#list.id)
    this.append(this.#button, this.#list)
    this.#button.addEventListener('click', () => (this.#open ? this.close() : this.#show()))
    this.addEventListener('keydown', (event) => this.#key(event))
  }

  disconnectedCallback() { this.#open?.abort() }

  /**
   * @param {string} label
   * @param {MenuItem[]} items
   * @param {string} [name] name for screen readers, if the label is a symbol
   */
  set(label, items, name) {
    replace(this.#button, label, h('span', { 'aria-hidden': 'true' }, '▾'))
    if (name) this.#button.setAttribute('aria-label', name)
    this.#button.dataset.key = `menu ${label}`
    this.#list.setAttribute('aria-label', name ?? label)
    replace(this.#list, items.map((item) => {
      if (!item) return h('hr', null)
      const props = { role: 'menuitem', tabindex: '-1', class: item.danger ? 'danger' : null, on: { click: () => { this.close(); this.#button.focus(); item.run?.() } } }
      return item.href
        ? h('a', { ...props, href: item.href, download: item.download ?? null }, item.label)
        : h('button', { ...props, type: 'button' }, item.label)
    }))
  }

  /** Closes the list. */
  close() {
    this.#open?.abort()
    this.#open = null
    this.#list.hidden = true
    this.#button.setAttribute('aria-expanded', 'false')
  }

  #show() {
    const controller = this.#open = new AbortController()
    this.#list.hidden = false
    this.#button.setAttribute('aria-expanded', 'true')
    const overflow = this.#list.getBoundingClientRect().left
    this.#list.style.setProperty('right', overflow < 8 ? 'auto' : '')
    this.#list.style.setProperty('left', overflow < 8 ? '0' : '')
    this.#items()[0]?.focus()
    document.addEventListener('pointerdown', (event) => {
      if (!event.composedPath().includes(this)) this.close()
    }, { signal: controller.signal })
    this.addEventListener('focusout', (event) => {
      if (event.relatedTarget && !this.contains(/** @type {Node} */ (event.relatedTarget))) this.close()
    }, { signal: controller.signal })
  }

  /** @returns {HTMLElement[]} */
  #items() { return [.../** @type {NodeListOf<HTMLElement>} */ (this.#list.querySelectorAll('[role="menuitem"]'))] }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!this.#open) return
    const items = this.#items()
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement))
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key]
    if (event.key === 'Escape') { this.close(); this.#button.focus() }
    else if (to !== undefined) items[(to + items.length) % items.length]?.focus()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
}
customElements.define('bench-menu', BenchMenu)

/**
 * Makes a menu.
 *
 * @param {string} label
 * @param {MenuItem[]} items
 */
export function menu(label, items) {
  const element = /** @type {BenchMenu} */ (document.createElement('bench-menu'))
  element.set(label, items)
  return element
}
