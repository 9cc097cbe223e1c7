/** Lines of a terminal's screen. */

/** @typedef {import('./styles.js').Style} Style */
/**
 * @typedef {object} Line
 * @property {string[]} chars one entry per column; '' is the second column of a wide character, and what is missing is empty
 * @property {Style[]} styles
 * @property {number} stamp changes with the line
 */

import { PLAIN } from './styles.js'

let stamps = 0

/** @returns {Line} */
export function newLine() {
  return { chars: [], styles: [], stamp: stamps += 1 }
}

/** Notes that a line has changed. @param {Line} line */
export function changed(line) {
  line.stamp = stamps += 1
}

/** @param {Line} line */
export function copyLine(line) {
  return { chars: [...line.chars], styles: [...line.styles], stamp: stamps += 1 }
}

/** @param {Line} line @param {number} length */
export function cut(line, length) {
  split(line, length)
  line.chars.length = Math.min(line.chars.length, length)
  line.styles.length = line.chars.length
  changed(line)
}

/** Replaces a wide character by spaces if a column is its second half. @param {Line} line @param {number} x */
export function split(line, x) {
  if (x > 0 && line.chars[x] === '') line.chars[x - 1] = line.chars[x] = ' '
}

/** @param {Line} line @param {number} x @param {string} char @param {Style} style */
export function fill(line, x, char, style) {
  while (line.chars.length < x) { line.chars.push(' '); line.styles.push(PLAIN) }
  line.chars[x] = char
  line.styles[x] = style
}

/** @param {Line} line @param {number} x @param {string} char @param {Style} style @param {number} width */
export function put(line, x, char, style, width) {
  split(line, x)
  split(line, x + width)
  fill(line, x, char, style)
  if (width === 2) fill(line, x + 1, '', style)
  changed(line)
}
