/** Form for the reader's key: bearer key or access token, or the operator's secret. */

import { api } from '../core/api.js'
import { toast } from '../core/states.js'
import { field, h } from '../core/dom.js'
import { openDialog } from './dialog.js'

/** Opens the form in a dialog. */
export function openKeyForm() {
  const key = h('input', { type: 'password', name: 'key', autocomplete: 'off', spellcheck: 'false', '.value': api.key })
  const secret = h('input', { type: 'password', name: 'secret', autocomplete: 'off', spellcheck: 'false', '.value': api.adminSecret })
  const remember = h('input', { type: 'checkbox', name: 'remember', '.checked': api.isRemembered })
  openDialog({
    title: 'Your key',
    content: [
      h('p', null, 'Reading needs no key. Actions on a server that isn\'t on your machine need the key or access token that made the run, or the operator\'s secret.'),
      field('Key or access token', key, 'Sent as Authorization: Bearer with every request to this server.'),
      field('Operator\'s secret', secret, 'Only for the operator of this server.'),
      h('label', { class: 'check' }, remember, ' Keep it in this browser after the page is closed'),
    ],
    action: 'Use',
    run: async () => {
      await checkSecret(secret.value.trim())
      api.rememberKey(remember.checked)
      api.key = key.value
      api.adminSecret = secret.value
      toast(api.key || api.adminSecret ? 'Key set.' : 'Key removed.')
    },
  })
}

/**
 * Asks for what only the operator may read, so that a wrong secret is refused where it is entered. Reading other things
 * would never tell.
 *
 * @param {string} secret empty for none
 */
async function checkSecret(secret) {
  if (secret) await api.get('/api/admin/access', { withoutKey: true, headers: { 'x-admin-secret': secret } })
}
