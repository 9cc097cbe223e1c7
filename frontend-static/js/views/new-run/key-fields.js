/** Keys for one run. They stay in memory, unless the reader asks this browser to keep them. */

import { api } from '../../core/api.js'
import { h, setText } from '../../core/dom.js'
import { payer, session } from '../../core/session.js'
import { framed, setProblem } from './control.js'
import { modelsOf } from './state.js'

/**
 * Makes the field of the key that pays for the answers.
 *
 * @param {import('./state.js').OrderState} state
 * @param {{what?: string, signal: AbortSignal}} options `what` names what is paid
 */
export function keyField(state, { what = 'this run', signal }) {
  const remember = h('label', { class: 'check' },
    h('input', {
      type: 'checkbox', '.checked': api.isRemembered && api.key !== '',
      on: { change: (/** @type {Event & {target: HTMLInputElement}} */ event) => { state.remember = event.target.checked } },
    }),
    ' Keep it in this browser after the page is closed')
  const key = secretField('key', `Key for ${what}`,
    `Key of the model’s provider, or an access token of this server. The server stores it encrypted, uses it for ${what} only, and deletes it afterwards. Here it stays in memory.`,
    fromHeader(),
    (value) => { state.key = value; state.changed('key') })
  key.append(remember)
  api.addEventListener('key', () => {
    key.querySelector('input')?.setAttribute('placeholder', fromHeader())
    if (api.key) setProblem(key, null)
  }, { signal })
  return key
}

/**
 * Makes the phrase that says who pays without a key for this run, and keeps it up to date.
 *
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
export function payerPhrase(state, signal) {
  const element = h('span', null)
  const show = () => setText(element, state.key ? 'set' : phraseOf(modelsOf(state.order, state.sweep)))
  state.addEventListener('change', show)
  session.addEventListener('change', show, { signal })
  api.addEventListener('key', show, { signal })
  show()
  return element
}

/** @param {string[]} models */
function phraseOf(models) {
  const who = payer()
  if (!session.isSignedIn || who === 'credentials') return 'only if you pay yourself, or this server asks for one'
  // Servers that don't name the payer have models of Chutes only, without its name.
  const hasOthers = session.state?.pays != null && models.some((model) => model.includes('/') && !model.startsWith('chutes/'))
  if (who === 'user' && hasOthers) return 'needed, unless the operator pays: your Chutes account pays for Chutes models only'
  if (who === 'user') return 'none needed: your Chutes account pays for models of Chutes'
  return who === 'operator' ? 'none needed: the operator of this server pays' : 'needed: your account may not pay for runs'
}

function fromHeader() {
  return api.key ? 'the key from the header' : ''
}

/**
 * Makes the field of the judge's key.
 *
 * @param {import('./state.js').OrderState} state
 */
export function judgeKeyField(state) {
  return secretField('judge_key', 'Key for the judge',
    'Only if the judge’s provider isn’t the model’s, and the server has no key of its own for it.', '',
    (value) => { state.judgeKey = value; state.changed('judge_key') })
}

/**
 * Makes the field of the user model's key.
 *
 * @param {import('./state.js').OrderState} state
 */
export function userKeyField(state) {
  return secretField('user_key', 'Key for the user model',
    'Only if the user model’s provider isn’t the model’s, and the server has no key of its own for it.', '',
    (value) => { state.userKey = value; state.changed('user_key') })
}

/**
 * @param {string} path
 * @param {string} label
 * @param {string} hint
 * @param {string} placeholder
 * @param {(value: string) => void} changed
 */
function secretField(path, label, hint, placeholder, changed) {
  return framed({ path, label, hint, wide: true }, ({ id, describedBy }) => h('input', {
    id, type: 'password', class: 'form-control', name: path, autocomplete: 'off', spellcheck: 'false', placeholder, 'aria-describedby': describedBy,
    'data-1p-ignore': true, on: { input: (/** @type {Event & {target: HTMLInputElement}} */ event) => changed(event.target.value.trim()) },
  }))
}
