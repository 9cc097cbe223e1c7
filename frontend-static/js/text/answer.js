/**
 * Text of models and datasets, shown readable and inert.
 *
 * Formatting never loses a character: "Plain text" shows the text as it was received. Long texts appear in part, with a
 * button for the rest, so that a hostile answer of a megabyte costs no more than an ordinary one.
 */

import { h, useStyles } from '../core/dom.js'
import { appendBlocks } from './blocks.js'
import { pieces, textNodes } from './safe.js'

export { renderCode, renderJson } from './highlight.js'

await useStyles('components/answer.css')

/** Characters that are shown at first. */
const FIRST_CHARS = 12_000

/** Characters that are formatted at most; the rest of a longer text is plain. */
const FORMATTED_CHARS_MAX = 100_000

/** Characters in one piece of plain text. The browser lays out only pieces that are in view. */
const PIECE_CHARS = 4_000

/**
 * Returns an element with a text: Markdown, code and mathematics are formatted, everything stays text.
 *
 * @param {string} text
 * @param {object} [options]
 * @param {boolean} [options.isPlain] True to begin without formatting, such as for prompts.
 * @param {number} [options.firstChars] Characters that are shown at first.
 * @param {import('./blocks.js').LabelOf} [options.labelOf] Labels of blocks of code, by default their language.
 * @returns {HTMLElement}
 */
export function renderAnswer(text, { isPlain = false, firstChars = FIRST_CHARS, labelOf } = {}) {
  const state = { isPlain, isWhole: text.length <= firstChars * 1.25 }
  const body = h('div', { class: 'answer-body' })
  const answer = h('div', { class: 'answer' }, body)
  answer.dir = 'auto'

  const more = h('button', { class: 'button small', type: 'button' })
  const view = h('button', { class: 'button small', type: 'button' })
  const bar = h('div', { class: 'answer-bar' }, more, view)
  const draw = () => {
    const shown = state.isWhole ? text : pieces(text, firstChars)[0]
    body.replaceChildren()
    if (state.isPlain) appendPlain(body, shown)
    else appendFormatted(body, shown, labelOf)
    more.hidden = state.isWhole
    more.textContent = `Show all (${text.length.toLocaleString()} characters)`
    view.textContent = state.isPlain ? 'Formatted' : 'Plain text'
    view.hidden = !looksFormatted(text)
  }
  more.addEventListener('click', () => {
    state.isWhole = true
    draw()
    // The button disappears, so the focus moves to what it revealed.
    body.tabIndex = -1
    body.focus({ preventScroll: true })
  })
  view.addEventListener('click', () => {
    state.isPlain = !state.isPlain
    draw()
  })
  draw()
  if (!more.hidden || !view.hidden) answer.append(bar)
  return answer
}

/**
 * Returns an element with a text exactly as it is, such as a prompt or an error.
 *
 * @param {string} text
 * @param {{firstChars?: number}} [options] `firstChars` is the number of characters that are shown at first
 */
export function renderPlain(text, { firstChars = FIRST_CHARS } = {}) {
  return renderAnswer(text, { isPlain: true, firstChars })
}

/** Returns true if formatting could change anything. @param {string} text */
function looksFormatted(text) {
  return /[`*$#|>[\]\\]|^ {0,20}(?:[-+•]|\d{1,9}[.)])\s/m.test(text.slice(0, FORMATTED_CHARS_MAX))
}

/** @param {HTMLElement} parent @param {string} text @param {import('./blocks.js').LabelOf} [labelOf] */
function appendFormatted(parent, text, labelOf) {
  const [head] = pieces(text, FORMATTED_CHARS_MAX)
  const rest = appendBlocks(parent, head, labelOf) + text.slice(head.length)
  if (rest !== '') appendPlain(parent, rest)
}

/** @param {HTMLElement} parent @param {string} text */
function appendPlain(parent, text) {
  for (const piece of pieces(text, PIECE_CHARS)) parent.append(h('div', { class: 'answer-piece' }, ...textNodes(piece)))
}
