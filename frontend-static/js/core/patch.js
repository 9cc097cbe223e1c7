/** Parts of a view that are drawn again only when what they show has changed. */

import { replace } from './dom.js'

/**
 * Makes a part of a view. `show` draws into the element if the key of the value differs from the last one. If the focus
 * was on an element with `data-key` inside, the new element with the same key gets it.
 *
 * @template [T=unknown]
 * @param {HTMLElement} element
 * @param {(value: T) => unknown} key anything that JSON can write: what the part depends on
 * @param {(value: T) => import('./dom.js').Child} make
 */
export function part(element, key, make) {
  let last = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return {
    element,
    /** @param {T} value */
    show(value) {
      const text = JSON.stringify(key(value)) ?? ''
      if (text === last) return
      clearTimeout(timer)
      if (element.querySelector('bench-menu [aria-expanded="true"]')) {
        // A menu that the reader has open stays; what has changed is drawn once it is closed.
        timer = setTimeout(() => this.show(value), 500)
        return
      }
      last = text
      const active = element.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).closest('[data-key]') : null
      const focused = active?.getAttribute('data-key')
      replace(element, make(value))
      if (focused) {
        /** @type {HTMLElement | null} */ (element.querySelector(`[data-key="${CSS.escape(focused)}"]`))?.focus({ preventScroll: true })
      }
    },
  }
}
