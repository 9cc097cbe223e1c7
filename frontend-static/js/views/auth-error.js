/** A sign-in that failed: why, and what to do. */

import { h, replace } from '../core/dom.js'
import { signInAddress } from '../core/session.js'

/** Longest text that is shown, in characters: anybody can write an address. */
const TEXT_MAX = 500

/** @param {import('../app.js').Context} context */
export async function mount({ root, query, title }) {
  title('Sign-in failed')
  const [description, code] = ['description', 'error'].map((name) => (query.get(name) ?? '').trim().slice(0, TEXT_MAX))
  replace(root,
    h('h1', null, 'Sign-in failed'),
    h('section', { class: 'state failure', role: 'alert' },
      h('p', null, h('bdi', null, description || code || 'The provider gave no reason.')),
      description && code && h('p', { class: 'dim' }, 'Code: ', h('code', null, code)),
      h('p', { class: 'actions' },
        h('a', { class: 'button primary', href: signInAddress('/') }, 'Try Again'),
        h('a', { class: 'button', href: '/' }, 'Home'))),
    h('p', { class: 'dim' }, 'You are not signed in. Reading public runs needs no sign-in.'))
}
