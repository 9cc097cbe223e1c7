/**
 * Runs that one form orders, loaded only for forms that order several: one for each model at each thinking level.
 *
 * @typedef {import('./order.js').Order} Order
 * @typedef {object} Sweep
 * @property {string[]} models models besides that of the order
 * @property {string[]} levels thinking levels in place of the order's reasoning settings: `base`, an effort, or a number of tokens
 */
/** @typedef {{model: string, level: string | null, order: Order}} PlannedRun */

import { h } from '../../core/dom.js'
import { plural } from '../../core/format.js'
import { leveled } from '../../core/agents.js'
import { costText, timeText } from './estimate-text.js'
import { modelsOf } from './state.js'

/** Levels that the form offers by name: the provider's own, and all efforts. */
export const LEVELS = ['base', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh']
/** Maximum number of runs of one form. */
export const RUNS_MAX = 24
/** Maximum number of tokens of a thinking level. */
export const TOKENS_MAX = 10_000_000

/**
 * Says that a form orders too many runs; '' if it doesn't.
 *
 * @param {number} runs
 */
export function tooMany(runs) {
  return runs > RUNS_MAX ? `These are ${runs} runs. One form starts at most ${RUNS_MAX}.` : ''
}

/**
 * Returns the runs, in the order in which `bench run` makes them: each model at each level.
 *
 * @param {Order} order
 * @param {Sweep} sweep
 * @returns {PlannedRun[]}
 */
export function runsOf(order, sweep) {
  if (order.tasks) return [{ model: order.model_id ?? '', level: null, order }]
  const levels = sweep.levels.length > 0 ? sweep.levels : [null]
  return modelsOf(order, sweep).flatMap((model) => levels.map((level) => ({ model, level, order: atLevel({ ...order, model_id: model }, level) })))
}

/**
 * @param {Order} order
 * @param {string | null} level null keeps the settings of the order
 * @returns {Order}
 */
function atLevel(order, level) {
  if (level === null) return order
  const { reasoning_effort: _effort, thinking_budget: _budget, ...rest } = order
  if (level === 'base') return rest
  return /^\d+$/.test(level) ? { ...rest, thinking_budget: Number(level) } : { ...rest, reasoning_effort: level }
}

/**
 * Reads further models and thinking levels from the query of an address. Levels that don't exist are left out.
 *
 * @param {URLSearchParams} query
 * @returns {Sweep}
 */
export function sweepOf(query) {
  const names = (query.get('thinking_level') ?? '').split(',').map((name) => name.trim())
  const budgets = names.filter((name) => /^[1-9]\d*$/.test(name) && Number(name) <= TOKENS_MAX)
  const models = query.getAll('model').slice(1).filter(Boolean)
  return { models: [...new Set(models)], levels: [...LEVELS.filter((level) => names.includes(level)), ...new Set(budgets)] }
}

/**
 * Adds a sweep to the query of its order.
 *
 * @param {URLSearchParams} query
 * @param {Order} order
 * @param {Sweep} sweep
 */
export function addToQuery(query, order, sweep) {
  for (const model of modelsOf(order, sweep).slice(query.has('model') ? 1 : 0)) query.append('model', model)
  if (sweep.levels.length > 0) query.set('thinking_level', sweep.levels.join(','))
}

/**
 * True if the runs would get different items by chance, so that their scores can't be compared item by item.
 *
 * @param {Order} order
 */
function selectsByChance(order) {
  const isPart = order.subset_count != null || (order.subset_pct ?? 100) < 100
  return isPart && !order.items && !order.subset_seed
}

/**
 * Adds up the estimates of runs, and lists them.
 *
 * @param {{model: string, level: string | null, estimate: Api.EstimateView}[]} runs at least one
 * @param {Order} order of one of them
 */
export function together(runs, order) {
  const notes = [
    selectsByChance(order) && h('p', { class: 'note warn' }, 'Without a seed, each run selects other items: give one to compare the runs item by item.'),
    h('ol', { class: 'estimate-runs', 'aria-label': 'Runs' }, runs.map(({ model, level, estimate }) => h('li', null,
      h('span', null, leveled(model, level)),
      h('span', { class: 'dim' }, `${estimate.samples === null ? 'unknown samples' : plural(estimate.samples, 'sample')}, ${timeText(estimate)}, ${costText(estimate)}`)))),
  ]
  return { estimate: combined(runs.map(({ estimate }) => estimate)), runs: runs.length, notes }
}

/**
 * Adds up the estimates of several runs.
 *
 * @param {Api.EstimateView[]} estimates at least one
 * @returns {Api.EstimateView}
 */
function combined(estimates) {
  const [first] = estimates
  const sum = (/** @type {(estimate: Api.EstimateView) => number | null | undefined} */ of) =>
    estimates.reduce((/** @type {number | null} */ total, estimate) => { const value = of(estimate); return total === null || value == null ? null : total + value }, 0)
  const asked = estimates.find(({ basis }) => basis?.lengths !== 'none') ?? first
  const isSamePrice = estimates.every(({ price }) => JSON.stringify(price) === JSON.stringify(first.price))
  return {
    ...first,
    items: first.items,
    samples: sum(({ samples }) => samples),
    input_tokens: sum(({ input_tokens: tokens }) => tokens),
    output_tokens: sum(({ output_tokens: tokens }) => tokens),
    judge_input_tokens: sum(({ judge_input_tokens: tokens }) => tokens),
    judge_output_tokens: sum(({ judge_output_tokens: tokens }) => tokens),
    user_input_tokens: sum(({ user_input_tokens: tokens }) => tokens),
    user_output_tokens: sum(({ user_output_tokens: tokens }) => tokens),
    cost_usd: sum(({ cost_usd: cost }) => cost),
    known_cost_usd: sum(({ known_cost_usd: cost }) => cost) ?? 0,
    duration_seconds: sum((estimate) => (estimate.basis?.lengths === 'none' ? 0 : estimate.duration_seconds)),
    cost_note: estimates.find(({ cost_note: note }) => note)?.cost_note ?? null,
    reaches_budget: estimates.some(({ reaches_budget: reaches }) => reaches === true),
    warnings: [...new Set(estimates.flatMap(({ warnings }) => warnings))],
    price: isSamePrice ? first.price : null,
    basis: asked.basis,
  }
}
