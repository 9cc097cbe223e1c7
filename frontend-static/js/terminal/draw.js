/** Draws screens of terminals as text. Every character becomes a text node. */

import { h, replace, useStyles } from '../core/dom.js'
import { Screen } from './screen.js'
import { cssColor } from './styles.js'

await useStyles('components/terminal.css')

/** Lines that a text shows at first, and at most. */
const FIRST_LINES = 200
const LINES_MAX = 20_000
/** Columns of a text that isn't from a terminal, whose lines don't wrap. */
const TEXT_COLUMNS = 1000
/** Characters of a text that are read. */
const TEXT_CHARS_MAX = 1_000_000

/**
 * Makes an element that shows a screen, and a function that shows its present state: only lines that have changed are drawn.
 *
 * @param {string} label name for screen readers
 */
export function screenView(label) {
  const lines = h('div', { class: 'terminal-lines' })
  const element = h('div', { class: 'terminal', tabindex: '0', role: 'group', 'aria-label': label }, h('div', { class: 'terminal-fit' }, lines))
  /** @type {{element: HTMLElement, key: string}[]} */
  let rows = []
  return {
    element,
    /** @param {Screen} screen */
    show(screen) {
      element.style.setProperty('--columns', String(screen.columns))
      if (rows.length !== screen.rows) {
        rows = screen.lines.map(() => ({ element: h('div', { class: 'terminal-line' }), key: '' }))
        replace(lines, rows.map((row) => row.element))
      }
      const { cursor } = screen
      for (const [y, line] of screen.lines.entries()) {
        const x = screen.isCursorVisible && cursor.y === y ? cursor.x : -1
        const key = `${line.stamp} ${x}`
        if (rows[y].key === key) continue
        rows[y].key = key
        replace(rows[y].element, runs(line, x))
      }
    },
  }
}

/**
 * Makes an element with a text as a terminal shows it: colors of escape sequences become colors. Long texts appear in part.
 *
 * @param {string} text
 * @param {string} label name for screen readers
 */
export function textView(text, label) {
  const isCut = text.length > TEXT_CHARS_MAX
  const screen = new Screen(TEXT_COLUMNS, 1, { history: LINES_MAX, newline: true })
  screen.write(isCut ? text.slice(0, TEXT_CHARS_MAX) : text)
  const all = [...screen.history, ...screen.lines].slice(-LINES_MAX)
  while (all.length > 1 && Screen.text(all[all.length - 1]) === '') all.pop()
  const lines = h('div', { class: 'terminal-lines' })
  const draw = (/** @type {number} */ from, /** @type {number} */ to) => lines.append(...all.slice(from, to).map((line) => h('div', { class: 'terminal-line' }, runs(line, -1))))
  draw(0, FIRST_LINES)
  const rest = all.length - FIRST_LINES
  const more = rest > 0 && h('button', { type: 'button', class: 'button small', on: { click: () => { draw(FIRST_LINES, all.length); if (more) more.remove(); lines.tabIndex = -1; lines.focus({ preventScroll: true }) } } }, `Show more (${rest.toLocaleString()} lines)`)
  return h('div', { class: 'terminal-text' },
    h('div', { class: 'terminal', tabindex: '0', role: 'group', 'aria-label': label }, lines),
    h('p', { class: 'actions' }, more, isCut && h('span', { class: 'dim' }, 'The text is longer than what is shown here; the log has all of it.')))
}

/**
 * Returns the parts of a line with one style each.
 *
 * @param {import('./screen.js').Line} line
 * @param {number} cursor column of the cursor; -1 if it is in another line
 */
function runs({ chars, styles }, cursor) {
  const length = Math.max(endOf(chars, styles), cursor + 1)
  /** @type {Node[]} */
  const nodes = []
  let text = ''
  let key = ''
  /** @type {import('./styles.js').Style | undefined} */
  let style
  const end = () => {
    if (text === '') return
    nodes.push(key === ' ' || !style ? document.createTextNode(text) : part(text, style, key))
    text = ''
  }
  for (let x = 0; x < length; x += 1) {
    const char = chars[x] ?? ' '
    if (char === '') continue
    const its = styles[x] ?? { fg: '', bg: '', flags: '' }
    const kind = x === cursor || (chars[x + 1] === '' && x + 1 === cursor) ? 'cursor' : chars[x + 1] === '' ? 'wide' : ''
    const wanted = `${its.fg}|${its.bg}|${its.flags}|${kind}`.replace(/^\|\|\|$/, ' ')
    // A wide character is a part of its own, so that it takes exactly two columns in any font.
    if (wanted !== key || kind === 'wide') { end(); key = wanted; style = its }
    text += char
  }
  end()
  if (nodes.length === 0) nodes.push(document.createTextNode('\u00a0'))
  return nodes
}

/** Returns the number of columns until only empty ones follow. @param {string[]} chars @param {import('./styles.js').Style[]} styles */
function endOf(chars, styles) {
  let end = chars.length
  while (end > 0 && (chars[end - 1] ?? ' ') === ' ' && !styles[end - 1]?.bg && !styles[end - 1]?.flags.includes('v')) end -= 1
  return end
}

/**
 * @param {string} text
 * @param {import('./styles.js').Style} style
 * @param {string} key
 */
function part(text, { fg, bg, flags }, key) {
  const element = h('span', { class: [...flags].map((flag) => `t-${flag}`).join(' ') || null }, text)
  const isInverse = flags.includes('v')
  const [color, ground] = [cssColor(isInverse ? bg : fg, isInverse && bg !== ''), cssColor(isInverse ? fg : bg, !isInverse)]
  if (color) element.style.color = color
  // Programs that set a bright ground only expect dark text.
  else if (!isInverse && (bg === '7' || bg === '15')) element.classList.add('t-dark')
  if (ground) element.style.background = ground
  if (key.endsWith('|cursor')) element.classList.add('t-cursor')
  if (key.endsWith('|wide')) element.classList.add('t-wide')
  return element
}
