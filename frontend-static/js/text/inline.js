/**
 * Inline parts of an answer: code, mathematics, emphasis and links. Links are inert: their address is shown as text.
 */

import { FORMULA_CHARS_MAX, formula } from './math.js'
import { h } from '../core/dom.js'
import { textNodes } from './safe.js'

/** Longest paragraph that is formatted, in characters. */
const FORMATTED_CHARS_MAX = 20_000

/** Longest emphasis and longest address of a link, in characters. */
const EMPHASIS_CHARS_MAX = 1_000
const ADDRESS_CHARS_MAX = 2_000

/** Deepest nesting of emphasis. */
const DEPTH_MAX = 4

/** Opening marks, each at most a few characters long. */
const MARKS = /`+|\\\(|\\\[|\$\$?|\*\*\*?|\*|!?\[|\\[\\`*_$[\]#]/g

/**
 * Appends the parts of a paragraph to an element.
 *
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {number} [depth] Nesting so far.
 */
export function appendInline(parent, text, depth = 0) {
  if (text.length > FORMATTED_CHARS_MAX || depth > DEPTH_MAX) {
    parent.append(...textNodes(text))
    return
  }
  const search = new Search(text)
  let from = 0
  MARKS.lastIndex = 0
  const marks = new RegExp(MARKS)
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const part = read(search, found[0], found.index, depth)
    if (!part) {
      // The mark means nothing here. A longer one may still begin inside it.
      marks.lastIndex = found.index + found[0].length
      continue
    }
    if (found.index > from) parent.append(...textNodes(text.slice(from, found.index)))
    parent.append(...part.nodes)
    from = part.end
    marks.lastIndex = from
  }
  if (from < text.length) parent.append(...textNodes(text.slice(from)))
}

/** Finds closing marks, and remembers those that don't occur any more, so that no text is searched again and again. */
class Search {
  /** @type {Map<string, number>} */
  #missing = new Map()

  /** @param {string} text */
  constructor(text) {
    this.text = text
  }

  /**
   * Returns the index of `mark` from `from` on, at most `within` characters away, or -1.
   *
   * @param {string} mark
   * @param {number} from
   * @param {number} within
   */
  find(mark, from, within) {
    if (from >= (this.#missing.get(mark) ?? Infinity)) return -1
    const at = this.text.indexOf(mark, from)
    if (at < 0) this.#missing.set(mark, from)
    return at >= 0 && at - from <= within ? at : -1
  }
}

/**
 * Reads the part that a mark opens. Returns its nodes and its end, or null if the mark is only a character.
 *
 * @param {Search} search
 * @param {string} mark
 * @param {number} at
 * @param {number} depth
 * @returns {{nodes: Node[], end: number} | null}
 */
function read(search, mark, at, depth) {
  const from = at + mark.length
  if (mark.startsWith('`')) return readCode(search, mark, from)
  if (mark === '\\(') return readFormula(search, '\\)', from, false)
  if (mark === '\\[') return readFormula(search, '\\]', from, true)
  if (mark === '$$') return readFormula(search, '$$', from, true)
  if (mark === '$') return readDollar(search, from)
  if (mark.startsWith('*')) return readEmphasis(search, mark, from, depth)
  if (mark.endsWith('[') && !mark.startsWith('\\')) return readLink(search, mark, from, depth)
  return { nodes: textNodes(mark.slice(1)), end: from }
}

/** @param {Search} search @param {string} mark @param {number} from */
function readCode(search, mark, from) {
  const end = search.find(mark, from, EMPHASIS_CHARS_MAX)
  if (end < 0 || end === from) return null
  const text = search.text.slice(from, end)
  return { nodes: [h('code', { class: 'answer-inline' }, ...textNodes(text))], end: end + mark.length }
}

/** @param {Search} search @param {string} closing @param {number} from @param {boolean} isDisplay */
function readFormula(search, closing, from, isDisplay) {
  const end = search.find(closing, from, FORMULA_CHARS_MAX)
  if (end < 0) return null
  const node = formulaNode(search.text.slice(from, end), isDisplay)
  return node ? { nodes: [node], end: end + closing.length } : null
}

/**
 * Reads `$…$`. Amounts of money aren't formulas: the text must not begin or end with a space, no digit follows it, and
 * it has no line break.
 *
 * @param {Search} search
 * @param {number} from
 */
function readDollar(search, from) {
  const end = search.find('$', from, EMPHASIS_CHARS_MAX)
  if (end <= from) return null
  const source = search.text.slice(from, end)
  const isMoney = /^\s|\s$|\n/.test(source) || /[0-9]/.test(search.text[end + 1] ?? '')
  const node = isMoney ? null : formulaNode(source, false)
  return node ? { nodes: [node], end: end + 1 } : null
}

/**
 * Returns a formula as MathML, or as its source if it can't be formatted.
 *
 * @param {string} source
 * @param {boolean} isDisplay
 */
export function formulaNode(source, isDisplay) {
  if (source.trim() === '') return null
  const made = formula(source, isDisplay)
  const shown = h('span', { class: isDisplay ? 'answer-display' : 'answer-formula' })
  if (made) shown.append(made)
  else shown.append(h('code', { class: 'answer-tex' }, ...textNodes(source.trim())))
  shown.title = source.trim().slice(0, 300)
  return shown
}

/**
 * Reads emphasis. Between letters or digits an asterisk is an operator, as in `3*4*5`.
 *
 * @param {Search} search
 * @param {string} mark
 * @param {number} from
 * @param {number} depth
 */
function readEmphasis(search, mark, from, depth) {
  const { text } = search
  if (/\s/.test(text[from] ?? ' ') || /[\p{L}\p{N})\]]/u.test(text[from - mark.length - 1] ?? '')) return null
  const end = search.find(mark, from, EMPHASIS_CHARS_MAX)
  if (end <= from || /\s/.test(text[end - 1]) || /[\p{L}\p{N}]/u.test(text[end + mark.length] ?? '')) return null
  const made = h(mark === '*' ? 'em' : 'strong')
  appendInline(made, search.text.slice(from, end), depth + 1)
  return { nodes: [made], end: end + mark.length }
}

/** @param {Search} search @param {string} mark @param {number} from @param {number} depth */
function readLink(search, mark, from, depth) {
  const middle = search.find('](', from, EMPHASIS_CHARS_MAX)
  if (middle < 0) return null
  const end = search.find(')', middle + 2, ADDRESS_CHARS_MAX)
  if (end < 0) return null
  const made = h('span', { class: 'answer-link' })
  appendInline(made, search.text.slice(from, middle), depth + 1)
  const address = search.text.slice(middle + 2, end)
  const shown = mark.startsWith('!') ? ` (image ${address})` : ` (${address})`
  made.append(h('span', { class: 'answer-address' }, ...textNodes(shown)))
  return { nodes: [made], end: end + 1 }
}
