/** Messages for screen readers and short notices on the screen. */

import { h, setText } from './dom.js'

const polite = h('div', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' })
const toasts = h('div', { class: 'toasts', 'aria-live': 'polite', role: 'status' })

/** Adds the live regions to the page. They have to exist before the first message. */
export function startAnnouncer() {
  document.body.append(polite, toasts)
}

/**
 * Tells screen readers of a change that others can see.
 *
 * @param {string} text
 */
export function announce(text) {
  setText(polite, '')
  requestAnimationFrame(() => setText(polite, text))
}

/**
 * Shows a short notice for some seconds, and says it to screen readers.
 *
 * @param {string} text
 * @param {{kind?: 'good' | 'bad', seconds?: number}} [options]
 */
export function toast(text, { kind = 'good', seconds = 6 } = {}) {
  const element = h('p', { class: `toast ${kind}` }, text)
  toasts.append(element)
  setTimeout(() => element.remove(), seconds * 1000)
}
