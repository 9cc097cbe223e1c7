/** Keys that the reader trusts in this tab: those of the server that served the page, and those that were pasted or dropped. */

import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { date } from '../../core/format.js'
import { parseKeys } from '../../archive/keys.js'

/** @typedef {import('../../archive/keys.js').Key} Key */

/** Largest list of keys, in characters. */
const LIST_CHARS_MAX = 200_000

/** Keys of the tab. They are forgotten with it. Sends the event `change`. */
class TrustedKeys extends EventTarget {
  /** @type {Key[]} */
  #own = []
  /** @type {Key[]} */
  #added = []
  /** Why there are no keys of the server; empty if there are. */
  problem = ''

  /** All keys, those of the server first. */
  get all() {
    return [...this.#own, ...this.#added.filter(({ base64 }) => !this.#own.some((key) => key.base64 === base64))]
  }

  /** Asks the server for its keys, at most once if it answers. @param {AbortSignal} signal */
  async load(signal) {
    if (this.#own.length > 0) return
    try {
      const list = await api.get('/.well-known/bench-runner-keys.json', { signal, withoutKey: true })
      this.#own = await parseKeys(JSON.stringify(list), { from: `this server (${location.host})` })
      this.problem = this.#own.length > 0 ? '' : 'The server has no signing key.'
    } catch (problem) {
      if (signal.aborted) return
      this.problem = `The keys of this server couldn’t be loaded. ${/** @type {Error} */ (problem).message}`
    }
    this.#changed()
  }

  /**
   * Adds the keys of a text. Returns their number.
   *
   * @param {string} text
   * @param {string} from Where the text comes from, for people.
   */
  async add(text, from) {
    if (text.length > LIST_CHARS_MAX) return 0
    const found = await parseKeys(text, { from })
    this.#added = [...this.#added, ...found.filter(({ base64 }) => !this.#added.some((key) => key.base64 === base64))]
    if (found.length > 0) this.#changed()
    return found.length
  }

  /** @param {Key} key */
  remove(key) {
    this.#added = this.#added.filter(({ base64 }) => base64 !== key.base64)
    this.#changed()
  }

  /** @param {Key} key */
  isAdded(key) {
    return this.#added.includes(key)
  }

  #changed() {
    this.dispatchEvent(new Event('change'))
  }
}

export const trustedKeys = new TrustedKeys()

/**
 * Names a key for people: the start of its fingerprint, its role, and where it comes from.
 *
 * @param {Key} key
 */
export function keyName({ fingerprint, role, from }) {
  const roles = { current: 'current key of', retired: 'earlier key of', given: '' }
  return `${fingerprint.slice(0, 12)}…, ${roles[role]} ${from}`.replace('  ', ' ').replace(',  ', ', ')
}

/**
 * Makes the panel with the list of keys and a field for more.
 *
 * @param {AbortSignal} signal
 */
export function keysPanel(signal) {
  const list = h('ul', { class: 'key-list' })
  const answer = h('p', { class: 'hint', 'aria-live': 'polite' })
  const field = h('textarea', { id: 'verify-keys', rows: '3', spellcheck: 'false', autocomplete: 'off', placeholder: 'Base64, PEM, or the JSON of bench-runner-keys.json' })
  const add = async () => {
    const count = await trustedKeys.add(field.value, 'pasted here')
    answer.textContent = count === 0 ? 'There is no Ed25519 public key in this text.' : count === 1 ? 'One key was added.' : `${count} keys were added.`
    if (count > 0) field.value = ''
  }
  const draw = () => {
    replace(list, trustedKeys.all.map((key) => h('li', null,
      h('code', { title: `Key: ${key.base64}` }, key.fingerprint.slice(0, 12), '…'),
      h('span', null, roleText(key)),
      trustedKeys.isAdded(key) && h('button', { type: 'button', class: 'link', on: { click: () => trustedKeys.remove(key) } }, 'Remove'))),
    trustedKeys.problem && h('li', { class: 'problem' }, trustedKeys.problem))
  }
  trustedKeys.addEventListener('change', draw, { signal })
  draw()
  return h('section', { class: 'verify-keys', 'aria-labelledby': 'verify-keys-title' },
    h('h2', { id: 'verify-keys-title' }, 'Keys that you trust here'), list,
    h('details', null, h('summary', null, 'Add keys'),
      h('div', { class: 'field' },
        h('label', { for: 'verify-keys' }, 'Public keys'), field,
        h('p', { class: 'hint' }, 'Get a key from its owner, not from the archive. Keys are kept until you close this tab. You can also drop a file with keys on this page.'),
        h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button', on: { click: add } }, 'Add')), answer)))
}

/** @param {Key} key */
function roleText({ role, from, validFrom, validUntil }) {
  const since = validFrom ? `, since ${date(validFrom)}` : ''
  if (role === 'current') return `Current key of ${from}${since}`
  if (role === 'retired') return `Earlier key of ${from}${since}${validUntil ? ` until ${date(validUntil)}` : ''}`
  return from.charAt(0).toUpperCase() + from.slice(1)
}
