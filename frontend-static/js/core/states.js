/** States that every view and component shares: loading, empty, failed, offline. */

import { h } from './dom.js'

/**
 * Makes the note that something is being loaded. It appears after a moment, so that quick answers don't flicker.
 *
 * @param {string} [label]
 */
export function loading(label = 'Loading') {
  return h('p', { class: 'state loading', role: 'status' }, `${label}…`)
}

/**
 * Makes the note that there is nothing to show, with what to do next.
 *
 * @param {string} title
 * @param {string} text
 * @param {...import('./dom.js').Child} actions
 */
export function empty(title, text, ...actions) {
  return h('section', { class: 'state empty' },
    title && h('h2', null, title), text && h('p', null, text), actions.length > 0 && h('p', { class: 'actions' }, ...actions))
}

/**
 * Makes the note that something failed: what, and what to do.
 *
 * @param {Error & {hint?: string, code?: string | null}} error
 * @param {(() => void) | null} [retry]
 * @param {'h1' | 'h2'} [level] heading; `h1` if the whole view failed
 */
export function failure(error, retry, level = 'h2') {
  return h('section', { class: 'state failure', role: 'alert' },
    h(level, null, error.name === 'OfflineError' ? 'No connection to the server' : 'This didn\'t work'),
    h('p', null, error.message),
    error.hint && h('p', null, error.hint),
    error.code && h('p', { class: 'dim' }, 'Code: ', h('code', null, error.code)),
    (retry || error.code === 'run_not_found') && h('p', { class: 'actions' },
      error.code === 'run_not_found' && h('a', { class: 'button', href: '/runs' }, 'List of runs'),
      retry && h('button', { type: 'button', class: 'button', on: { click: retry } }, 'Try again')))
}

/**
 * Makes one line about an error, for forms and dialogs.
 *
 * @param {Error & {hint?: string}} error
 */
export function problem(error) {
  return h('p', { class: 'problem', role: 'alert' }, error.message, error.hint && ` ${error.hint}`)
}

/** Makes the note that what is shown may be out of date because the server can't be reached. */
export function offlineNote() {
  return h('p', { class: 'note warn', role: 'status' },
    'No connection to the server. What you see may be out of date; the page keeps trying.')
}
