/** Uploaded terminal tasks: upload with live admission, pass rates, and one order for several of them. */

import { address, api } from '../core/api.js'
import { poll } from '../core/connection.js'
import { h, part, replace, setText, useStyles } from '../core/dom.js'
import { ago, bytes, dateTime, integer, plural } from '../core/format.js'
import { path, router } from '../core/router.js'
import { empty, failure } from '../core/states.js'
import { mineFilter, noneOfMine } from '../components/mine-filter.js'
import { openRemoveTask } from './tasks/actions.js'
import { episodesText, statsText, taskBadge, taskRate, utc } from './tasks/facts.js'
import { episodeOrderForm, orderEpisodes } from './tasks/order-form.js'
import { uploadPanel } from './tasks/upload.js'

/** Tasks of a page. */
const PAGE = 50

/** @typedef {{tasks: Api.Task[], stats: Api.TaskStats, more: boolean, isAll: boolean}} Loaded */

/** @param {import('../app.js').Context} context */
export async function mount({ root, query, signal, title }) {
  title('Tasks')
  let skip = Math.max(0, Number(query.get('skip')) || 0)
  const mine = mineFilter(query, () => { skip = 0; updates.now() })
  /** @returns {Promise<Loaded>} */
  const load = async (within = signal) => {
    const [tasks, stats] = await Promise.all([
      /** @type {Promise<Api.Task[]>} */ (api.get('/api/tasks', { query: { mine: mine.value, skip: skip || null, limit: PAGE }, signal: within })),
      /** @type {Promise<Api.TaskStats>} */ (api.get('/api/stats', { signal: within })),
    ])
    return { tasks, stats, isAll: mine.value === null, more: mine.value ? tasks.length === PAGE : skip + tasks.length < stats.tasks.total }
  }
  const [first, agents] = await Promise.all([load(), /** @type {Promise<Api.Agent[]>} */ (api.get('/api/agents', { signal })), useStyles('views/tasks.css', 'views/new-run.css')])
  if (signal.aborted) return

  /** Ids of selected tasks. @type {Set<number>} */
  const chosen = new Set()
  const counts = h('p', { class: 'sub', role: 'status' })
  const schedule = h('a', { class: 'button' }, 'On a schedule')
  const form = episodeOrderForm({
    agents, tasks: () => chosen.size, beside: schedule, signal,
    order: async (order, key) => {
      const ids = [...chosen].map(String)
      const run = await orderEpisodes(ids, order, key, ids.length === 1 ? [`task-${ids[0]}`] : [])
      router.go(path('runs', run.id))
    },
  })
  const hint = h('p', { class: 'dim' }, 'Select tasks to order their episodes as one run.')
  const order = h('div', null, hint, form.element)
  const showOrder = () => {
    hint.hidden = chosen.size > 0
    form.element.hidden = chosen.size === 0
    if (chosen.size > 0) schedule.href = `/schedules/new?tasks=${[...chosen].join(',')}`
    form.show()
  }
  const rows = rowsOf({ chosen, changed: showOrder, removed: () => updates.now() })
  const list = h('div', null)
  const pager = part(h('nav', { class: 'pager', 'aria-label': 'Pages' }), (/** @type {Loaded} */ { tasks, stats, more, isAll }) => [skip, tasks.length, stats.tasks.total, more, isAll], ({ tasks, stats, more, isAll }) => [
    h('span', { class: 'dim' }, `${integer(skip + 1)}–${integer(skip + tasks.length)}${!isAll ? '' : ` of ${plural(stats.tasks.total, 'task')}`}`),
    h('span', { class: 'actions' }, skip > 0 && h('a', { class: 'button', rel: 'prev', href: pageAt(skip - PAGE) }, '‹ Newer'),
      more && h('a', { class: 'button', rel: 'next', href: pageAt(skip + PAGE) }, 'Older ›'))])
  const pageAt = (/** @type {number} */ to) => address('/tasks', { mine: mine.value, skip: Math.max(0, to) || null })
  const show = (/** @type {Loaded} */ loaded) => {
    const { tasks, stats, isAll } = loaded
    setText(counts, stats.tasks.total > 0 ? statsText(stats) : 'Tasks that an agent solves in a container, graded by their own tests.')
    order.hidden = tasks.length === 0
    mine.element.hidden = isAll && stats.tasks.total === 0
    pager.element.hidden = tasks.length === 0 || (skip === 0 && !loaded.more)
    rows.show(tasks)
    pager.show(loaded)
    if (tasks.length > 0) { if (!rows.element.isConnected) replace(list, rows.element) } else {
      replace(list, !isAll ? noneOfMine('task') : empty('No tasks yet', 'Upload a task’s folder as a ZIP archive. It is checked at once: a refusal names the file and the line.',
        skip > 0 && h('a', { class: 'button', href: '/tasks' }, 'Newest tasks')))
    }
  }
  /** @type {{now: () => void}} */
  let updates = { now: () => {} }
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Tasks'), counts, mine.element),
    uploadPanel({ signal, agents, added: () => updates.now() }),
    order, list, pager.element)
  showOrder()
  show(first)
  updates = poll((signal) => load(signal), show, {
    signal, interval: ({ stats }) => (stats.results.tasks.running > 0 ? 5000 : 30_000), max: 60_000,
    onError: (error) => { if (!rows.element.isConnected) replace(list, failure(error, () => updates.now())) },
  })
  api.addEventListener('key', () => updates.now(), { signal })
}

/**
 * @param {{chosen: Set<number>, changed: () => void, removed: () => void}} options
 */
function rowsOf({ chosen, changed, removed }) {
  const body = h('tbody', null)
  const all = h('input', { type: 'checkbox', 'aria-label': 'Select all tasks of this page' })
  const element = h('table', { class: 'cards tasks-table' },
    h('caption', { class: 'visually-hidden' }, 'Tasks, newest first'),
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, all),
      ['Task', 'Status', 'Pass rate with 95% interval'].map((name) => h('th', { scope: 'col' }, name)),
      h('th', { scope: 'col', class: 'number' }, 'Episodes'), h('th', { scope: 'col' }, 'Agent'), h('th', { scope: 'col', class: 'number' }, 'Size'),
      h('th', { scope: 'col', class: 'number' }, 'Uploaded'), h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Actions')))), body)
  /** @type {Map<number, {row: HTMLElement, check: HTMLInputElement, show: (task: Api.Task) => void}>} */
  const rows = new Map()
  all.addEventListener('change', () => {
    for (const [id, { check }] of rows) { check.checked = all.checked; all.checked ? chosen.add(id) : chosen.delete(id) }
    changed()
  })
  const newRow = (/** @type {Api.Task} */ task) => {
    const check = h('input', { type: 'checkbox', '.checked': chosen.has(task.id), 'aria-label': `Select ${task.name}` })
    check.addEventListener('change', () => { check.checked ? chosen.add(task.id) : chosen.delete(task.id); changed() })
    const status = part(h('td', { 'data-label': 'Status' }), (/** @type {Api.Task} */ t) => t.results.status, (t) => taskBadge(t.results.status))
    const rate = part(h('td', { 'data-label': 'Pass rate' }), (/** @type {Api.Task} */ t) => t.results, taskRate)
    const count = part(h('td', { class: 'number', 'data-label': 'Episodes' }), episodesText, episodesText)
    const row = h('tr', null, h('td', { class: 'select' }, check),
      h('th', { scope: 'row' }, h('a', { href: path('tasks', task.id) }, task.name || `Task ${task.id}`), h('small', null, h('code', null, task.task))),
      status.element, rate.element, count.element, h('td', { 'data-label': 'Agent' }, task.agent), h('td', { class: 'number', 'data-label': 'Size' }, bytes(task.archive_bytes)),
      h('td', { class: 'number', 'data-label': 'Uploaded', title: dateTime(utc(task.created_at)) }, ago(utc(task.created_at))),
      h('td', { class: 'menu' }, h('button', { type: 'button', class: 'button small', 'aria-label': `Delete ${task.name}`, on: { click: () => openRemoveTask(task, removed) } }, 'Delete')))
    return { row, check, show: (/** @type {Api.Task} */ t) => { status.show(t); rate.show(t); count.show(t) } }
  }
  return {
    element,
    /** @param {Api.Task[]} tasks */
    show(tasks) {
      const ids = new Set(tasks.map(({ id }) => id))
      for (const [id, { row }] of rows) if (!ids.has(id)) { row.remove(); rows.delete(id); if (chosen.delete(id)) changed() }
      tasks.forEach((task, i) => {
        let entry = rows.get(task.id)
        if (!entry) rows.set(task.id, entry = newRow(task))
        entry.show(task)
        if (body.children[i] !== entry.row) body.insertBefore(entry.row, body.children[i] ?? null)
      })
    },
  }
}
