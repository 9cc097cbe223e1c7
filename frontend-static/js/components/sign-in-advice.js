/** Advice for readers who may not see something because they aren't signed in as its owner. */

import { h, setText } from '../core/dom.js'
import { session } from '../core/session.js'
import { signInLink } from './account.js'

/**
 * Adds the sign-in to the failure of a view whose run wasn't found, if this server has one: others' private runs don't exist for it.
 *
 * @param {HTMLElement} hint
 * @param {HTMLElement} actions
 */
export function adviseSignIn(hint, actions) {
  const show = () => {
    if (!session.state?.idp_configured) return
    setText(hint, 'It may have been deleted, or is private: sign in as its owner.')
    if (session.isOffered) actions.prepend(h('span', null, signInLink('button primary')))
  }
  if (session.state) show()
  else session.addEventListener('change', show, { once: true })
}
