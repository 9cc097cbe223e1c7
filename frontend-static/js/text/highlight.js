/**
 * Highlighting of code blocks: comments, strings, numbers and keywords of common languages, in one pass.
 *
 * Unknown languages get strings and numbers only. Colors carry no meaning that the text lacks.
 */

import { h } from '../core/dom.js'
import { pieces, textNodes } from './safe.js'

/** Longest code that is highlighted, in characters. The rest of a block stays plain. */
const HIGHLIGHTED_CHARS_MAX = 50_000

/** Characters in one piece of plain code. */
const PIECE_CHARS = 8_000

/** @param {string} words */
const words = (words) => new Set(words.split(' '))

const C_LIKE = words(
  'async await auto bool break byte case catch char class const constexpr continue default delete do double else enum ' +
    'export extends false final finally float fn for from func function go if impl import in int interface let long loop ' +
    'match mod mut namespace new nil null nullptr of override package private protected pub public range return self ' +
    'short signed static string struct super switch template this throw trait true try type typedef typeof undefined ' +
    'union unsafe unsigned use using var virtual void volatile where while yield',
)

const PYTHON = words(
  'False None True and as assert async await break case class continue def del elif else except finally for from global ' +
    'if import in is lambda match nonlocal not or pass raise return self try while with yield',
)

const SHELL = words(
  'case cd do done echo elif else esac exit export fi for function if in local read return set shift sudo then unset ' +
    'until while',
)

const SQL = words(
  'ALL AND AS ASC BETWEEN BY CASE CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS FROM FULL GROUP HAVING IN INNER ' +
    'INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER OVER PARTITION RIGHT SELECT SET TABLE THEN UNION ' +
    'UPDATE VALUES WHEN WHERE WITH',
)

/**
 * Rules of a language: its keywords, and how comments begin.
 *
 * @typedef {{keywords: Set<string>, hash: boolean, slashes: boolean, dashes: boolean, triple: boolean, upper: boolean}} Rules
 */

/** @type {Rules} */
const PLAIN = { keywords: new Set(), hash: false, slashes: false, dashes: false, triple: false, upper: false }

/** @param {string} name Name after the fence. @returns {Rules} */
function rulesOf(name) {
  const language = name.toLowerCase()
  if (/^(py|python3?|ipython|sage)$/.test(language)) return { ...PLAIN, keywords: PYTHON, hash: true, triple: true }
  if (/^(sh|bash|zsh|shell|console|terminal)$/.test(language)) return { ...PLAIN, keywords: SHELL, hash: true }
  if (/^(ruby|rb|r|perl|yaml|yml|toml|ini|dockerfile|make|makefile)$/.test(language)) return { ...PLAIN, hash: true }
  if (/^(sql|postgres|mysql|sqlite)$/.test(language)) return { ...PLAIN, keywords: SQL, dashes: true, upper: true }
  if (/^(lua|haskell|hs|elm)$/.test(language)) return { ...PLAIN, keywords: C_LIKE, dashes: true }
  if (/^(json|text|txt|plain|output|csv|diff|html|xml|markdown|md|latex|tex|)$/.test(language)) return PLAIN
  return { ...PLAIN, keywords: C_LIKE, slashes: true }
}

/**
 * Returns a `code` element with highlighted text.
 *
 * @param {string} source
 * @param {string} [language] Name after the fence, such as `python`.
 */
export function renderCode(source, language = '') {
  const code = h('code', { class: 'answer-code' })
  const head = source.slice(0, HIGHLIGHTED_CHARS_MAX)
  highlight(code, head, rulesOf(language))
  for (const piece of source.length > head.length ? pieces(source.slice(head.length), PIECE_CHARS) : []) {
    code.append(h('span', { class: 'answer-piece' }, ...textNodes(piece)))
  }
  return code
}

/**
 * Appends the tokens of a source. Each alternative consumes at least one character and looks ahead a bounded distance
 * or to a fixed delimiter, so the pass is linear.
 *
 * @param {HTMLElement} parent
 * @param {string} source
 * @param {Rules} rules
 */
function highlight(parent, source, rules) {
  const comments = [
    rules.hash ? '#[^\\n]*' : '',
    rules.slashes ? '//[^\\n]*|/\\*[^]{0,5000}?\\*/' : '',
    rules.dashes ? '--[^\\n]*' : '',
  ]
  const strings = [
    rules.triple ? '"""[^]{0,5000}?"""|\'\'\'[^]{0,5000}?\'\'\'' : '',
    '"(?:[^"\\\\\\n]|\\\\[^\\n]){0,2000}"',
    "'(?:[^'\\\\\\n]|\\\\[^\\n]){0,2000}'",
  ]
  const any = (/** @type {string[]} */ parts) => parts.filter(Boolean).join('|') || '(?!)'
  const token = new RegExp(
    `(${any(comments)})|(${any(strings)})|(\\b(?:0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(?:\\.[0-9_]+)?(?:[eE][+-]?[0-9]+)?)\\b)` +
      '|([A-Za-z_][A-Za-z0-9_]*)',
    'g',
  )
  const kinds = ['comment', 'string', 'number', 'keyword']
  let from = 0
  for (const found of source.matchAll(token)) {
    const [text] = found
    const kind = kinds[found.slice(1).findIndex((group) => group !== undefined)]
    if (kind === 'keyword' && !rules.keywords.has(rules.upper ? text.toUpperCase() : text)) continue
    if (found.index > from) parent.append(...textNodes(source.slice(from, found.index)))
    parent.append(h('span', { class: `code-${kind}` }, ...textNodes(text)))
    from = found.index + text.length
  }
  if (from < source.length) parent.append(...textNodes(source.slice(from)))
}

/**
 * Returns a block with a value as indented JSON.
 *
 * @param {unknown} value
 */
export function renderJson(value) {
  return h('pre', { class: 'answer-block' }, renderCode(JSON.stringify(value, null, 2) ?? '', 'json'))
}
