/** What every view and component shares: loading, empty, failed, offline; notices; parts that are loaded on request. */

import { h, setText, withCode } from './dom.js'

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
 * @param {Error & {hint?: string, code?: string | null, status?: number}} error
 * @param {(() => void) | null} [retry]
 * @param {'h1' | 'h2'} [level] heading; `h1` if the whole view failed
 */
export function failure(error, retry, level = 'h2') {
  const isRun = error.code === 'run_not_found'
  const hint = h('p', null, withCode(error.hint ?? ''))
  const actions = h('p', { class: 'actions' },
    isRun && h('a', { class: 'button', href: '/runs' }, 'List of runs'),
    retry && h('button', { type: 'button', class: 'button', on: { click: retry } }, 'Try again'))
  if (isRun) void import('../components/sign-in-advice.js').then(({ adviseSignIn }) => adviseSignIn(hint, actions)).catch(() => {})
  return h('section', { class: 'state failure', role: 'alert' },
    h(level, null, error.name === 'OfflineError' ? 'No connection to the server' : error.status === 404 ? 'Not found' : 'This didn’t work'),
    h('p', null, withCode(error.message)),
    error.hint && hint,
    error.code && h('p', { class: 'dim' }, 'Code: ', h('code', null, error.code)),
    (retry || isRun) && actions)
}

/**
 * Makes one line about an error, for forms and dialogs.
 *
 * @param {Error & {hint?: string}} error
 */
export function problem(error) {
  return h('p', { class: 'problem', role: 'alert' }, withCode(error.message), error.hint && [' ', withCode(error.hint)])
}

/** Makes the note that what is shown may be out of date because the server can't be reached. */
export function offlineNote() {
  return h('p', { class: 'note warn', role: 'status' },
    'No connection to the server. What you see may be out of date; the page keeps trying.')
}

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

/**
 * Loads a module and uses it. A module that can't be loaded is told as a notice.
 *
 * @template M
 * @param {() => Promise<M>} load an `import()`
 * @param {(module: M) => void} use
 */
export async function withModule(load, use) {
  let module
  try {
    module = await load()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    // Browsers remember that, so that only a new page tries again.
    toast('This part of the page couldn’t be loaded. Load the page again when the server can be reached.', { kind: 'bad' })
    return
  }
  use(module)
}
