/** A verified archive in memory as a source of the run and item views. Nothing is asked of a server. */

import { address } from '../core/api.js'
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

  /** @param {Record<string, string>} [query] */
  runPath(query) { return address(path('verify', 'run'), { run: this.id, ...query }) }

  /**
   * @param {string} benchmark
   * @param {string} item
   * @param {number} [sample]
   */
  itemPath(benchmark, item, sample = 0) {
    return address(path('verify', 'items', benchmark, item), { run: this.id, sample: sample || null })
  }

  async run() {
    return runView(this.results)
  }

  /** @param {string} benchmark */
  async index(benchmark) {
    return this.#at(benchmark) < 0 ? null : { hidden: false, rows: this.rows(benchmark) }
  }

  /**
   * Returns the rows of a benchmark; none if the archive doesn't have it.
   *
   * @param {string} benchmark
   */
  rows(benchmark) {
    return this.results.rows[this.#at(benchmark)] ?? []
  }

  /** Archives don't have benchmarks' names for readers. */
  async nameOf() {
    return null
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

/** Archives that are kept at most, so that a tab's memory stays small: as many as can be compared. */
const ARCHIVES_MAX = 6

/** Verified archives by the id of their run, the latest last. @type {Map<string, ArchiveSource>} */
const opened = new Map()

/**
 * Keeps an archive for the views under `/verify`. The oldest one makes room.
 *
 * @param {ArchiveSource} source
 */
export function openArchive(source) {
  opened.delete(source.id)
  opened.set(source.id, source)
  for (const id of [...opened.keys()].slice(0, -ARCHIVES_MAX)) opened.delete(id)
}

/** @param {ArchiveSource} source */
export function closeArchive({ id }) {
  opened.delete(id)
}

/** Returns the archives of this tab, the latest last. None after a reload, since they are kept in memory only. */
export function openedArchives() {
  return [...opened.values()]
}

/**
 * Returns the archive of a run, or the latest one.
 *
 * @param {string | null} run
 * @returns {ArchiveSource | null}
 */
export function openedArchive(run) {
  return (run === null ? openedArchives().at(-1) : opened.get(run)) ?? null
}
