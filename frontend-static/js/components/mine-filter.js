/** Switch of a list between everything and what belongs to the reader. It is part of the address. */

import { api } from '../core/api.js'
import { h } from '../core/dom.js'
import { session } from '../core/session.js'
import { empty } from '../core/states.js'

/** Name of the entry in the address, and of the parameter of the API. */
const NAME = 'mine'

/**
 * Makes the switch.
 *
 * @param {typeof import('../core/router.js').query} query
 * @param {() => void} changed
 */
export function mineFilter(query, changed) {
  const check = h('input', { type: 'checkbox', name: NAME, value: 'true', '.checked': query.get(NAME) === 'true' })
  check.addEventListener('change', () => {
    query.set({ [NAME]: check.checked ? 'true' : null, skip: null, offset: null })
    changed()
  })
  return {
    element: h('label', { class: 'check mine' }, check, ' Only mine'),
    /** Value of the parameter of the API; null for everything. */
    get value() { return check.checked ? 'true' : null },
  }
}

/**
 * Makes the note that nothing belongs to the reader.
 *
 * @param {string} name of one, such as `task`
 */
export function noneOfMine(name) {
  const isKnown = session.isSignedIn || api.key !== '' || api.adminSecret !== ''
  return empty(`No ${name}s of yours`, `No ${name} of this server belongs to you.${isKnown ? '' : ' Without your key or a sign-in, a server on another machine doesn’t know which are yours.'}`)
}
