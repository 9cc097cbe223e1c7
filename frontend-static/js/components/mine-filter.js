/** Switch of a list between everything and what belongs to the reader. It is part of the address. */

import { h } from '../core/dom.js'

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
