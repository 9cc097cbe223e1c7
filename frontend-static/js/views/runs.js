/** Runs: filters in the address, rows that update in place, selection for a comparison. */

import { api } from '../core/api.js'
import { h, replace, setText, useStyles } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { poll } from '../core/connection.js'
import { isOpen } from '../core/run-facts.js'
import { session, signInAddress } from '../core/session.js'
import { empty, failure, loading } from '../core/states.js'
import { openKeyDialog } from '../frame.js'
import { filterForm, FILTERS } from './runs/filters.js'
import { runsTable } from './runs/table.js'

/** Runs on a page. */
const PAGE = 50

/** @param {import('../app.js').Context} context */
export async function mount({ root, query, signal, title, announce, runs: known }) {
  title('Runs')
  // Addresses of earlier versions of the page.
  if (query.get('owner') === 'me') query.set({ owner: null, mine: 'true' })
  await useStyles('views/runs.css')
  const head = h('div', { class: 'view-head' }, h('h1', null, 'Runs'), h('a', { class: 'button primary', href: '/new' }, 'New run'))
  const list = h('div', { class: 'runs' }, loading('Loading runs'))
  const news = h('button', { type: 'button', class: 'button', hidden: true })
  const compare = h('a', { class: 'button' })
  const pager = h('nav', { class: 'pager', 'aria-label': 'Pages' })
  /** @type {AbortController | null} */
  let current = null

  const table = runsTable({
    selected: (query.get('select') ?? '').split(',').filter(Boolean),
    onSelect: (ids) => { query.set('select', ids.join(',')); showCompare(ids) },
    changed: () => load(), signal,
  })
  const showCompare = (/** @type {string[]} */ ids) => {
    setText(compare, ids.length < 2 ? 'Select runs to compare' : `Compare ${plural(ids.length, 'run')}`)
    if (ids.length < 2) { compare.removeAttribute('href'); compare.setAttribute('aria-disabled', 'true') } else {
      compare.href = `/compare?runs=${ids.join(',')}`
      compare.removeAttribute('aria-disabled')
    }
  }
  const filters = filterForm({ query, signal, changed: () => { query.set('offset', null); load() } })

  const fail = (/** @type {Error} */ error) => { if (!signal.aborted) replace(list, failure(error, load)) }
  /** Loads the page of the present filters, and then keeps it up to date. */
  const load = () => {
    current?.abort()
    const controller = current = new AbortController()
    signal.addEventListener('abort', () => controller.abort(), { signal: controller.signal })
    const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]))
    const offset = Number(query.get('offset') ?? 0)
    const isFiltered = Object.values(filter).some(Boolean)
    let isFirst = true
    poll(
      /** @returns {Promise<Api.RunsView>} */
      async (signal) => {
        /** @type {Api.RunsView} */
        const page = known ?? await api.get('/api/runs', { query: { ...filter, limit: PAGE, offset: offset || null }, signal })
        known = null
        return page
      },
      (page) => {
        if (isFirst) {
          isFirst = false
          table.reset(page.runs)
          void showList(page, isFiltered || offset > 0).catch(fail)
          if (isFiltered) announce(plural(page.total, 'run'))
        } else {
          const unseen = table.update(page.runs)
          news.hidden = unseen === 0 || offset > 0
          setText(news, `Show ${plural(unseen, 'new run')}`)
          if (!table.element.isConnected && page.runs.length > 0) { table.reset(page.runs); news.hidden = true; void showList(page, isFiltered).catch(fail) }
        }
        showPager(page, offset)
      },
      {
        signal: controller.signal, interval: (page) => (page.runs.some(isOpen) ? 10_000 : 30_000), max: 120_000,
        onError: (error) => { if (isFirst) fail(error) },
      })
  }
  /**
   * @param {Api.RunsView} page
   * @param {boolean} isFiltered
   */
  const showList = async (page, isFiltered) => {
    const isEmpty = page.total === 0 && !isFiltered
    filters.hidden = isEmpty
    compare.hidden = isEmpty
    if (page.runs.length > 0) { replace(list, table.element); return }
    if (isFiltered) {
      const needsKey = query.get('mine') === 'true' && !api.key && !api.adminSecret && !session.isSignedIn
      replace(list, empty('No such runs', needsKey ? 'No run matches these filters. Without your key or a sign-in, a server on another machine doesn’t know which runs are yours.' : 'No run matches these filters.',
        needsKey && session.isOffered && [h('a', { class: 'button', href: signInAddress() }, 'Sign in with Chutes'), ' '],
        needsKey && h('button', { type: 'button', class: 'button', on: { click: openKeyDialog } }, 'Enter key'), ' ',
        h('button', { type: 'button', class: 'button', on: { click: () => { filters.clear() } } }, 'Remove all filters')))
      return
    }
    current?.abort()
    const { showFirstVisit } = await import('./new-run/first-visit.js')
    if (!signal.aborted) await showFirstVisit(root, { signal })
  }
  /**
   * @param {Api.RunsView} page
   * @param {number} offset
   */
  const showPager = (page, offset) => {
    const link = (/** @type {string} */ text, /** @type {number} */ to, /** @type {string} */ rel) => {
      const search = new URLSearchParams(location.search)
      if (to > 0) search.set('offset', String(to)); else search.delete('offset')
      return h('a', { class: 'button', rel, href: `${location.pathname}?${search}` }, text)
    }
    const text = `${integer(offset + 1)}–${integer(offset + page.runs.length)} of ${plural(page.total, 'run')}`
    const key = `${text} ${location.search}`
    pager.hidden = page.runs.length === 0
    if (pager.dataset.key === key) return
    pager.dataset.key = key
    replace(pager, h('span', { class: 'dim' }, text, page.unsearched > 0 && ` among the newest; ${plural(page.unsearched, 'older run')} not searched`),
      h('span', { class: 'actions' },
        offset > 0 && link('‹ Newer', Math.max(0, offset - PAGE), 'prev'), page.next_offset !== null && page.next_offset !== undefined && link('Older ›', page.next_offset, 'next')))
  }

  api.addEventListener('key', load, { signal })
  news.addEventListener('click', () => { news.hidden = true; load() })
  showCompare((query.get('select') ?? '').split(',').filter(Boolean))
  replace(root, head, h('div', { class: 'runs-bar' }, filters, h('div', { class: 'actions', role: 'status' }, news, compare)), list, pager)
  load()
}
