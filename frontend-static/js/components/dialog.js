/** `<bench-dialog>`: a native dialog with a heading, content and buttons. Focus returns to where it was. */

import { h, replace, uniqueId } from '../core/dom.js'
import { problem } from '../core/states.js'

/**
 * @typedef {object} DialogOptions
 * @property {string} title
 * @property {import('../core/dom.js').Child} content
 * @property {string} [action] text of the button that does it; without it, the dialog only closes
 * @property {boolean} [danger] true if the action destroys something
 * @property {(form: FormData) => Promise<void> | void} [run] does it; an error stays in the dialog
 * @property {boolean} [wide]
 */

/** A dialog element, so that its style and its life are in one place. */
export class BenchDialog extends HTMLElement {
  /** @type {DialogOptions | null} */
  options = null

  connectedCallback() {
    const { options } = this
    if (!options) return
    const id = uniqueId('dialog')
    const errors = h('div', null)
    const cancel = h('button', { type: 'button', class: 'button', on: { click: () => dialog.close() } }, options.action ? 'Cancel' : 'Close')
    const submit = options.action && h('button', { type: 'submit', class: `button primary${options.danger ? ' danger' : ''}` }, options.action)
    const form = h('form', { method: 'dialog' },
      h('h2', { id }, options.title), h('div', { class: 'content' }, options.content), errors,
      h('p', { class: 'actions' }, submit, cancel))
    const dialog = h('dialog', { 'aria-labelledby': id, class: options.wide ? 'wide' : null }, form)
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      if (submit) submit.disabled = true
      replace(errors)
      try {
        await options.run?.(new FormData(form))
        dialog.close()
      } catch (error) {
        replace(errors, problem(/** @type {Error} */ (error)))
      } finally {
        if (submit) submit.disabled = false
      }
    })
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close() })
    dialog.addEventListener('close', () => this.remove())
    this.append(dialog)
    dialog.showModal()
  }
}
customElements.define('bench-dialog', BenchDialog)

/**
 * Opens a dialog.
 *
 * @param {DialogOptions} options
 * @returns {{close: () => void}}
 */
export function openDialog(options) {
  const element = /** @type {BenchDialog} */ (document.createElement('bench-dialog'))
  element.options = options
  document.body.append(element)
  return { close: () => element.querySelector('dialog')?.close() }
}
