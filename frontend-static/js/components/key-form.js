/** Form for the reader's key: bearer key or access token, or the operator's secret. */

import { api } from '../core/api.js'
import { plural } from '../core/format.js'
import { toast } from '../core/states.js'
import { field, h } from '../core/dom.js'
import { openDialog } from './dialog.js'
import { checkKey, checkSecret } from './key-check.js'

/** First characters of access tokens. */
const TOKEN = 'bra_'

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
      const [givenKey, givenSecret] = [key.value.trim(), secret.value.trim()]
      if (givenSecret) await checkSecret(givenSecret)
      const runs = givenKey ? await checkKey(givenKey) : 0
      api.rememberKey(remember.checked)
      api.key = givenKey
      api.adminSecret = givenSecret
      toast(noticeOf(givenKey, givenSecret, runs))
    },
  })
}

/**
 * Says what the server knows about a key that it accepts.
 *
 * @param {string} key
 * @param {string} secret
 * @param {number} runs runs that belong to the key
 */
function noticeOf(key, secret, runs) {
  if (!key) return secret ? 'Operator’s secret set.' : 'Key removed.'
  if (runs > 0) return `Key set. ${plural(runs, 'run')} of this server ${runs === 1 ? 'belongs' : 'belong'} to it.`
  const isToken = key.startsWith(TOKEN)
  return `${isToken ? 'Access token accepted' : 'Key set'}. No run of this server belongs to it yet${isToken ? '' : '; its provider checks it when you start a run'}.`
}
