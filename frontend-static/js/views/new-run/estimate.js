/** The estimate of an order, asked for while the reader edits it: one request at a time, after a pause in typing. */

import { api } from '../../core/api.js'
import { CUSTOM, hasConversations } from '../../core/agents.js'
import { relevant } from './order.js'

/** Fields that change no estimate: labels, and the times of schedules. */
const WITHOUT_EFFECT = /** @type {const} */ (['name', 'tags', 'notes', 'cron', 'time_zone', 'webhook_url', 'enabled'])
/** Milliseconds without a change before the server is asked. */
const PAUSE = 300

/**
 * @typedef {object} Estimated
 * @property {Api.EstimateView} [estimate] answer of the API, for all runs together; absent if nothing is chosen or it failed
 * @property {number} [runs] number of runs, if they are several
 * @property {import('../../core/dom.js').Child} [notes] what to say about several runs
 * @property {Error} [error]
 * @property {boolean} isCurrent false while a newer one is being made
 */

/**
 * Keeps the estimate of an order up to date. Estimates of benchmarks that aren't selected follow in a second request,
 * so that readers can choose by time and cost.
 *
 * @param {import('./state.js').OrderState} state
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {(estimated: Estimated) => void} show
 * @param {AbortSignal} signal
 */
export function keepEstimate(state, benchmarks, show, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let isBusy = false
  let isStale = false
  /** @type {Estimated} */
  let last = { isCurrent: true }
  let settings = ''

  const present = (/** @type {Estimated} */ value) => { last = value; show(value) }
  const refresh = async () => {
    if (isBusy) { isStale = true; return }
    isBusy = true
    isStale = false
    try {
      await turn()
    } finally {
      isBusy = false
      if (isStale && !signal.aborted) void refresh()
    }
  }
  const turn = async () => {
    const all = orderToEstimate(state.order)
    const { planner } = state
    const [first, ...further] = state.runsOf(all)
    const order = first?.order ?? all
    const now = settingsOf(order)
    const known = now === settings ? new Map(state.estimates) : new Map()
    settings = now
    const selected = order.selected_benchmarks ?? []
    try {
      // Until the files of a custom agent are chosen, there is nothing to estimate.
      const isEmpty = order.tasks ? order.tasks.length === 0 || (order.agent === CUSTOM && !order.agent_options?.content_hash) : !order.model_id || order.items?.length === 0
      if (isEmpty || selected.length === 0) present({ isCurrent: true })
      else if (state.missingUser) present({ error: new Error(state.missingUser.message), isCurrent: true })
      else if (planner?.tooMany(further.length + 1)) present({ error: new Error(planner.tooMany(further.length + 1)), isCurrent: true })
      else {
        const estimate = await ask(order)
        if (signal.aborted || isStale) return
        keep(known, estimate)
        const runs = [{ model: first.model, level: first.level, estimate }]
        for (const { model, level, order: next } of further) {
          runs.push({ model, level, estimate: await ask(next) })
          if (signal.aborted || isStale) return
        }
        present(planner && further.length > 0 ? { ...planner.together(runs, order), isCurrent: true } : { estimate, isCurrent: true })
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isStale) present({ error: /** @type {Error} */ (error), isCurrent: true })
    }
    state.setEstimates(known)
    if (!order.model_id || order.items?.length === 0 || isStale) return
    // Conversations have no estimate without a user model, which the form asks for when one of them is selected.
    const others = benchmarks.filter(({ name, is_enabled }) => is_enabled !== false && !known.has(name) && !selected.includes(name) && !hasConversations(name))
    const names = others.map(({ name }) => name)
    if (names.length === 0 || last.error) return
    try {
      keep(known, await ask(relevant({ ...order, budget_usd: undefined, selected_benchmarks: names })))
      if (!signal.aborted && !isStale) state.setEstimates(new Map(known))
    } catch {
      // These estimates help to choose. An order of one of these benchmarks tells what is wrong with it.
    }
  }
  /** @returns {Promise<Api.EstimateView>} */
  const ask = (/** @type {import('./order.js').Order} */ order) => api.post('/api/runs/estimate', order, { signal })
  state.addEventListener('change', () => {
    clearTimeout(timer)
    if (last.isCurrent) present({ ...last, isCurrent: false })
    timer = setTimeout(refresh, PAUSE)
  })
  signal.addEventListener('abort', () => clearTimeout(timer))
  void refresh()
}

/**
 * @param {Map<string, Api.EstimatedBenchmarkView>} known
 * @param {Api.EstimateView} estimate
 */
function keep(known, estimate) {
  for (const each of estimate.benchmarks) known.set(each.benchmark_name, each)
}

/** @param {import('./order.js').Order} order */
function orderToEstimate(order) {
  const rest = { ...relevant(order) }
  for (const name of WITHOUT_EFFECT) delete rest[name]
  return rest
}

/**
 * Returns what the estimate of a benchmark depends on, as a text to compare.
 *
 * @param {import('./order.js').Order} order
 */
function settingsOf(order) {
  return JSON.stringify({ ...order, selected_benchmarks: null, budget_usd: null, budget_tokens: null })
}
