/** A sign-in that failed: why, and what to do. */

import { h, replace, setText } from '../core/dom.js'
import { session, signInAddress } from '../core/session.js'

/** Longest text of the address that is shown, in characters: anybody can write an address. */
const TEXT_MAX = 300

const REFUSED_REQUEST = 'The sign-in provider doesn’t accept this server’s request. Tell the operator.'
const UNFINISHED = 'The sign-in provider didn’t finish the sign-in. Try again.'

/** @type {Record<string, string>} reasons by the server's codes */
const REASONS = {
  access_denied: 'The sign-in was canceled or not allowed.',
  temporarily_unavailable: 'The sign-in provider is busy. Try again in a few minutes.',
  invalid_request: REFUSED_REQUEST,
  invalid_scope: REFUSED_REQUEST,
  unauthorized_client: REFUSED_REQUEST,
  unsupported_response_type: REFUSED_REQUEST,
  login_required: UNFINISHED,
  consent_required: UNFINISHED,
  interaction_required: UNFINISHED,
  account_selection_required: UNFINISHED,
  provider_error: UNFINISHED,
  missing_params: 'The sign-in came back without its code or state. Sign in again.',
  invalid_state: 'This sign-in was already used, took longer than 10 minutes, or was begun in another browser. Sign in again.',
  wrong_issuer: 'The sign-in came back from another provider than the one that it was sent to. Sign in again.',
  too_many_attempts: 'Too many sign-ins were begun from this address. Try again in a minute.',
  provider_unreachable: 'The sign-in provider can’t be reached or takes too long. Try again in a few minutes.',
  provider_invalid: 'The sign-in provider answered with something that this server doesn’t accept. Tell the operator.',
  token_exchange_failed: 'The sign-in provider didn’t accept the code of this sign-in. Sign in again.',
  invalid_id_token: 'The sign-in provider’s statement about the user doesn’t hold. Sign in again, or tell the operator.',
  user_info_failed: 'The sign-in provider didn’t say who the user is. Sign in again.',
  server_error: 'The server couldn’t finish the sign-in. Try again in a few minutes.',
}

/** @param {import('../app.js').Context} context */
export async function mount({ root, query, signal, title }) {
  title('Sign-in failed')
  const [description, code] = ['description', 'error'].map((name) => (query.get(name) ?? '').trim().slice(0, TEXT_MAX))
  const reason = Object.hasOwn(REASONS, code) ? REASONS[code] : null
  // Not this site's words: they may be anybody's who wrote the address.
  const quoted = reason ? '' : description || code
  const state = h('p', { class: 'dim' })
  const showState = () => { setText(state, session.isSignedIn ? 'You are still signed in.' : 'You are not signed in. Reading public runs needs no sign-in.'); state.hidden = !session.state }
  session.addEventListener('change', showState, { signal })
  replace(root,
    h('h1', null, 'Sign-in failed'),
    h('section', { class: 'state failure', role: 'alert' },
      h('p', null, reason ?? (quoted ? 'The sign-in failed for a reason that this site doesn’t know.' : 'The provider gave no reason.')),
      quoted && h('p', null, 'The address of this page quotes the provider:'),
      quoted && h('blockquote', null, h('bdi', null, quoted)),
      reason && h('p', { class: 'dim' }, 'Code: ', h('code', null, code)),
      h('p', { class: 'actions' },
        h('a', { class: 'button primary', href: signInAddress('/') }, 'Try Again'),
        h('a', { class: 'button', href: '/' }, 'Home'))),
    state)
  showState()
}
