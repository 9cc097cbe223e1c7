/** Lists of facts, where a fact without a value is left out. */

import { h } from '../../core/dom.js'

/** @typedef {import('../../core/dom.js').Child} Child */

/**
 * @param {([string, Child] | null | false | undefined | '')[]} entries
 */
export function facts(entries) {
  return h('dl', { class: 'facts' },
    entries.filter((entry) => entry && entry[1] !== null && entry[1] !== undefined && entry[1] !== '' && entry[1] !== false)
    .map((entry) => {
      const [name, value] = /** @type {[string, Child]} */ (entry)
      return [h('dt', null, name), h('dd', null, value)]
    }))
}

/**
 * Makes a list of sentences or elements; null if there are none.
 *
 * @param {Child[]} entries
 */
export function bullets(entries) {
  return entries.length > 0 ? h('ul', null, entries.map((entry) => h('li', null, entry))) : null
}

/**
 * Makes a link to a page outside. Its target sees no address of this page.
 *
 * @param {string} href
 * @param {string} text
 */
export function outside(href, text) {
  return h('a', { href, rel: 'noopener noreferrer' }, text)
}

/**
 * Shows the beginning of a digest, with the whole one as its title.
 *
 * @param {string | null | undefined} digest
 */
export function digest(digest) {
  return digest ? h('code', { title: digest }, digest.slice(0, 12)) : null
}
