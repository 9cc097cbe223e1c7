/** Where a run's data come from: the server, or a verified archive in memory. The run and item views know only this. */

import { address, api } from './api.js'
import { painted } from './dom.js'
import { path } from './router.js'
import { isBenchmarkOpen, isOpen } from './run-facts.js'

/**
 * @typedef {object} IndexRow One sample in an index.
 * @property {number} position index of the item in the plan
 * @property {number} sample index among the item's samples
 * @property {string} item_id index of the dataset's row
 * @property {string | null} source_id the dataset's own id
 * @property {string | null} group
 * @property {string | null} outcome null if the sample never ended
 * @property {number | null} score
 * @property {string | null} extracted beginning of the extracted answer
 * @property {number | null} latency_ms
 * @property {number | null} input_tokens
 * @property {number | null} output_tokens
 * @property {number | null} attempts
 * @property {string | null} item_hash first digits of the hash of the item's question; null if it isn't known
 */

/**
 * @typedef {object} ItemIndex All samples of a benchmark, without texts.
 * @property {boolean} hidden true if answers are left out, because the dataset is gated
 * @property {IndexRow[]} rows in the order of the plan
 */

/**
 * @typedef {object} ItemsQuery
 * @property {string} benchmark
 * @property {string} [outcome] names separated by commas
 * @property {string} [group]
 * @property {string} [item] the dataset's own id, or `#` and the index of the row
 * @property {number} [sample]
 * @property {number} [offset]
 * @property {string} [cursor] `next_cursor` of the page before
 * @property {number} [limit]
 * @property {boolean} [texts] false leaves out what is in stored bodies
 */

/** @typedef {import('./run-facts.js').Run} Run */
/** @typedef {import('./run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {Omit<Api.PageItem, 'attempts'> & {attempts: number | null}} Sample one with texts; archives of other programs have no attempts */
/** @typedef {Omit<Api.DetailsView, 'benchmark' | 'items'> & {benchmark: RunBenchmark, items: Omit<Api.ItemsPage, 'items'> & {items: Sample[]}}} Details */

/**
 * @typedef {object} RunSource
 * @property {string} id id of the run
 * @property {boolean} live true if the data can change and the server can act on the run
 * @property {(query?: Record<string, string>) => string} runPath path of the run view, with entries of its query
 * @property {(benchmark: string, item: string, sample?: number) => string} itemPath path of an item view
 * @property {(signal?: AbortSignal) => Promise<Run>} run
 * @property {(benchmark: string, signal?: AbortSignal) => Promise<ItemIndex | null>} index null if there is none
 * @property {(query: ItemsQuery, signal?: AbortSignal) => Promise<Details>} items benchmark, page of samples, summary
 * @property {(benchmark: string, item: string, sample: number, signal?: AbortSignal) => Promise<Sample | null>} item one sample with its texts; null if there is none
 * @property {(benchmark: string, signal?: AbortSignal) => Promise<string | null>} nameOf the benchmark's name for readers; null if it isn't known
 * @property {((cursor: string, signal?: AbortSignal) => Promise<Api.EventsView>) | null} events a page of events; null if there are none
 */

/**
 * True if a benchmark of a run has an index now. While a run is open, one that it had before is out of date or gone.
 *
 * @param {Run} run
 * @param {RunBenchmark} b
 */
export function hasIndexOf(run, b) {
  return Boolean(b.index) && !isOpen(run) && !isBenchmarkOpen(b)
}

/** Rows of an index that are read at once, so that the page answers input in between. */
const CHUNK = 3000

/** A run on the server. @implements {RunSource} */
export class ApiSource {
  live = true

  /** @param {string} id */
  constructor(id) {
    this.id = id
    this.base = `/api${path('runs', id)}`
    /** @type {Api.RunView | null} */
    this.latest = null
    /** @type {Map<string, Promise<ItemIndex>>} */
    this.indexes = new Map()
  }

  /** @param {Record<string, string>} [query] */
  runPath(query) { return address(path('runs', this.id), query) }

  /**
   * @param {string} benchmark
   * @param {string} item
   * @param {number} [sample]
   */
  itemPath(benchmark, item, sample = 0) {
    return path('runs', this.id, 'items', benchmark, item) + (sample ? `?sample=${sample}` : '')
  }

  /** @param {AbortSignal} [signal] */
  async run(signal) {
    /** @type {Api.RunView} */
    const run = await api.get(this.base, { signal })
    this.latest = run
    return run
  }

  /**
   * Loads the whole index of a benchmark once. Asks only if the run view says that there is one, since a request that
   * fails would be an error in the browser's console.
   *
   * @param {string} benchmark
   * @param {AbortSignal} [signal]
   * @returns {Promise<ItemIndex | null>}
   */
  async index(benchmark, signal) {
    const run = this.latest ?? await this.run(signal)
    const entry = run.benchmarks.find((b) => b.benchmark_name === benchmark)
    if (!entry?.index || !hasIndexOf(run, entry)) return null
    const key = `${benchmark} ${run.generation_number}`
    let wait = this.indexes.get(key)
    if (!wait) {
      wait = this.#load(benchmark, entry.index.parts)
      this.indexes.set(key, wait)
      wait.catch(() => this.indexes.delete(key))
    }
    return wait
  }

  /**
   * @param {string} benchmark
   * @param {number} parts
   * @returns {Promise<ItemIndex>}
   */
  async #load(benchmark, parts) {
    /** @type {IndexRow[]} */
    const rows = []
    let hidden = false
    /** @returns {Promise<Api.ItemIndexView>} */
    const load = (/** @type {number} */ part) => api.get(`${this.base}/items/index`, { query: { benchmark, part } })
    let next = load(0)
    for (let part = 0; part < parts; part += 1) {
      const page = await next
      // The next part is on its way while this one is read.
      if (part + 1 < parts) { next = load(part + 1); next.catch(() => {}) }
      hidden ||= page.hidden
      for (let at = 0; at < page.rows.length; at += CHUNK) {
        if (rows.length > 0) await painted()
        rows.push(...rowsOf({ ...page, rows: page.rows.slice(at, at + CHUNK) }))
      }
    }
    return { hidden, rows }
  }

  /**
   * @param {ItemsQuery} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<Api.DetailsView>}
   */
  items({ benchmark, ...query }, signal) {
    return api.get(`${this.base}/benchmarks/${encodeURIComponent(benchmark)}`, { query, signal })
  }

  /**
   * @param {string} benchmark
   * @param {string} item index of the dataset's row, or the dataset's own id
   * @param {number} sample
   * @param {AbortSignal} [signal]
   */
  async item(benchmark, item, sample, signal) {
    const names = /^\d+$/.test(item) ? [`#${item}`, item] : [item]
    for (const name of names) {
      const page = await this.items({ benchmark, item: name, sample, limit: 1 }, signal)
      if (page.items.items.length > 0) return page.items.items[0]
    }
    return null
  }

  /**
   * @param {string} benchmark
   * @param {AbortSignal} [signal]
   */
  async nameOf(benchmark, signal) {
    /** @type {{benchmarks: Api.BenchmarkView[]}} */
    const { benchmarks } = await api.get('/api/benchmarks', { query: { texts: false }, signal })
    return benchmarks.find(({ name }) => name === benchmark)?.display_name ?? null
  }

  /**
   * @param {string} cursor '' for the beginning
   * @param {AbortSignal} [signal]
   * @returns {Promise<Api.EventsView>}
   */
  events(cursor, signal) {
    return api.get(`${this.base}/events`, { query: { cursor: cursor || '0', limit: 1000 }, signal })
  }
}

/** @type {ApiSource | null} */
let recent = null

/**
 * Returns the source of a run. Going from item to item keeps it, with the run and the indexes that it has loaded.
 *
 * @param {string} id
 */
export function apiSource(id) {
  if (recent?.id !== id) recent = new ApiSource(id)
  return recent
}

/**
 * Turns the rows of one part of an index into objects.
 *
 * @param {Pick<Api.ItemIndexView, 'columns' | 'rows' | 'groups' | 'outcomes'>} page
 * @returns {IndexRow[]}
 */
export function rowsOf({ columns, rows, groups, outcomes }) {
  const at = Object.fromEntries(columns.map((name, i) => [name, i]))
  return rows.map((row) => {
    const number = (/** @type {string} */ name) => { const value = row[at[name]]; return typeof value === 'number' ? value : null }
    const text = (/** @type {string} */ name) => { const value = row[at[name]]; return typeof value === 'string' ? value : null }
    return {
      position: number('position') ?? 0,
      sample: number('sample') ?? 0,
      item_id: text('item_id') ?? '',
      source_id: text('source_id'),
      group: groups[number('group') ?? -1] ?? null,
      outcome: outcomes[number('outcome') ?? -1] ?? null,
      score: number('score'),
      extracted: text('extracted'),
      latency_ms: number('latency_ms'),
      input_tokens: number('input_tokens'),
      output_tokens: number('output_tokens'),
      attempts: number('attempts'),
      item_hash: text('item_hash'),
    }
  })
}
