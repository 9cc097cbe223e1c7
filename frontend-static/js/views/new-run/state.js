/** The order while it is edited. Parts of the form change it and listen to it. */

import { setAt } from './order.js'
import { noSweep } from './sweep.js'

/**
 * Returns the path to which an order is posted: with a provider's key, the one where that key pays.
 *
 * @param {string} key empty for none
 */
export function runsPath(key) {
  return key && !key.startsWith('bra_') ? '/api/runs/api' : '/api/runs'
}

export class OrderState extends EventTarget {
  /** Key that pays for this run; it stays in this object. Empty for none. */
  key = ''
  /** True if this browser keeps the key after the page is closed. */
  remember = false
  /** Key for the judge. Empty for none. */
  judgeKey = ''
  /** Estimates by benchmark, for the present settings. @type {Map<string, Api.EstimatedBenchmarkView>} */
  estimates = new Map()

  /**
   * @param {import('./order.js').Order} order
   * @param {import('./sweep.js').Sweep} [sweep]
   */
  constructor(order, sweep = noSweep()) {
    super()
    this.order = order
    /** Further models and thinking levels, each a run of its own. */
    this.sweep = sweep
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
    }
  }
}
