/**
 * Episodes of a run of terminal tasks. While the run is open they are read without texts, after one has ended and now and then,
 * since one may have begun. Pages whose episodes are all over aren't read again.
 */

import { announce } from '../../core/states.js'
import { h, part, setText } from '../../core/dom.js'
import { isOpen } from '../../core/run-facts.js'
import { hasIndexOf } from '../../core/source.js'
import { episodeGrid, gridInWords, gridLegend, stateOf } from '../../components/episode-grid.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../../components/episode-grid.js').EpisodeRow} EpisodeRow */

/** Episodes of a request. */
const PAGE = 500
/** Share of the episodes after which screen readers are told of the progress. */
const TOLD = 0.25
/** Time after which the episodes of an open run are read again, in milliseconds. */
const AGAIN = 5000

/** @typedef {{element: HTMLElement, show: (panel: object, rows: EpisodeRow[]) => void}} Legend of one or more panels */

/** Makes a legend, which explains what the panels with it have together. @returns {Legend} */
export function episodesLegend() {
  /** @type {Map<object, EpisodeRow[]>} */
  const shown = new Map()
  const legend = part(h('div', null), (/** @type {EpisodeRow[]} */ rows) => [...new Set(rows.flatMap(({ episodes }) => episodes).map(stateOf))].sort(), gridLegend)
  return {
    element: legend.element,
    show(panel, rows) {
      shown.set(panel, rows)
      legend.show([...shown.values()].flat())
    },
  }
}

/**
 * @param {{source: import('../../core/source.js').RunSource, signal: AbortSignal, label?: string, legend?: Legend, task?: string}} options
 *   `legend` is that of several panels, which the caller shows once; `task` leaves out the other tasks of the run
 */
export function episodesPanel({ source, signal, label = 'Episodes', legend: shared, task }) {
  const grid = episodeGrid()
  const text = h('p', { class: 'dim episodes-text' })
  const legend = shared ?? episodesLegend()
  const element = h('div', { class: 'episodes' }, text, shared ? null : legend.element, grid)
  let key = ''
  let told = 0
  let busy = false
  let readAt = 0
  let timer = 0
  const pages = new PageCache()
  /** @type {[Run, RunBenchmark] | null} */
  let latest = null
  const draw = (/** @type {EpisodeRow[]} */ rows) => {
    grid.show(rows, label)
    const words = gridInWords(rows)
    setText(text, words)
    legend.show(grid, rows)
    const all = rows.flatMap(({ episodes }) => episodes)
    const share = all.filter(({ outcome }) => outcome !== null).length / Math.max(1, all.length)
    if (key && source.live && (Math.floor(share / TOLD) > told)) { if (told >= 0 && element.isConnected && latest && isOpenOf(latest)) announce(words) }
    told = Math.floor(share / TOLD)
  }
  const load = async () => {
    if (busy || !latest) return
    const [run, b] = latest
    const now = `${run.generation_number} ${b.status} ${b.completed_samples} ${b.planned_samples}`
    const isGoingOn = source.live && isOpen(run) && b.planned_samples > 0 && isOpenOf(latest)
    const isDue = isGoingOn && Date.now() - readAt >= AGAIN && !document.hidden
    if (now === key && !isDue) {
      if (isGoingOn) later()
      return
    }
    busy = true
    try {
      pages.keepOf(`${run.generation_number} ${b.planned_samples}`)
      const all = b.planned_samples > 0 || !source.live ? await rowsOf(source, run, b, pages, signal) : []
      const rows = task && all.length > 1 ? all.filter(({ name }) => name === task) : all
      readAt = Date.now()
      if (signal.aborted) return
      if (rows.length === 0) setText(text, 'The episodes aren’t planned yet.')
      else draw(rows)
      key = now
    } catch (error) {
      if (!signal.aborted) setText(text, /** @type {Error} */ (error).message)
    } finally { busy = false }
    if (isGoingOn) later()
  }
  const later = () => {
    clearTimeout(timer)
    timer = setTimeout(() => { if (!signal.aborted && element.isConnected) void load() }, AGAIN)
  }
  return {
    element,
    /**
     * @param {Run} run
     * @param {RunBenchmark} b
     */
    show(run, b) {
      latest = [run, b]
      return load()
    },
  }
}

/** @param {[Run, RunBenchmark]} latest */
function isOpenOf([, b]) {
  return b.completed_samples < b.planned_samples
}

/** Pages whose episodes are all over, by their cursor. */
class PageCache {
  /** @type {Map<string, import('../../core/source.js').Details['items']>} */
  #pages = new Map()
  #of = ''

  /**
   * Drops the pages unless they are those of this plan.
   *
   * @param {string} plan
   */
  keepOf(plan) {
    if (plan !== this.#of) this.#pages.clear()
    this.#of = plan
  }

  /** @param {string} cursor */
  get(cursor) { return this.#pages.get(cursor) }

  /**
   * @param {string} cursor
   * @param {import('../../core/source.js').Details['items']} page
   */
  add(cursor, page) {
    if (page.items.every(({ outcome }) => outcome)) this.#pages.set(cursor, page)
  }
}

/**
 * Loads all episodes of a run by task.
 *
 * @param {import('../../core/source.js').RunSource} source
 * @param {Run} run
 * @param {RunBenchmark} b
 * @param {PageCache} pages
 * @param {AbortSignal} signal
 * @returns {Promise<EpisodeRow[]>}
 */
async function rowsOf(source, run, b, pages, signal) {
  /** @type {Map<string, EpisodeRow>} */
  const rows = new Map()
  const add = (/** @type {{item_id: string, source_id: string | null, sample: number, outcome: string | null, score: number | null, running?: boolean}} */ sample) => {
    const id = String(sample.item_id)
    let row = rows.get(id)
    if (!row) {
      row = { key: id, name: sample.source_id ?? `#${id}`, href: (at) => source.itemPath(b.benchmark_name, id, at), episodes: [] }
      rows.set(id, row)
    }
    row.episodes.push({ sample: sample.sample, outcome: sample.outcome, score: sample.score, running: sample.running })
  }
  const index = !source.live || hasIndexOf(run, b) ? await source.index(b.benchmark_name, signal) : null
  if (index) index.rows.forEach(add)
  else {
    for (let cursor = '', isFirst = true; isFirst || cursor; isFirst = false) {
      let page = pages.get(cursor)
      if (!page) {
        page = (await source.items({ benchmark: b.benchmark_name, limit: PAGE, cursor, texts: false }, signal)).items
        pages.add(cursor, page)
      }
      page.items.forEach((item) => add({ ...item, item_id: String(item.item_id), running: isOpen(run) && hasBegun(item) }))
      cursor = page.next_cursor ?? ''
    }
  }
  const all = [...rows.values()].toSorted((x, y) => x.name.localeCompare(y.name))
  for (const row of all) row.episodes.sort((x, y) => x.sample - y.sample)
  return all
}

/**
 * Returns true if an episode that isn't over has a sandbox.
 *
 * @param {{outcome: string | null, item_metadata: unknown}} item
 */
function hasBegun({ outcome, item_metadata: metadata }) {
  return outcome === null && /** @type {{episode_started?: boolean} | null} */ (metadata)?.episode_started === true
}
