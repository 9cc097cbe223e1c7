/** A verified archive in memory as a source of the run and item views. Nothing is asked of a server. */

import { path } from '../core/router.js'
import { benchmarkView, runView, sampleView, summaryView } from './run-view.js'

/** @typedef {import('../core/source.js').RunSource} RunSource */
/** @typedef {import('../core/source.js').ItemsQuery} ItemsQuery */

/** @implements {RunSource} */
export class ArchiveSource {
  live = false
  events = null

  /**
   * @param {import('./results.js').Results} results
   * @param {{fileName: string, verification: import('./verify.js').Verification}} proof
   */
  constructor(results, proof) {
    this.results = results
    this.proof = proof
    this.id = String(results.run.id ?? '')
  }

  runPath() { return path('verify', 'run') }

  /**
   * @param {string} benchmark
   * @param {string} item
   * @param {number} [sample]
   */
  itemPath(benchmark, item, sample = 0) {
    return path('verify', 'items', benchmark, item) + (sample ? `?sample=${sample}` : '')
  }

  async run() {
    return runView(this.results)
  }

  /** @param {string} benchmark */
  async index(benchmark) {
    const at = this.#at(benchmark)
    return at < 0 ? null : { hidden: false, rows: this.results.rows[at] }
  }

  /** @param {ItemsQuery} query */
  async items({ benchmark, outcome, group, item, sample, offset, cursor, limit = 100 }) {
    const at = this.#at(benchmark)
    if (at < 0) throw new Error('The archive has no such benchmark.')
    const outcomes = outcome ? outcome.split(',') : null
    const rows = this.results.rows[at]
    const places = rows.flatMap((row, place) => {
      const fits = (!outcomes || outcomes.includes(row.outcome ?? '')) && (!group || row.group === group) &&
        (!item || names(row, item)) && (sample === undefined || row.sample === Number(sample))
      return fits ? [place] : []
    })
    const from = Number(cursor || offset || 0)
    const shown = places.slice(from, from + limit)
    return {
      benchmark: benchmarkView(this.results.benchmarks[at], at, rows),
      items: {
        items: shown.map((place) => this.#item(at, place)),
        total: places.length, limit, offset: from,
        next_cursor: from + limit < places.length ? String(from + limit) : null,
      },
      summary: summaryView(rows, this.results.benchmarks[at]),
    }
  }

  /**
   * @param {string} benchmark
   * @param {string} item Index of the dataset's row, or the dataset's own id.
   * @param {number} sample
   */
  async item(benchmark, item, sample) {
    const at = this.#at(benchmark)
    const rows = at < 0 ? [] : this.results.rows[at]
    for (const name of [`#${item}`, item]) {
      const place = rows.findIndex((row) => row.sample === sample && names(row, name))
      if (place >= 0) return this.#item(at, place)
    }
    return null
  }

  /** @param {string} benchmark */
  #at(benchmark) {
    return this.results.benchmarks.findIndex(({ benchmark_name: name }) => name === benchmark)
  }

  /** @param {number} benchmark @param {number} place */
  #item(benchmark, place) {
    return sampleView(this.results.rows[benchmark][place], this.results.item(benchmark, place))
  }
}

/** Returns true if a row is meant: `#` and the index of its row in the dataset, or the dataset's own id. @param {{item_id: string, source_id: string | null}} row @param {string} name */
function names(row, name) {
  return name.startsWith('#') ? row.item_id === name.slice(1) : row.source_id === name
}

/** Archive that the reader looks at now. @type {ArchiveSource | null} */
let opened = null

/**
 * Keeps an archive for the views under `/verify`.
 *
 * @param {ArchiveSource | null} source
 */
export function openArchive(source) {
  opened = source
}

/** Returns the archive that was opened last; null after a reload, since archives are kept in memory only. */
export function openedArchive() {
  return opened
}
