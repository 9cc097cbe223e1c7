/** The samples before and after one, in the order and with the filter of the list that the reader came from. */

import { filterQuery, keyOf, listOf } from '../run/item-list.js'

/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../../core/source.js').Sample} Sample */

/**
 * @param {{source: import('../../core/source.js').RunSource, b: RunBenchmark, item: Sample, filter: import('../run/item-list.js').ItemFilter, signal: AbortSignal}} options
 * @returns {Promise<{at: number, total: number, previous: string | null, next: string | null}>} `total` is 0 if it isn't known
 */
export async function neighborsOf({ source, b, item, filter, signal }) {
  const name = b.benchmark_name
  const query = filterQuery(filter)
  const pathOf = (/** @type {{item_id: string, sample: number} | undefined} */ row) => {
    if (!row) return null
    const path = source.itemPath(name, String(row.item_id), row.sample)
    return query ? `${path}${path.includes('?') ? '&' : '?'}${query}` : path
  }
  try {
    const index = await source.index(name, signal)
    if (index) {
      let rows = listOf(index.rows, filter)
      let at = rows.findIndex((row) => keyOf(row) === keyOf(item))
      if (at < 0) {
        // The item isn't among the filtered ones: go through all.
        rows = index.rows
        at = rows.findIndex((row) => keyOf(row) === keyOf(item))
      }
      return { at, total: rows.length, previous: pathOf(rows[at - 1]), next: pathOf(rows[at + 1]) }
    }
    return await byPosition(source, b, item, pathOf, signal)
  } catch (error) {
    if (!signal.aborted) console.warn(error)
    return { at: 0, total: 0, previous: null, next: null }
  }
}

/**
 * Finds the neighbors by their place in the plan, for runs without an index.
 *
 * @param {import('../../core/source.js').RunSource} source
 * @param {RunBenchmark} b
 * @param {Sample} item
 * @param {(row: {item_id: string, sample: number} | undefined) => string | null} pathOf
 * @param {AbortSignal} signal
 */
async function byPosition(source, b, item, pathOf, signal) {
  const at = item.position * (b.samples_per_item ?? 1) + item.sample
  const total = b.planned_samples ?? 0
  const get = async (/** @type {number} */ offset) => {
    if (offset < 0 || offset >= total) return undefined
    const { items } = await source.items({ benchmark: b.benchmark_name, offset, limit: 1 }, signal)
    return items.items[0]
  }
  const [before, after] = await Promise.all([get(at - 1), get(at + 1)])
  return { at, total, previous: pathOf(before), next: pathOf(after) }
}
