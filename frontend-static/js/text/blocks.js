/**
 * Blocks of an answer: paragraphs, code, formulas, lists, tables, quotes and headings, in one pass over the lines.
 */

import { renderCode } from './highlight.js'
import { appendInline, formulaNode } from './inline.js'
import { h } from '../core/dom.js'
import { textNodes } from './safe.js'

/** Deepest indentation of a list that is shown, in levels. */
const LIST_LEVELS_MAX = 5

/** Lines of one list. A longer one becomes several. */
const LIST_LINES_MAX = 500

/** Largest table, in cells. */
const CELLS_MAX = 2_000

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([^\s`]*)/
const HEADING = /^\s{0,3}(#{1,6})\s+(.+?)\s*#*$/
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])\s+(.*)$/
const RULE = /^\s{0,3}(?:-\s*){3,}$|^\s{0,3}(?:\*\s*){3,}$|^\s{0,3}(?:_\s*){3,}$/
const QUOTE = /^\s{0,3}>\s?(.*)$/
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$/

/** Most blocks that are formatted, and most elements in them. An answer with more is no text that people read. */
const BLOCKS_MAX = 1_000
const ELEMENTS_MAX = 20_000

/** Returns the label of a block of code; '' for none. @typedef {(language: string, code: string) => string} LabelOf */

/**
 * Appends the blocks of an answer to an element. Returns the rest of a text that has too many of them.
 *
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {LabelOf} [labelOf] by default the language
 */
export function appendBlocks(parent, text, labelOf = (language) => language) {
  const lines = text.split('\n')
  const elements = parent.getElementsByTagName('*')
  for (let at = 0; at < lines.length; ) {
    if (parent.childElementCount >= BLOCKS_MAX || elements.length > ELEMENTS_MAX) return lines.slice(at).join('\n')
    const line = lines[at]
    if (line.trim() === '') at += 1
    else if (FENCE.test(line)) at = appendCode(parent, lines, at, labelOf)
    else if (/^\s*(\$\$|\\\[)/.test(line)) at = appendFormula(parent, lines, at)
    else if (HEADING.test(line)) at = appendHeading(parent, lines, at)
    else if (RULE.test(line)) at = appendRule(parent, at)
    else if (QUOTE.test(line)) at = appendQuote(parent, lines, at)
    else if (ITEM.test(line)) at = appendList(parent, lines, at)
    else if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '')) at = appendTable(parent, lines, at)
    else at = appendParagraph(parent, lines, at)
  }
  return ''
}

/** @param {string} line */
function startsBlock(line) {
  return line.trim() === '' || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) ||
    /^\s*(\$\$|\\\[)/.test(line)
}

/** @param {HTMLElement} parent @param {string[]} lines @param {number} at @param {LabelOf} labelOf */
function appendCode(parent, lines, at, labelOf) {
  const [, mark, language] = /** @type {RegExpExecArray} */ (FENCE.exec(lines[at]))
  const isEnd = (/** @type {string} */ line) => line.trim().startsWith(mark) && line.trim() === mark[0].repeat(line.trim().length)
  let end = at + 1
  while (end < lines.length && !isEnd(lines[end])) end += 1
  const block = h('div', { class: 'answer-fence' })
  const text = lines.slice(at + 1, end).join('\n')
  const label = labelOf(language.slice(0, 30), text)
  if (label) block.append(h('span', { class: 'answer-language' }, ...textNodes(label)))
  const code = h('pre', { class: 'answer-block' }, renderCode(text, language))
  code.tabIndex = 0
  block.append(code)
  parent.append(block)
  return end + 1
}

/** Appends `$$…$$` or `\[…\]`, which may span lines. @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendFormula(parent, lines, at) {
  const opening = lines[at].trim().startsWith('$$') ? '$$' : '\\['
  const closing = opening === '$$' ? '$$' : '\\]'
  let source = lines[at].slice(lines[at].indexOf(opening) + 2)
  let end = at
  while (!source.includes(closing) && end + 1 < lines.length && end - at < 60) {
    end += 1
    source += `\n${lines[end]}`
  }
  const closes = source.indexOf(closing)
  const rest = source.slice(closes + 2)
  const node = closes < 0 ? null : formulaNode(source.slice(0, closes), true)
  if (!node) return appendParagraph(parent, lines, at)
  const paragraph = h('p', { class: 'answer-paragraph' }, node)
  if (rest.trim() !== '') appendInline(paragraph, rest)
  parent.append(paragraph)
  return end + 1
}

/** Headings of an answer are no headings of the page. @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendHeading(parent, lines, at) {
  const [, , text] = /** @type {RegExpExecArray} */ (HEADING.exec(lines[at]))
  const heading = h('p', { class: 'answer-heading' })
  appendInline(heading, text)
  parent.append(heading)
  return at + 1
}

/** @param {HTMLElement} parent @param {number} at */
function appendRule(parent, at) {
  parent.append(h('hr', { class: 'answer-rule' }))
  return at + 1
}

/** @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendQuote(parent, lines, at) {
  const text = []
  let end = at
  for (let found = QUOTE.exec(lines[end]); found; found = QUOTE.exec(lines[end] ?? '')) {
    text.push(found[1])
    end += 1
  }
  const quote = h('blockquote', { class: 'answer-quote' })
  appendInline(quote, text.join('\n'))
  parent.append(quote)
  return end
}

/** @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendList(parent, lines, at) {
  const list = h('ul', { class: 'answer-list' })
  let end = at
  for (let found = ITEM.exec(lines[end]); found && end - at < LIST_LINES_MAX; found = ITEM.exec(lines[end] ?? '')) {
    const [, indent, mark, first] = found
    const text = [first]
    end += 1
    // Lines that continue the item are indented; code in an item ends it.
    while (end < lines.length && /^\s{2,}\S/.test(lines[end]) && !startsBlock(lines[end])) {
      text.push(lines[end].trim())
      end += 1
    }
    const level = Math.min(Math.floor(indent.replaceAll('\t', '    ').length / 2), LIST_LEVELS_MAX)
    const item = h('li', { class: 'answer-item' })
    item.dataset.level = String(level)
    item.append(h('span', { class: 'answer-mark' }, /\d/.test(mark) ? `${mark} ` : '• '))
    const body = h('span', { class: 'answer-item-text' })
    appendInline(body, text.join('\n'))
    item.append(body)
    list.append(item)
    if ((lines[end] ?? '').trim() === '' && ITEM.test(lines[end + 1] ?? '')) end += 1
  }
  parent.append(list)
  return end
}

/** @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendTable(parent, lines, at) {
  const cells = (/** @type {string} */ line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim())
  const head = cells(lines[at])
  const table = h('table', { class: 'answer-table' })
  const headRow = h('tr')
  for (const cell of head) headRow.append(tableCell('th', cell))
  table.append(h('thead', null, headRow))
  const body = h('tbody')
  let end = at + 2
  for (let count = 0; end < lines.length && lines[end].includes('|') && count < CELLS_MAX; end += 1) {
    const row = h('tr')
    const found = cells(lines[end]).slice(0, head.length)
    for (const cell of found) row.append(tableCell('td', cell))
    count += found.length
    body.append(row)
  }
  table.append(body)
  parent.append(h('div', { class: 'answer-scroll' }, table))
  return end
}

/** @param {'td' | 'th'} tag @param {string} text */
function tableCell(tag, text) {
  const cell = h(tag)
  appendInline(cell, text)
  return cell
}

/** @param {HTMLElement} parent @param {string[]} lines @param {number} at */
function appendParagraph(parent, lines, at) {
  let end = at + 1
  while (end < lines.length && !startsBlock(lines[end])) end += 1
  const paragraph = h('p', { class: 'answer-paragraph' })
  appendInline(paragraph, lines.slice(at, end).join('\n'))
  parent.append(paragraph)
  return end
}
