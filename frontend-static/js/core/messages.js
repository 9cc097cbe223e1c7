/** Messages about failures: a sentence for readers with its code marked, and a provider's raw response apart from it, collapsed. */

import { h, withCode } from './dom.js'

/** Sentences of the API's field `error` that only name the outcome, in our words. @type {Record<string, string>} */
const ERRORS = {
  'Response truncated (finish_reason=length)': 'The token limit cut the answer off',
  'Model produced empty response': 'The model returned no text',
}

/** Ending of a response that was cut because of its length, by the server or in a list of causes. */
const CUT = /\.\.\.\(truncated\)|…$/
/** Longest message of a provider that becomes part of a sentence, in characters. */
const QUOTED_MAX = 300

/**
 * Returns true if an error says no more than the sample's outcome.
 *
 * @param {string} error
 */
export function isOutcomeOnly(error) {
  return Object.hasOwn(ERRORS, error)
}

/**
 * Takes a provider's JSON or HTML out of a message: `HTTP 500 from X: {"error":{"message":"overloaded"}}` becomes
 * `HTTP 500 from X: “overloaded”`.
 *
 * @param {string} message
 * @returns {{text: string, raw: string | null}} `raw` is the response; null if the message has none
 */
export function splitMessage(message) {
  if (isOutcomeOnly(message)) return { text: ERRORS[message], raw: null }
  const found = findJson(message) ?? findHtml(message)
  if (!found) return { text: message, raw: null }
  const { start, end, raw, said } = found
  const quoted = said && `: “${said.length > QUOTED_MAX ? `${said.slice(0, QUOTED_MAX)}…` : said}”`
  return { text: message.slice(0, start) + quoted + message.slice(end), raw }
}

/**
 * Makes the sentence of a message, and the block with the raw response if there is one.
 *
 * @param {string} message
 * @param {(text: string) => string} [inWords] changes the words of the sentence
 * @returns {[(string | HTMLElement)[], HTMLElement | null]} the sentence is empty if the message is
 */
export function messageParts(message, inWords = (text) => text) {
  const { text, raw } = splitMessage(message)
  return [withCode(inWords(text)), raw === null ? null : h('details', { class: 'raw-response' },
    h('summary', null, 'Response of the provider'), h('pre', { tabindex: '0' }, raw))]
}

/** Parts in which messages of the same cause differ: the word before stays. @type {[RegExp, string][]} */
const PLACES = [
  [/\b(items?|sample|step|attempt|sandbox|test|waiting) (?:`[^`]*`|\S*\d\S*)/gi, '$1 …'],
  [/\b\d[\d.]*(?= (?:sandboxes|attempts|replies|rounds|s)\b)/g, '…'],
  [/\S*request_id=\S*/g, '…'],
  [/\b(?:[0-9a-f]{12,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g, '…'],
  // Number and time of a step of a build.
  [/#\d+ \d+\.\d+/g, '…'],
]

/**
 * Returns what messages of the same cause have in common: their text without items, tries, ids and times of builds.
 *
 * @param {string} message
 */
export function causeOf(message) {
  return PLACES.reduce((text, [form, common]) => text.replace(form, common), message)
}

/** @typedef {{start: number, end: number, raw: string, said: string}} Found place of a response with the colon before it, and what it says */

/**
 * @param {string} message
 * @returns {Found | null}
 */
function findJson(message) {
  const start = message.search(/: (?:\{\s*"|\[\s*[{"])/)
  if (start < 0) return null
  for (let end = message.length; end > start + 2; end -= 1) {
    if (!'}]'.includes(message[end - 1])) continue
    try {
      const response = JSON.parse(message.slice(start + 2, end))
      return { start, end, raw: JSON.stringify(response, null, 2), said: said(response) }
    } catch { /* The response ends earlier. */ }
  }
  const cut = CUT.exec(message)
  const end = cut && cut.index + cut[0].length
  return end && end > start ? { start, end, raw: message.slice(start + 2, end), said: '' } : null
}

/**
 * @param {string} message
 * @returns {Found | null}
 */
function findHtml(message) {
  const found = /: (<(?:!doctype|html|head|body)\b.*(?:<\/html>|\.\.\.\(truncated\)|…$))/is.exec(message)
  return found && { start: found.index, end: found.index + found[0].length, raw: found[1], said: '' }
}

/**
 * Returns what an error in a usual form says; empty if the form is another one.
 *
 * @param {any} response
 */
function said(response) {
  const [first] = Array.isArray(response) ? response : [response]
  const places = [first?.error?.message, first?.error, first?.message, first?.detail, first?.detail?.[0]?.msg, first?.errors?.[0]?.message]
  return places.find((place) => typeof place === 'string' && place !== '') ?? ''
}
