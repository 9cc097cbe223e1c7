/** `<bench-copy>`: a text with a button that copies it. */

import { announce } from '../core/announce.js'
import { h, replace, setText } from '../core/dom.js'

/** The text is the property `text`, or what is inside. With the attribute `inline` it is shown within a line. */
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
    const button = h('button', { type: 'button', class: 'button small' }, 'Copy')
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
 * @param {{inline?: boolean}} [options]
 */
export function copyBox(text, { inline = false } = {}) {
  const element = /** @type {BenchCopy} */ (document.createElement('bench-copy'))
  if (inline) element.setAttribute('inline', '')
  element.text = text
  return element
}
