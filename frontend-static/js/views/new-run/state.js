/** The order while it is edited. Parts of the form change it and listen to it. */

import { hasConversations, needsModel } from '../../core/agents.js'
import { setAt, valueAt } from './order.js'

/** Beginning of the names of stored responses, which stand in the place of a model. */
export const REPLAY = 'replay:'
/** Fields of an order that thinking levels replace. */
export const REASONING = ['reasoning_effort', 'thinking_budget']

/**
 * Returns the path to which an order is posted: with a provider's key, the one where that key pays.
 *
 * @param {string} key empty for none
 */
export function runsPath(key) {
  return key && !key.startsWith('bra_') ? '/api/runs/api' : '/api/runs'
}

/**
 * Returns the models of an order and a sweep, each once.
 *
 * @param {import('./order.js').Order} order
 * @param {import('./sweep.js').Sweep} sweep
 */
export function modelsOf(order, { models }) {
  return [...new Set([order.model_id, ...models].filter((name) => name !== undefined && name !== ''))].map(String)
}

export class OrderState extends EventTarget {
  /** Key that pays for this run; it stays in this object. Empty for none. */
  key = ''
  /** True if this browser keeps the key after the page is closed. */
  remember = false
  /** Key for the judge. Empty for none. */
  judgeKey = ''
  userKey = ''
  /** Estimates by benchmark, for the present settings. @type {Map<string, Api.EstimatedBenchmarkView>} */
  estimates = new Map()

  /** @param {import('./order.js').Order} order */
  constructor(order) {
    super()
    this.order = order
    /** Further models and thinking levels, each a run of its own. @type {import('./sweep.js').Sweep} */
    this.sweep = { models: [], levels: [] }
  }

  /** What makes several runs of a sweep; null until a form has one, since most have none. @type {typeof import('./sweep.js') | null} */
  planner = null

  /**
   * What is missing if a selected benchmark needs a user model, and there is none; null otherwise. Sources of answers that ask no
   * model need none.
   */
  get missingUser() {
    const name = this.order.selected_benchmarks?.find(hasConversations)
    const isAsked = modelsOf(this.order, this.sweep).some((model) => needsModel(model) && !model.startsWith(REPLAY))
    if (!name || !isAsked || valueAt(this.order, 'user_model.model_id')) return null
    return { field: 'user_model.model_id', message: `Choose the model that simulates users in ${name}. The evaluated model never takes its place.` }
  }

  /** Runs that the form orders, in the order in which `bench run` makes them. @type {import('./sweep.js').PlannedRun[]} */
  get runs() {
    return this.runsOf(this.order)
  }

  /**
   * @param {import('./order.js').Order} order this order, perhaps without some fields
   * @returns {import('./sweep.js').PlannedRun[]}
   */
  runsOf(order) {
    return this.planner ? this.planner.runsOf(order, this.sweep) : [{ model: order.model_id ?? '', level: null, order }]
  }

  /** @param {Partial<import('./sweep.js').Sweep>} change */
  setSweep(change) {
    this.sweep = { ...this.sweep, ...change }
    this.changed('sweep')
  }

  /**
   * Sets a field and sends the event `change`.
   *
   * @param {string} path
   * @param {import('./fields.js').FieldValue | undefined} value undefined removes the field
   */
  set(path, value) {
    setAt(this.order, path, value)
    this.changed(path)
  }

  /** @param {string} path */
  changed(path) {
    this.dispatchEvent(new CustomEvent('change', { detail: { path } }))
  }

  /** @param {Map<string, Api.EstimatedBenchmarkView>} estimates */
  setEstimates(estimates) {
    this.estimates = estimates
    this.dispatchEvent(new Event('estimates'))
  }

  /** Path of the API for this order. */
  get path() {
    return runsPath(this.key)
  }

  /** Headers with the keys of this run. */
  get headers() {
    return {
      authorization: this.key ? `Bearer ${this.key}` : null,
      'x-judge-authorization': this.judgeKey ? `Bearer ${this.judgeKey}` : null,
      'x-user-authorization': this.userKey ? `Bearer ${this.userKey}` : null,
    }
  }
}
