/**
 * The order that the form builds: the JSON body of `POST /api/runs`, with only the fields that the reader set.
 *
 * Fields are addressed by paths such as `judge.model_id`, which are also the names of the form's controls and the places
 * that errors of the API name.
 *
 * @typedef {Record<string, any>} Order
 */

/** Share of the items that a new order starts with, in percent: small enough to try a model, large enough to see it. */
export const SHARE_DEFAULT = 10
/** Shares of the items that the form offers, in percent. */
export const SHARES = [1, 5, 10, 25, 50, 100]

/**
 * Returns the value at a path, or undefined.
 *
 * @param {Order} order
 * @param {string} path
 */
export function valueAt(order, path) {
  return path.split('.').reduce((value, key) => value?.[key], /** @type {any} */ (order))
}

/**
 * Sets the value at a path. An undefined value removes the field, and objects that become empty with it.
 *
 * @param {Order} order
 * @param {string} path
 * @param {any} value
 */
export function setAt(order, path, value) {
  const [key, ...rest] = path.split('.')
  if (rest.length === 0) {
    if (value === undefined) delete order[key]
    else order[key] = value
    return
  }
  const inner = { ...(order[key] ?? {}) }
  setAt(inner, rest.join('.'), value)
  if (Object.keys(inner).length === 0) delete order[key]
  else order[key] = inner
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
  for (const field of ['protocols', 'benchmark_options']) {
    const kept = Object.entries(copy[field] ?? {}).filter(([name]) => selected.has(name))
    if (kept.length > 0) copy[field] = Object.fromEntries(kept)
    else delete copy[field]
  }
  return copy
}

/**
 * Returns the order that repeats a run. Items of a subset without a seed can't be selected again, since its seed was the
 * run's id; that id is then the seed.
 *
 * @param {any} run a run of the API
 * @returns {Order}
 */
export function orderOfRun(run) {
  /** @type {Order} */
  const order = { model_id: run.model, selected_benchmarks: run.benchmarks.map((/** @type {any} */ b) => b.benchmark_name) }
  const put = (/** @type {string} */ path, /** @type {any} */ value) => {
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
  const settings = run.generation ?? {}
  for (const name of ['temperature', 'top_p', 'max_tokens', 'stop', 'top_k', 'system_prompt', 'reasoning_effort',
    'thinking_budget', 'extra_body', 'omit', 'max_tokens_field']) put(name, settings[name])
  put('sampler_seed', settings.seed)
  for (const name of ['requests_per_minute', 'timeout_seconds', 'max_failures']) put(name, run.limits?.[name])
  put('budget_usd', run.budget?.usd)
  put('budget_tokens', run.budget?.tokens)
  put('protocols', run.protocols)
  put('benchmark_options', run.benchmark_options)
  put('judge.model_id', run.judge?.model)
  for (const name of ['temperature', 'seed', 'max_tokens']) put(`judge.${name}`, run.judge?.[name])
  return order
}
