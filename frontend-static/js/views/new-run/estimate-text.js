/** Estimates in words. What isn't known is said, never shown as zero. */

import { h } from '../../core/dom.js'
import { duration, integer, tokens, usd } from '../../core/format.js'

/**
 * Describes an estimated cost: a sum, at least a sum, or why there is none.
 *
 * @param {Api.EstimatedView} estimate of an order or of a benchmark
 */
export function costText(estimate) {
  if (estimate.cost_usd === 0) return 'free'
  if (estimate.cost_usd != null) return `about ${usd(estimate.cost_usd)}`
  if (estimate.known_cost_usd > 0) return `at least ${usd(estimate.known_cost_usd)}`
  return 'unknown cost'
}

/**
 * True if a model is asked: not for the oracle and stored responses.
 *
 * @param {Api.EstimatedView} estimate
 */
export function isAsked(estimate) {
  return estimate.basis?.lengths !== 'none'
}

/** @param {Api.EstimatedView} estimate */
export function timeText(estimate) {
  if (estimate.duration_seconds == null && !isAsked(estimate)) return 'no model to wait for'
  return estimate.duration_seconds == null ? 'unknown time' : `about ${duration(Math.max(1, roundSeconds(estimate.duration_seconds)))}`
}

/**
 * Rounds an estimate of time, whose seconds mean nothing beyond a few minutes.
 *
 * @param {number} seconds
 */
export function roundSeconds(seconds) {
  const step = seconds < 60 ? 1 : seconds < 600 ? 10 : seconds < 36_000 ? 60 : 3600
  return Math.round(seconds / step) * step
}

/**
 * Leaves out what a column of estimates needn't repeat.
 *
 * @param {string} text
 */
function plain(text) {
  return text.replace('about ', '')
}

/** @param {Api.EstimatedView} estimate */
export function tokensText(estimate) {
  if (estimate.input_tokens == null || estimate.output_tokens == null) return 'unknown tokens'
  const others = [estimate.judge_input_tokens, estimate.judge_output_tokens, estimate.user_input_tokens, estimate.user_output_tokens]
  const sum = others.reduce((/** @type {number} */ total, some) => total + (some ?? 0), estimate.input_tokens + estimate.output_tokens)
  return `${tokens(sum)} tokens`
}

/**
 * Describes a benchmark of an order: items of its total, then time, tokens and cost.
 *
 * @param {Api.EstimatedView | undefined} estimate undefined while there is none
 * @param {number} total items of the dataset; 0 if unknown
 * @returns {import('../../core/dom.js').Child[]}
 */
export function estimateText(estimate, total) {
  const size = total > 0 ? `${integer(total)} items` : 'number of items unknown'
  if (!estimate) return [h('span', { class: 'estimate-items' }, size)]
  const items = estimate.items == null ? size : estimate.items === total || total === 0 ? `${integer(estimate.items)} items` : `${integer(estimate.items)} of ${integer(total)} items`
  return [
    h('span', { class: 'estimate-items' }, items),
    estimate.samples != null && estimate.samples !== estimate.items && h('span', null, `${integer(estimate.samples)} samples`),
    isAsked(estimate) && h('span', null, plain(timeText(estimate))),
    isAsked(estimate) && h('span', null, tokensText(estimate)),
    h('span', { title: estimate.cost_note ?? null }, plain(costText(estimate))),
  ]
}
