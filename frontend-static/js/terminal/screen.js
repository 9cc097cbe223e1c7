/**
 * Screen of a terminal: what programs print, as lines of characters with colors.
 *
 * It knows what shells, tmux, editors and pagers print: cursor movement, erasing, inserting and deleting, colors, scroll
 * regions, the alternate screen, line drawing, and wide characters. Everything else is read to its end and ignored. Output of
 * a container is untrusted: sizes are bounded, and nothing of it reaches anything but this screen.
 */

import { changed, copyLine, cut, fill, newLine, put, split } from './lines.js'
import { Parser } from './parser.js'
import { PLAIN, styled } from './styles.js'
import { widthOf } from './width.js'

/** @typedef {import('./styles.js').Style} Style */
/** @typedef {import('./lines.js').Line} Line */
/** @typedef {{x: number, y: number, style: Style, isDrawing: boolean, isOrigin: boolean}} Cursor */

/** Largest screen, in columns and rows. */
export const COLUMNS_MAX = 1000
export const ROWS_MAX = 500
/** Code points that are drawn over one character at most. */
const MARKS_MAX = 8
const TAB = 8
/** Characters that are printed by being repeated, at most. */
const REPEATS_MAX = 1_000_000

/** Characters of the line drawing set, from ` to ~. */
const DRAWING = '◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·'

export class Screen {
  /** Lines that have left the screen at the top, the oldest first. @type {Line[]} */
  history = []
  isCursorVisible = true
  #parser = new Parser(this)
  #historyMax
  /** Cursor kept by a program, and cursor and lines of the usual screen while the alternate one is shown. @type {Cursor | null} */
  #saved = null
  /** @type {{lines: Line[], cursor: Cursor} | null} */
  #main = null
  #isWrapPending = false
  #wraps = true
  #inserts = false
  #last = ' '
  /** Characters that may still be printed by being repeated: few bytes must not keep the reader's browser busy. */
  #repeats = REPEATS_MAX
  #top = 0
  #bottom

  /**
   * @param {number} columns
   * @param {number} rows
   * @param {{history?: number, newline?: boolean}} [options] `history` is the least number of lines to keep that have left the
   *   screen; with `newline`, a line feed also begins the line, as in texts that no terminal printed
   */
  constructor(columns, rows, { history = 0, newline = false } = {}) {
    this.columns = bounded(columns, 1, COLUMNS_MAX)
    this.rows = bounded(rows, 1, ROWS_MAX)
    this.#historyMax = history
    this.newline = newline
    this.#bottom = this.rows - 1
    /** @type {Line[]} */
    this.lines = Array.from({ length: this.rows }, newLine)
    /** @type {Cursor} */
    this.cursor = { x: 0, y: 0, style: PLAIN, isDrawing: false, isOrigin: false }
  }

  /** Shows what a program has printed. @param {string} text */
  write(text) { this.#parser.write(text) }

  /** Text of a line, without colors and spaces at its end. @param {Line} line */
  static text(line) {
    return Array.from(line.chars, (char) => char ?? ' ').join('').trimEnd()
  }

  /** Copies the whole state, so that a later one can return to it. */
  clone() {
    const copy = new Screen(this.columns, this.rows, { history: this.#historyMax, newline: this.newline })
    copy.history = [...this.history]
    copy.lines = this.lines.map(copyLine)
    copy.cursor = { ...this.cursor }
    copy.isCursorVisible = this.isCursorVisible
    copy.#parser = this.#parser.clone(copy)
    copy.#saved = this.#saved && { ...this.#saved }
    copy.#main = this.#main && { lines: this.#main.lines.map(copyLine), cursor: { ...this.#main.cursor } }
    copy.#isWrapPending = this.#isWrapPending
    copy.#wraps = this.#wraps
    copy.#inserts = this.#inserts
    copy.#last = this.#last
    copy.#repeats = this.#repeats
    copy.#top = this.#top
    copy.#bottom = this.#bottom
    return copy
  }

  /** @param {number} columns @param {number} rows */
  resize(columns, rows) {
    this.columns = bounded(columns, 1, COLUMNS_MAX)
    this.rows = bounded(rows, 1, ROWS_MAX)
    const fit = (/** @type {Line[]} */ lines, /** @type {Cursor} */ cursor) => {
      // Lines above the cursor leave first, as in other terminals.
      while (lines.length > this.rows && cursor.y >= this.rows) { lines.shift(); cursor.y -= 1 }
      lines.length = Math.min(lines.length, this.rows)
      while (lines.length < this.rows) lines.push(newLine())
      for (const line of lines) if (line.chars.length > this.columns) cut(line, this.columns)
      cursor.x = Math.min(cursor.x, this.columns - 1)
      cursor.y = Math.min(cursor.y, this.rows - 1)
    }
    fit(this.lines, this.cursor)
    if (this.#main) fit(this.#main.lines, this.#main.cursor)
    this.#isWrapPending = false
    this.#top = 0
    this.#bottom = this.rows - 1
  }

  // What the parser finds.

  /** @param {string} char one code point that is printed */
  print(char) {
    if (this.cursor.isDrawing && char >= '`' && char <= '~') char = DRAWING[char.charCodeAt(0) - 96] ?? char
    const width = widthOf(char)
    if (width === 0) { this.#mark(char); return }
    this.#last = char
    if (this.#isWrapPending && this.#wraps) { this.cursor.x = 0; this.#lineFeed() }
    this.#isWrapPending = false
    if (this.cursor.x + width > this.columns) {
      if (width > this.columns) return
      if (this.#wraps) { this.cursor.x = 0; this.#lineFeed() } else this.cursor.x = this.columns - width
    }
    const { x, y, style } = this.cursor
    const line = this.lines[y]
    if (this.#inserts) this.#insert(line, x, width)
    put(line, x, char, style, width)
    if (x + width >= this.columns) { this.cursor.x = this.columns - 1; this.#isWrapPending = true } else this.cursor.x = x + width
  }

  /** @param {number} code control character */
  control(code) {
    const { cursor } = this
    if (code === 0x08) { cursor.x = Math.max(0, cursor.x - 1); this.#isWrapPending = false }
    else if (code === 0x09) this.#move((Math.floor(cursor.x / TAB) + 1) * TAB, cursor.y)
    else if (code >= 0x0a && code <= 0x0c) { this.#isWrapPending = false; if (this.newline) cursor.x = 0; this.#lineFeed() }
    else if (code === 0x0d) { cursor.x = 0; this.#isWrapPending = false }
    else if (code === 0x0e) cursor.isDrawing = this.#parser.isG1Drawing
    else if (code === 0x0f) cursor.isDrawing = this.#parser.isG0Drawing
  }

  /** @param {string} final of an escape sequence without parameters */
  escape(final) {
    if (final === '7') this.#saved = { ...this.cursor }
    else if (final === '8') this.#restore()
    else if (final === 'D') this.#lineFeed()
    else if (final === 'E') { this.cursor.x = 0; this.#lineFeed() }
    else if (final === 'M') this.#reverseFeed()
    else if (final === 'c') this.#reset()
  }

  /** A character set was chosen. */
  charset() { this.cursor.isDrawing = this.#parser.isG0Drawing }

  /**
   * @param {string} final
   * @param {number[][]} params
   * @param {string} prefix such as `?`
   */
  csi(final, params, prefix) {
    if (prefix === '?' && (final === 'h' || final === 'l')) {
      for (const [mode] of params) this.#setMode(mode, final === 'h')
      return
    }
    if (prefix !== '') return
    const first = params[0]?.[0] ?? 0
    const count = Math.max(1, first)
    const { cursor } = this
    const low = cursor.isOrigin ? this.#top : 0
    switch (final) {
      case 'A': case 'F': this.#move(final === 'F' ? 0 : cursor.x, Math.max(cursor.y - count, cursor.y >= this.#top ? this.#top : 0)); break
      case 'B': case 'E': case 'e': this.#move(final === 'E' ? 0 : cursor.x, Math.min(cursor.y + count, cursor.y <= this.#bottom ? this.#bottom : this.rows - 1)); break
      case 'C': case 'a': this.#move(cursor.x + count, cursor.y); break
      case 'D': this.#move(cursor.x - count, cursor.y); break
      case 'G': case '`': this.#move(count - 1, cursor.y); break
      case 'H': case 'f': this.#move(Math.max(1, params[1]?.[0] ?? 1) - 1, low + count - 1); break
      case 'd': this.#move(cursor.x, low + count - 1); break
      case 'I': this.#move((Math.floor(cursor.x / TAB) + count) * TAB, cursor.y); break
      case 'Z': this.#move((Math.ceil(cursor.x / TAB) - count) * TAB, cursor.y); break
      case 'J': this.#eraseDisplay(first); break
      case 'K': this.#eraseLine(first); break
      case 'L': if (this.#isInRegion()) this.#scroll(cursor.y, this.#bottom, -count); break
      case 'M': if (this.#isInRegion()) this.#scroll(cursor.y, this.#bottom, count); break
      case 'S': this.#scroll(this.#top, this.#bottom, count); break
      case 'T': this.#scroll(this.#top, this.#bottom, -count); break
      case 'P': this.#delete(count); break
      case '@': this.#insert(this.lines[cursor.y], cursor.x, count); break
      case 'X': this.#erase(this.lines[cursor.y], cursor.x, cursor.x + count); break
      case 'b': this.#repeat(count); break
      case 'm': cursor.style = styled(cursor.style, params.length > 0 ? params : [[0]]); break
      case 'r': this.#setRegion(first, params[1]?.[0] ?? 0); break
      case 's': this.#saved = { ...cursor }; break
      case 'u': this.#restore(); break
      case 'h': case 'l': if (first === 4) this.#inserts = final === 'h'; break
      default: // Reports, pointer modes and the like have no effect here.
    }
  }

  // Effects.

  /** @param {number} x @param {number} y */
  #move(x, y) {
    const { cursor } = this
    const [low, high] = cursor.isOrigin ? [this.#top, this.#bottom] : [0, this.rows - 1]
    cursor.x = bounded(x, 0, this.columns - 1)
    cursor.y = bounded(y, low, high)
    this.#isWrapPending = false
  }

  #isInRegion() { return this.cursor.y >= this.#top && this.cursor.y <= this.#bottom }

  #lineFeed() {
    const { cursor } = this
    if (cursor.y === this.#bottom) this.#scroll(this.#top, this.#bottom, 1)
    else if (cursor.y < this.rows - 1) cursor.y += 1
    this.#isWrapPending = false
  }

  #reverseFeed() {
    if (this.cursor.y === this.#top) this.#scroll(this.#top, this.#bottom, -1)
    else if (this.cursor.y > 0) this.cursor.y -= 1
  }

  /**
   * Moves lines up by `count`, or down if it is negative.
   *
   * @param {number} top
   * @param {number} bottom
   * @param {number} count
   */
  #scroll(top, bottom, count) {
    const n = Math.min(Math.abs(count), bottom - top + 1)
    const empty = Array.from({ length: n }, () => this.#emptyLine())
    if (count < 0) {
      this.lines.splice(bottom - n + 1, n)
      this.lines.splice(top, 0, ...empty)
      return
    }
    const left = this.lines.splice(top, n)
    this.lines.splice(bottom - n + 1, 0, ...empty)
    if (this.#historyMax > 0 && top === 0 && !this.#main) {
      this.history.push(...left)
      if (this.history.length > this.#historyMax * 2) this.history.splice(0, this.history.length - this.#historyMax)
    }
  }

  #emptyLine() {
    const line = newLine()
    if (this.cursor.style.bg) this.#erase(line, 0, this.columns)
    return line
  }

  /** @param {Line} line @param {number} from @param {number} to */
  #erase(line, from, to) {
    const end = Math.min(to, this.columns)
    split(line, from)
    split(line, end)
    const { bg } = this.cursor.style
    if (!bg && end >= line.chars.length) cut(line, from)
    else for (let x = from; x < end; x += 1) fill(line, x, ' ', bg ? { ...PLAIN, bg } : PLAIN)
    changed(line)
  }

  /** @param {number} how 0 to the end, 1 from the beginning, 2 all */
  #eraseLine(how) {
    const { x, y } = this.cursor
    if (how <= 2) this.#erase(this.lines[y], how === 0 ? x : 0, how === 1 ? x + 1 : this.columns)
    this.#isWrapPending = false
  }

  /** @param {number} how */
  #eraseDisplay(how) {
    const { y } = this.cursor
    if (how === 3) { this.history = []; return }
    if (how > 3) return
    const [from, to] = how === 0 ? [y + 1, this.rows] : how === 1 ? [0, y] : [0, this.rows]
    for (let row = from; row < to; row += 1) this.lines[row] = this.#emptyLine()
    if (how < 2) this.#eraseLine(how)
  }

  /** @param {number} count */
  #repeat(count) {
    const n = Math.min(count, this.columns, this.#repeats)
    this.#repeats -= n
    for (let i = 0; i < n; i += 1) this.print(this.#last)
  }

  /** Moves what follows a column to the right. @param {Line} line @param {number} x @param {number} count */
  #insert(line, x, count) {
    split(line, x)
    if (x >= line.chars.length) return
    const n = Math.min(count, this.columns - x)
    line.chars.splice(x, 0, ...Array(n).fill(' '))
    line.styles.splice(x, 0, ...Array(n).fill(PLAIN))
    if (line.chars.length > this.columns) cut(line, this.columns)
    changed(line)
  }

  /** @param {number} count */
  #delete(count) {
    const { x, y } = this.cursor
    const line = this.lines[y]
    const n = Math.min(count, this.columns - x)
    split(line, x)
    split(line, x + n)
    line.chars.splice(x, n)
    line.styles.splice(x, n)
    changed(line)
  }

  /** @param {number} top @param {number} bottom both from 1; 0 is the whole screen */
  #setRegion(top, bottom) {
    const [first, last] = [Math.max(1, top) - 1, (bottom === 0 ? this.rows : Math.min(bottom, this.rows)) - 1]
    if (first >= last) return
    this.#top = first
    this.#bottom = last
    this.#move(0, this.cursor.isOrigin ? first : 0)
  }

  /** @param {number} mode @param {boolean} isOn */
  #setMode(mode, isOn) {
    if (mode === 6) { this.cursor.isOrigin = isOn; this.#move(0, isOn ? this.#top : 0) }
    else if (mode === 7) this.#wraps = isOn
    else if (mode === 25) this.isCursorVisible = isOn
    else if (mode === 1048) { if (isOn) this.#saved = { ...this.cursor }; else this.#restore() }
    else if (mode === 47 || mode === 1047 || mode === 1049) this.#showAlternate(isOn)
  }

  /** @param {boolean} isOn */
  #showAlternate(isOn) {
    if (isOn && !this.#main) {
      this.#main = { lines: this.lines, cursor: { ...this.cursor } }
      this.lines = Array.from({ length: this.rows }, newLine)
    } else if (!isOn && this.#main) {
      this.lines = this.#main.lines
      this.cursor = this.#main.cursor
      this.#main = null
    }
    this.#isWrapPending = false
  }

  #restore() {
    const saved = this.#saved ?? { x: 0, y: 0, style: PLAIN, isDrawing: false, isOrigin: false }
    this.cursor = { ...saved, x: Math.min(saved.x, this.columns - 1), y: Math.min(saved.y, this.rows - 1) }
    this.#isWrapPending = false
  }

  #reset() {
    this.lines = Array.from({ length: this.rows }, newLine)
    this.cursor = { x: 0, y: 0, style: PLAIN, isDrawing: false, isOrigin: false }
    this.isCursorVisible = true
    this.#saved = this.#main = null
    this.#isWrapPending = this.#inserts = false
    this.#wraps = true
    this.#top = 0
    this.#bottom = this.rows - 1
  }

  /** Draws a mark over the character before the cursor. @param {string} mark */
  #mark(mark) {
    const { y } = this.cursor
    let x = this.#isWrapPending ? this.cursor.x : this.cursor.x - 1
    const line = this.lines[y]
    if (line.chars[x] === '') x -= 1
    if (x < 0 || line.chars[x] === undefined || line.chars[x].length > MARKS_MAX) return
    line.chars[x] += mark
    changed(line)
  }
}

/** @param {number} value @param {number} low @param {number} high */
function bounded(value, low, high) {
  return Math.min(Math.max(Math.trunc(value) || 0, low), high)
}
