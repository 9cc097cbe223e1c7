/** The account that this browser is signed in with, as the server says. It is loaded once a page, after the first view. */

import { api } from './api.js'

/**
 * State of the sign-in. Servers that know no sign-in leave everything out.
 *
 * @typedef {object} SignIn
 * @property {boolean} [idp_configured] true if readers can sign in
 * @property {boolean} [authenticated]
 * @property {{id: string, username: string} | null} [user]
 * @property {boolean} [has_invoke_scope] true if the account may pay for answers
 * @property {'user' | 'operator' | null} [pays] whose account pays for runs
 * @property {boolean} [may_order_oracle] true if runs of the oracle may be ordered without a key
 */

class Session extends EventTarget {
  /** Null until it is known. @type {SignIn | null} */
  state = null

  /** Loads the state. An error counts as no sign-in: the page works without. */
  async load() {
    try {
      // Without the key, which would count before the account.
      const state = /** @type {SignIn | null} */ (await api.get('/api/auth/status', { withoutKey: true }))
      this.state = state ?? {}
    } catch {
      this.state = {}
    }
    this.dispatchEvent(new Event('change'))
  }

  /** True if the reader is signed in. */
  get isSignedIn() { return Boolean(this.state?.authenticated && this.state.user) }

  /** True if the reader could sign in. */
  get isOffered() { return Boolean(this.state?.idp_configured) && !this.isSignedIn }
}

/** The sign-in of this browser. Sends the event `change` when it is known or changes. */
export const session = new Session()

/**
 * Returns who pays for runs that this browser orders without a key of their own: `credentials` if a key or an admin secret of the
 * page counts before the sign-in, null if the account may not pay.
 *
 * @returns {'credentials' | 'user' | 'operator' | null}
 */
export function payer() {
  if (api.key || api.adminSecret) return 'credentials'
  const { has_invoke_scope: isAllowed, pays = isAllowed ? 'user' : null } = session.state ?? {}
  return pays
}

/**
 * Returns the address that signs in and comes back.
 *
 * @param {string} [back] path of the page; by default the present one
 */
export function signInAddress(back = location.pathname + location.search) {
  return `/api/auth/login?return_to=${encodeURIComponent(back)}`
}
