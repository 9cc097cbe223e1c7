/**
 * The table of samples. With an index, all rows are in memory: filters, text search and sorting need no request. Without one
 * (a run that is open or was made by an older server), pages are loaded as they come into sight.
 */

import { h, setText } from '../../core/dom.js'
import { duration, integer, none, plural } from '../../core/format.js'
import { outcomeMark } from '../../core/outcomes.js'
import { sampleScore } from '../../core/run-facts.js'
import { hasIndexOf } from '../../core/source.js'
import { windowedTable } from '../../components/table.js'
import { filterFrom, filterQuery, keyOf, listOf, rowOf } from './item-list.js'
import { itemFilters } from './item-filters.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../../core/source.js').IndexRow} IndexRow */

/** Samples of a page, if there is no index. */
const PAGE = 50

/**
 * @param {{source: import('../../core/source.js').RunSource, query: typeof import('../../core/router.js').query, signal: AbortSignal, announce: (text: string) => void, name: string}} options
 */
export function itemsPanel({ source, query, signal, announce, name }) {
  /** @type {IndexRow[] | null} */
  let index = null
  /** @type {(IndexRow | undefined)[]} */
  let pages = []
  let state = ''
  let ended = 0
  let seen = -1
  let samples = 1
  /** Filter as a query, for the links of all rows. */
  let filter = filterQuery(filterFrom(query))
  const count = h('p', { class: 'dim', role: 'status' })
  const more = h('button', { type: 'button', class: 'button small', hidden: true })
  const table = windowedTable({
    label: `Samples of ${name}`, nothing: 'No sample matches these filters.', key: keyOf, columns: columns(() => samples),
    href: (row) => {
      const path = source.itemPath(name, row.item_id, row.sample)
      return filter ? `${path}${path.includes('?') ? '&' : '?'}${filter}` : path
    },
    sort: (key, descending) => { query.set('sort', `${descending ? '-' : ''}${key}`); show() },
    need: (first, last) => void loadPages(first, last),
  })
  const filters = itemFilters({ query, changed: () => { index ? show(true) : startPages() } })

  /** Shows the rows of the index. */
  const show = (/** @type {boolean} */ byReader = false) => {
    const wanted = filterFrom(query)
    filter = filterQuery(wanted)
    table.setSort(wanted.sort.replace('-', ''), wanted.sort.startsWith('-'))
    if (!index) return
    const rows = listOf(index, wanted)
    table.setRows(rows)
    const text = rows.length === index.length ? plural(rows.length, 'sample') : `${integer(rows.length)} of ${plural(index.length, 'sample')}`
    setText(count, text)
    if (byReader) announce(text)
  }

  let generation = 0
  let busy = false
  /** Empties the pages and loads the first one. */
  const startPages = async () => {
    generation += 1
    pages = []
    filter = filterQuery(filterFrom(query))
    seen = ended
    more.hidden = true
    await loadPages(0, 1, true)
  }
  /**
   * @param {number} first
   * @param {number} last
   * @param {boolean} [isStart]
   */
  const loadPages = async (first, last, isStart = false) => {
    if (index || (busy && !isStart)) return
    let at = first
    while (at < last && pages[at] !== undefined) at += 1
    if (at >= last && !isStart) return
    busy = true
    const mine = generation
    const { outcome, group, q } = filterFrom(query)
    const offset = Math.floor(at / PAGE) * PAGE
    try {
      const { items } = await source.items({ benchmark: name, offset, limit: PAGE, outcome, group, item: q.trim() }, signal)
      if (mine !== generation) return
      if (pages.length !== items.total) pages.length = items.total
      items.items.forEach((item, i) => { pages[offset + i] = rowOf(item) })
      table.setRows([...pages], items.total)
      setText(count, plural(items.total, 'sample'))
    } catch (error) {
      if (!signal.aborted && mine === generation) setText(count, /** @type {Error} */ (error).message)
    } finally { if (mine === generation) busy = false }
  }
  more.addEventListener('click', () => void startPages())

  /**
   * Loads the page in sight again, if its rows keep their places: without a filter, they are in the order of the plan.
   *
   * @returns {Promise<import('../../core/source.js').Details | null>} the answer, which has the sums of all samples too; null if nothing was loaded
   */
  const reload = async () => {
    if (index || busy || isFiltered(query) || pages.length === 0 || table.offsetParent === null) return null
    const mine = generation
    const offset = Math.floor(table.firstVisible / PAGE) * PAGE
    const details = await source.items({ benchmark: name, offset, limit: PAGE }, signal)
    if (mine === generation && !index) {
      details.items.items.forEach((item, i) => {
        const row = rowOf(item)
        if (JSON.stringify(row) !== JSON.stringify(pages[offset + i])) pages[offset + i] = row
      })
      table.setRows([...pages], details.items.total)
      seen = ended
      more.hidden = true
    }
    return details
  }

  return {
    reload,
    element: h('div', { class: 'items' }, h('div', { class: 'items-bar' }, filters.element, h('div', { class: 'actions' }, more, count)),
      h('p', { class: 'hint keys' }, h('kbd', null, 'j'), ' ', h('kbd', null, 'k'), ' move, ', h('kbd', null, 'Enter'), ' opens'), table),
    /**
     * @param {Run} run
     * @param {RunBenchmark} b
     */
    async show(run, b) {
      samples = b.samples_per_item ?? 1
      const hasIndex = !source.live || hasIndexOf(run, b)
      const now = `${hasIndex} ${run.generation_number} ${b.planned_samples > 0}`
      ended = b.completed_samples
      if (now === state) {
        more.hidden = index !== null || ended <= seen || !isFiltered(query)
        setText(more, `Show ${plural(ended - seen, 'more ended sample')}`)
        return
      }
      state = now
      if (hasIndex) {
        setText(count, 'Loading…')
        try {
          const loaded = await source.index(name, signal)
          if (signal.aborted || state !== now) return
          if (loaded) {
            index = loaded.rows
            table.isSortable = true
            more.hidden = true
            filters.setChoices(index, loaded.hidden)
            show()
            return
          }
        } catch (error) {
          if (signal.aborted) return
          console.warn(error)
        }
      }
      index = null
      filters.setChoices(null, false, Object.keys(b.metrics?.groups ?? {}))
      table.isSortable = false
      table.setSort('', false)
      if (b.planned_samples > 0) await startPages()
      else { table.setRows([]); setText(count, 'Not planned yet') }
    },
  }
}

/** @param {{get: (name: string) => string | null}} query */
function isFiltered(query) {
  const { outcome, group, q } = filterFrom(query)
  return Boolean(outcome || group || q)
}

/**
 * @param {() => number} samples samples per item
 * @returns {import('../../components/table.js').Column<IndexRow>[]}
 */
function columns(samples) {
  return [
    { key: 'item', label: 'Item', width: 'minmax(6rem, 1.2fr)', sortable: true, title: 'The dataset\'s own id, or the index of its row', cell: (row) => `${row.source_id ?? `#${row.item_id}`}${samples() > 1 ? ` · ${row.sample + 1}` : ''}` },
    { key: 'outcome', label: 'Outcome', width: 'minmax(10.5rem, 1fr)', sortable: true, cell: (row) => outcomeMark(row.outcome) },
    { key: 'group', label: 'Group', width: 'minmax(8.5rem, 1fr)', sortable: true, cell: (row) => row.group ?? none },
    { key: 'answer', label: 'Extracted answer', width: 'minmax(9.5rem, 1.6fr)', sortable: true, cell: (row) => row.extracted ?? none },
    { key: 'score', label: 'Score', width: '5rem', number: true, sortable: true, cell: (row) => sampleScore(row.score) },
    { key: 'time', label: 'Time', width: '6rem', number: true, sortable: true, cell: (row) => (row.latency_ms === null ? none : duration(row.latency_ms / 1000)) },
    { key: 'input', label: 'Tokens in', width: '6.5rem', number: true, sortable: true, title: 'Tokens of the prompt', cell: (row) => integer(row.input_tokens) },
    { key: 'output', label: 'Tokens out', width: '7rem', number: true, sortable: true, title: 'Tokens of the answer', cell: (row) => integer(row.output_tokens) },
    { key: 'attempts', label: 'Attempts', width: '6.5rem', number: true, sortable: true, cell: (row) => integer(row.attempts) },
  ]
}
