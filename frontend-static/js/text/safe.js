/**
 * Text nodes from untrusted text.
 *
 * Nothing from a model or a dataset is ever parsed as HTML. Characters that would hide or reorder what follows them are
 * shown by name, since a reader judges an answer by what is visible.
 */

import { h } from '../core/dom.js'

/** Control characters without a visible form, and characters that change the direction of text. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/

/** Length of a hidden run of tag characters or of replacements after which the rest is left as it is. */
const MARKS_MAX = 500

/**
 * Returns nodes for a text: one text node, and a mark for each hidden character.
 *
 * @param {string} text
 * @returns {Node[]}
 */
export function textNodes(text) {
  if (!HIDDEN.test(text)) return [document.createTextNode(text)]
  /** @type {Node[]} */
  const nodes = []
  const all = new RegExp(HIDDEN, 'g')
  let from = 0
  for (let marks = 0; marks < MARKS_MAX; marks += 1) {
    const found = all.exec(text)
    if (!found) break
    if (found.index > from) nodes.push(document.createTextNode(text.slice(from, found.index)))
    nodes.push(hiddenMark(found[0]))
    from = found.index + 1
  }
  if (from < text.length) nodes.push(document.createTextNode(text.slice(from)))
  return nodes
}

/**
 * Returns a visible mark for a hidden character, such as `U+202E`.
 *
 * @param {string} character
 */
function hiddenMark(character) {
  const mark = h('span', { class: 'answer-hidden' })
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
  mark.textContent = `U+${code}`
  mark.title = 'Hidden character'
  return mark
}

/**
 * Cuts a text into pieces of at most `size` characters, at line ends where possible, and never inside a surrogate pair.
 *
 * @param {string} text
 * @param {number} size Characters.
 * @returns {string[]}
 */
export function pieces(text, size) {
  const found = []
  let from = 0
  while (text.length - from > size) {
    const line = text.lastIndexOf('\n', from + size - 1)
    let to = line > from + size / 2 ? line + 1 : from + size
    const last = text.charCodeAt(to - 1)
    if (last >= 0xd800 && last < 0xdc00) to -= 1
    found.push(text.slice(from, to))
    from = to
  }
  found.push(text.slice(from))
  return found
}
