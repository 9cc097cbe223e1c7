/** Texts of others as Markdown that shows them as they are. The server's exports write them the same way. */

/** Characters that Markdown or HTML gives a meaning within a line. */
const SPECIAL = /[\\`*_{}[\]<>&|~#$!]/g

/**
 * Returns a text on one line, without control characters and blanks at its ends.
 *
 * @param {string} text
 */
function oneLine(text) {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ').trim()
}

/** @param {string} text */
function longestBackticks(text) {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
}

/**
 * Returns a short text as a code span on one line.
 *
 * @param {string} text
 */
export function code(text) {
  const line = oneLine(text)
  const fence = '`'.repeat(longestBackticks(line) + 1)
  return line === '' || line.startsWith('`') || line.endsWith('`') ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`
}

/**
 * Returns a sentence on one line, in which no character has a meaning of its own.
 *
 * @param {string} text
 */
export function sentence(text) {
  return oneLine(text).replaceAll(SPECIAL, '\\$&')
}

/**
 * Returns a text with its title, in a fence that is longer than any in it; '' for a text that is empty or missing.
 *
 * @param {string} title
 * @param {unknown} value text, or an object to be written as JSON
 */
export function fenced(title, value) {
  if (value === null || value === undefined || value === '') return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const fence = '`'.repeat(Math.max(3, longestBackticks(text) + 1))
  return `\n**${sentence(title)}**\n\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}\n`
}
