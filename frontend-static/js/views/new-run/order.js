import { hasConversations } from '../../core/agents.js'

/**
 * The order that the form builds: the JSON body of `POST /api/runs`, with only the fields that the reader set.
 *
 * Fields are addressed by paths such as `judge.model_id`, which are also the names of the form's controls and the places
 * that errors of the API name.
 *
 * @typedef {Partial<Api.ScheduleOrder>} Order
 */
/** @typedef {import('./fields.js').FieldValue | null | undefined} Value */

/** Share of the items that a new order starts with, in percent: small enough to try a model, large enough to see it. */
export const SHARE_DEFAULT = 10
/** Shares of the items that the form offers, in percent. */
export const SHARES = [1, 5, 10, 25, 50, 100]
/** Settings of a judge or a user model. */
const OF_MODEL = /** @type {const} */ (['temperature', 'seed', 'max_tokens'])

/**
 * Returns the value at a path, or undefined.
 *
 * @param {object} order an order, or a schedule, whose fields have the same names
 * @param {string} path
 * @returns {Value}
 */
export function valueAt(order, path) {
  const inside = (/** @type {unknown} */ value, /** @type {string} */ key) => /** @type {Record<string, unknown> | undefined} */ (value)?.[key]
  return /** @type {Value} */ (path.split('.').reduce(inside, order))
}

/**
 * Sets the value at a path. An undefined value removes the field, and objects that become empty with it.
 *
 * @param {object} order
 * @param {string} path
 * @param {unknown} value
 */
export function setAt(order, path, value) {
  const fields = /** @type {Record<string, unknown>} */ (order)
  const [key, ...rest] = path.split('.')
  if (rest.length === 0) {
    if (value === undefined) delete fields[key]
    else fields[key] = value
    return
  }
  const inner = { ...(fields[key] ?? {}) }
  setAt(inner, rest.join('.'), value)
  if (Object.keys(inner).length === 0) delete fields[key]
  else fields[key] = inner
}

/**
 * Returns a copy without settings of benchmarks that aren't selected, which the API would refuse or ignore.
 *
 * @param {Order} order
 * @returns {Order}
 */
export function relevant(order) {
  const selected = new Set(order.selected_benchmarks ?? [])
  const copy = { ...order }
  for (const field of /** @type {const} */ (['protocols', 'benchmark_options'])) {
    const kept = Object.entries(copy[field] ?? {}).filter(([name]) => selected.has(name))
    setAt(copy, field, kept.length > 0 ? Object.fromEntries(kept) : undefined)
  }
  if (![...selected].some(hasConversations)) setAt(copy, 'user_model', undefined)
  return copy
}

/**
 * Returns the order that repeats a run. Items of a subset without a seed can't be selected again, since its seed was the
 * run's id; that id is then the seed.
 *
 * @param {Api.RunView} run
 * @returns {Order}
 */
export function orderOfRun(run) {
  /** @type {Order} */
  const order = { model_id: run.model, selected_benchmarks: run.benchmarks.map((b) => b.benchmark_name) }
  const put = (/** @type {string} */ path, /** @type {unknown} */ value) => {
    const isEmpty = value == null || (typeof value === 'object' && Object.keys(value).length === 0)
    if (!isEmpty) setAt(order, path, value)
  }
  if (run.items?.length) order.items = run.items
  else if (run.subset_count != null) order.subset_count = run.subset_count
  else order.subset_pct = run.subset_pct
  const isWhole = order.subset_pct === 100 || order.items
  put('subset_seed', run.subset_seed ?? (isWhole ? null : run.id))
  put('samples', run.samples)
  if (run.demo) order.demo = true
  const settings = run.generation
  for (const name of /** @type {const} */ (['temperature', 'top_p', 'max_tokens', 'stop', 'top_k', 'system_prompt', 'reasoning_effort',
    'thinking_budget', 'extra_body', 'omit', 'max_tokens_field'])) put(name, settings[name])
  put('sampler_seed', settings.seed)
  for (const name of /** @type {const} */ (['requests_per_minute', 'timeout_seconds', 'max_failures'])) put(name, run.limits?.[name])
  put('budget_usd', run.budget?.usd)
  put('budget_tokens', run.budget?.tokens)
  put('protocols', run.protocols)
  put('benchmark_options', run.benchmark_options)
  put('judge.model_id', run.judge?.model)
  const user = /** @type {{user_model?: Api.JudgeOrderView | null}} */ (run).user_model
  put('user_model.model_id', user?.model)
  for (const name of OF_MODEL) {
    put(`judge.${name}`, run.judge?.[name])
    put(`user_model.${name}`, user?.[name])
  }
  return order
}
