/** Sign-in in the header: who is signed in, whose account pays, and the way in and out. */

import { api } from '../core/api.js'
import { h, replace } from '../core/dom.js'
import { plural } from '../core/format.js'
import { router } from '../core/router.js'
import { payer, session, signInAddress } from '../core/session.js'
import { toast, withModule } from '../core/states.js'

/**
 * Shows the state of the sign-in in an element, and keeps it up to date.
 *
 * @param {HTMLElement} element
 */
export function showAccount(element) {
  const show = () => {
    if (!session.state) return
    element.removeAttribute('aria-busy')
    replace(element, contentOf())
  }
  session.addEventListener('change', show)
  api.addEventListener('key', show)
  // A page from the browser's history may be from before a sign-in or sign-out.
  addEventListener('pageshow', ({ persisted }) => { if (persisted) void session.load() })
  void session.load()
}

/** @returns {import('../core/dom.js').Child} */
function contentOf() {
  const { user } = session.state ?? {}
  if (session.isSignedIn && user) {
    const name = user.username || user.id
    const out = h('button', { type: 'button', class: 'button small' }, 'Sign out')
    out.addEventListener('click', () => void signOut(out))
    return [
      h('span', { class: 'initial', 'aria-hidden': 'true', title: `${name}: ${payerInWords()}` }, initialOf(name)),
      h('span', { class: 'who' }, h('bdi', { title: name }, name), h('small', null, payerInWords())),
      out,
    ]
  }
  if (session.isOffered) return signInLink()
  return api.key !== '' && h('span', { class: 'dim' }, 'Using API Key')
}

/**
 * Makes the link that signs in. The address of the view is that of the click, since views change it.
 *
 * @param {string} [classes]
 */
export function signInLink(classes = 'button small') {
  const link = h('a', { class: classes, href: signInAddress() }, h('span', null, 'Sign in', h('span', { class: 'provider' }, ' with Chutes')))
  for (const event of ['click', 'auxclick', 'contextmenu']) link.addEventListener(event, () => { link.href = signInAddress() })
  return link
}

/** Returns the first character of a name as readers see it. @param {string} name */
function initialOf(name) {
  for (const { segment } of new Intl.Segmenter().segment(name.trim())) return segment.toLocaleUpperCase()
  return '?'
}

/** Says whose account pays for runs of this browser. */
function payerInWords() {
  const who = payer()
  if (who === 'credentials') return 'Your key is used instead'
  if (who === 'user') return 'Runs use your Chutes account'
  return who === 'operator' ? 'Runs are paid by the operator' : 'May not pay for runs'
}

/**
 * Signs out. If runs depend on the sign-in, the server refuses until the reader agrees to end them.
 *
 * @param {HTMLButtonElement} button
 */
async function signOut(button) {
  button.disabled = true
  try {
    await api.post('/api/auth/logout', undefined, { withoutKey: true })
    await signedOut()
  } catch (error) {
    const { status, message } = /** @type {Error & {status?: number}} */ (error)
    if (status === 409) await withModule(() => import('./dialog.js'), ({ openDialog }) => askToEnd(openDialog, message))
    else toast(`You are still signed in: ${message}`, { kind: 'bad' })
  } finally {
    button.disabled = false
  }
}

/**
 * @param {typeof import('./dialog.js').openDialog} openDialog
 * @param {string} message of the server
 */
function askToEnd(openDialog, message) {
  openDialog({
    title: 'Sign out and end your runs?',
    content: h('p', null, `${openRunsInWords(message)} paid by your account, which needs the sign-in. Answers that have arrived are kept, and the runs can be requeued after the next sign-in.`),
    action: 'End the runs and sign out', danger: true,
    run: async () => {
      await api.post('/api/auth/logout', { end_runs: true }, { withoutKey: true })
      await signedOut()
    },
  })
}

/** Returns the number of runs with which the server's message begins, as the subject of a sentence. @param {string} message */
function openRunsInWords(message) {
  const count = Number.parseInt(message, 10)
  if (Number.isNaN(count)) return 'Open runs are'
  return `${plural(count, 'open run')} ${count === 1 ? 'is' : 'are'}`
}

/** Shows the view again as others see it, so that nothing private stays on the screen. */
async function signedOut() {
  await session.load()
  pageStart.answers.clear()
  toast('Signed out.')
  router.go(location.pathname + location.search, { replace: true })
}
