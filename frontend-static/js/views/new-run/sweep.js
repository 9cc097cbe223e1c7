/**
 * Runs that one form orders: one for each model at each thinking level.
 *
 * @typedef {import('./order.js').Order} Order
 * @typedef {object} Sweep
 * @property {string[]} models models besides that of the order
 * @property {string[]} levels thinking levels in place of the order's reasoning settings: `base`, an effort, or a number of tokens
 */
/** @typedef {{model: string, level: string | null, order: Order}} PlannedRun */

/** Levels that the form offers by name: the provider's own, and all efforts. */
export const LEVELS = ['base', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh']
/** Fields of an order that thinking levels replace. */
export const REASONING = ['reasoning_effort', 'thinking_budget']
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

/** @returns {Sweep} */
export function noSweep() {
  return { models: [], levels: [] }
}

/**
 * Returns the models of an order and a sweep, each once.
 *
 * @param {Order} order
 * @param {Sweep} sweep
 */
export function modelsOf(order, { models }) {
  return [...new Set([order.model_id, ...models].filter((name) => name !== undefined && name !== ''))].map(String)
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
 * Reads levels from a text such as `base,low,8192`. Those that don't exist are left out.
 *
 * @param {string} text
 */
export function readLevels(text) {
  const names = text.split(',').map((name) => name.trim())
  const budgets = names.filter((name) => /^[1-9]\d*$/.test(name) && Number(name) <= TOKENS_MAX)
  return [...LEVELS.filter((level) => names.includes(level)), ...new Set(budgets)]
}

/**
 * True if the runs would get different items by chance, so that their scores can't be compared item by item.
 *
 * @param {Order} order
 */
export function selectsByChance(order) {
  const isPart = order.subset_count != null || (order.subset_pct ?? 100) < 100
  return isPart && !order.items && !order.subset_seed
}

/**
 * Adds up the estimates of several runs.
 *
 * @param {Api.EstimateView[]} estimates at least one
 * @returns {Api.EstimateView}
 */
export function combined(estimates) {
  const [first] = estimates
  if (estimates.length === 1) return first
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
