/** `<bench-tabs>`: panels of which one is shown. Arrow keys move between the tabs. */

import { h, replace, uniqueId } from '../core/dom.js'

/** @typedef {{name: string, label: import('../core/dom.js').Child, panel: Element}} Tab */

/** Sends the event `select` with the tab's name as `detail`. */
export class BenchTabs extends HTMLElement {
  /** @type {{name: string, button: HTMLButtonElement, panel: Element}[]} */
  #tabs = []

  /**
   * @param {string} label name of the list of tabs, for screen readers
   * @param {Tab[]} tabs
   * @param {string | null} [selected] name of the selected tab, by default the first
   */
  set(label, tabs, selected) {
    const list = h('div', { role: 'tablist', 'aria-label': label })
    this.#tabs = tabs.map(({ name, label: text, panel }) => {
      const id = uniqueId('tab')
      const button = h('button', { type: 'button', role: 'tab', id, on: { click: () => this.select(name, true) } }, text)
      panel.setAttribute('role', 'tabpanel')
      panel.setAttribute('aria-labelledby', id)
      return { name, button, panel }
    })
    list.append(...this.#tabs.map(({ button }) => button))
    list.addEventListener('keydown', (event) => this.#key(event))
    replace(this, list, ...tabs.map(({ panel }) => panel))
    this.select(tabs.some(({ name }) => name === selected) ? /** @type {string} */ (selected) : tabs[0]?.name)
  }

  connectedCallback() {
    // Before it is laid out, the list can't be scrolled to the selected tab.
    requestAnimationFrame(() => reveal(this.#tabs.find(({ button }) => button.tabIndex === 0)?.button))
  }

  /**
   * Shows a tab.
   *
   * @param {string} name
   * @param {boolean} [byReader] true sends the event
   */
  select(name, byReader = false) {
    for (const tab of this.#tabs) {
      const isSelected = tab.name === name
      tab.button.setAttribute('aria-selected', String(isSelected))
      tab.button.tabIndex = isSelected ? 0 : -1
      tab.panel.toggleAttribute('hidden', !isSelected)
      if (isSelected) reveal(tab.button)
    }
    if (byReader) this.dispatchEvent(new CustomEvent('select', { detail: name }))
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = this.#tabs.findIndex(({ button }) => button === document.activeElement)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.#tabs.length - 1 }[event.key]
    if (at < 0 || to === undefined) return
    const tab = this.#tabs[(to + this.#tabs.length) % this.#tabs.length]
    event.preventDefault()
    this.select(tab.name, true)
    tab.button.focus()
  }
}
customElements.define('bench-tabs', BenchTabs)

/**
 * Scrolls the list sideways to a tab, and nothing else: `scrollIntoView` would move the page too.
 *
 * @param {HTMLElement | undefined} button
 */
function reveal(button) {
  const list = button?.parentElement
  if (!button || !list) return
  const [start, end] = [button.offsetLeft - list.offsetLeft, button.offsetLeft - list.offsetLeft + button.offsetWidth]
  if (start < list.scrollLeft) list.scrollLeft = start
  else if (end > list.scrollLeft + list.clientWidth) list.scrollLeft = end - list.clientWidth
}

/**
 * Makes tabs.
 *
 * @param {string} label
 * @param {Tab[]} tabs
 * @param {string | null} [selected]
 */
export function tabs(label, tabs, selected) {
  const element = /** @type {BenchTabs} */ (document.createElement('bench-tabs'))
  element.set(label, tabs, selected)
  return element
}
