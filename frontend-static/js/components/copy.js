/** `<bench-copy>`: a text with a button that copies it. */

import { announce } from '../core/states.js'
import { h, replace, setText } from '../core/dom.js'

/** Characters of the text that name the button for screen readers. */
const NAME_MAX = 60

/** The text is the property `text`, or what is inside. With the attribute `inline` it is shown within a line. `data-name` says what it is. */
export class BenchCopy extends HTMLElement {
  #text = ''

  get text() { return this.#text }
  set text(value) {
    this.#text = value
    if (this.isConnected) this.#show()
  }

  connectedCallback() {
    this.#text ||= this.textContent ?? ''
    this.#show()
  }

  #show() {
    const start = this.#text.split('\n')[0].slice(0, NAME_MAX)
    const button = h('button', { type: 'button', class: 'button small', 'aria-label': `Copy ${this.dataset.name ?? (start === this.#text ? start : `${start}…`)}` }, 'Copy')
    button.addEventListener('click', async () => {
      const done = await copyText(this.#text)
      setText(button, done ? 'Copied' : 'Select and copy')
      announce(done ? 'Copied.' : 'The browser doesn\'t allow copying here.')
      setTimeout(() => setText(button, 'Copy'), 2000)
    })
    const text = this.hasAttribute('inline') ? h('code', { class: 'text' }, this.#text) : h('pre', { tabindex: '0' }, this.#text)
    replace(this, text, button)
  }
}
customElements.define('bench-copy', BenchCopy)

/**
 * Copies a text to the clipboard. False if the browser refuses.
 *
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/**
 * Makes a text with a copy button.
 *
 * @param {string} text
 * @param {{inline?: boolean, name?: string}} [options] `name` says what it is, for screen readers; by default its beginning does
 */
export function copyBox(text, { inline = false, name } = {}) {
  const element = /** @type {BenchCopy} */ (document.createElement('bench-copy'))
  if (inline) element.setAttribute('inline', '')
  if (name) element.dataset.name = name
  element.text = text
  return element
}
