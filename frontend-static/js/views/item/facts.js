/** Figures of a sample: what was extracted and expected, score, time, tokens. */

import { h } from '../../core/dom.js'
import { dateTime, duration, integer, none } from '../../core/format.js'
import { sampleScore } from '../../core/run-facts.js'

/** @typedef {import('../../core/source.js').Sample} Sample */

/** Characters of an answer that a tile shows; longer ones have a section of their own. */
export const SHORT = 120

/**
 * What the page shows of the data about an answer.
 *
 * @typedef {{worker_attempts?: number, waits?: number, first_token_ms?: number, system_prompt?: string}} Metadata
 */

/** @param {Sample} item */
export function factsOf(item) {
  /** @type {Metadata} */
  const meta = item.item_metadata ?? {}
  const attempts = item.attempts ?? meta.worker_attempts
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const facts = [
    ['Score', sampleScore(item.score)],
    ['Time', item.latency_ms === null || item.latency_ms === undefined ? none : duration(item.latency_ms / 1000),
      meta.first_token_ms ? `first token after ${duration(meta.first_token_ms / 1000)}` : ''],
    ['Tokens', ...tokensOf(item)],
    ['Attempts', integer(attempts), meta.waits ? `${integer(meta.waits)} waits` : ''],
    ['Finish reason', item.finish_reason ?? none, item.truncated ? 'cut off by the token limit' : ''],
  ]
  if (item.group) facts.push(['Group', item.group])
  return h('section', { class: 'item-facts', 'aria-label': 'Grade and figures' },
    h('dl', { class: 'answers' }, answer('Extracted answer', item.extracted), answer('Expected answer', item.expected)),
    h('dl', { class: 'tiles' }, facts.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))))
}

/**
 * @param {Sample} item
 * @returns {[string, string?]}
 */
function tokensOf({ input_tokens: input, output_tokens: output }) {
  const isKnown = typeof input === 'number' || typeof output === 'number'
  return isKnown ? [`${integer(input)} → ${integer(output)}`, 'in → out'] : [none]
}

/**
 * @param {string} term
 * @param {string | null | undefined} text
 */
function answer(term, text) {
  const isLong = (text ?? '').length > SHORT || (text ?? '').includes('\n')
  return h('div', null, h('dt', null, term), h('dd', { class: isLong ? 'long' : null }, text === null || text === undefined ? none : text.length > SHORT ? `${text.slice(0, SHORT)}…` : text))
}

/**
 * Lists everything that identifies a sample.
 *
 * @param {Sample} item
 */
export function identityOf(item) {
  /** @type {[string, import('../../core/dom.js').Child][]} */
  const rows = [
    ['Row of the dataset', `#${item.item_id}`], ['Id of the dataset', item.source_id], ['Place in the plan', integer(item.position + 1)], ['Sample', integer(item.sample + 1)],
    ['Model as reported', item.model_reported], ['Ended', item.outcome ? dateTime(item.created_at) : null], ['Hash of the item', item.item_hash && h('code', { title: item.item_hash }, item.item_hash)],
    ['SHA-256 of prompt and answer', item.body_sha256 && h('code', null, item.body_sha256)], ['Id of the sample', item.id ? h('code', null, item.id) : null],
  ]
  return h('dl', { class: 'facts' }, rows.filter(([, value]) => value !== null && value !== undefined).map(([term, value]) => [h('dt', null, term), h('dd', null, value)]))
}
