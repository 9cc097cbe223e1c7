/** The table of runs: one row a run; updates change cells in place. */

import { h, replace, withCode } from '../../core/dom.js'
import { ago, dateTime, duration, integer, none, percent, shortId, tokens, usd } from '../../core/format.js'
import { splitMessage } from '../../core/messages.js'
import { outcomesInWords, statusBadge, statusOf } from '../../core/outcomes.js'
import { path } from '../../core/router.js'
import { benchmarkOfRun, canOf, cautionList, elapsedSeconds, isOpen, modelOf, progressOf, runCautionsOf, scoreOf, subsetText } from '../../core/run-facts.js'
import { visibilityMark } from '../../core/visibility.js'
import { intervalFigure, progressBar } from '../../components/figures.js'
import { menu } from '../../components/menu.js'
import { actionsOf, exportItems } from '../run/actions.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** Benchmarks that a row names; further ones are counted. */
const BENCHMARKS_MAX = 6
/** Tasks of a run of terminal tasks that are named. */
const TASKS_MAX = 3
/** Characters of a seed that a row shows: schedules take their id. */
const SEED_MAX = 16
/** Statuses of benchmarks without a score that a row names. */
const FAILED = new Set(['failed', 'skipped', 'needs_setup'])

/**
 * @param {{selected: string[], onSelect: (ids: string[]) => void, changed: () => void, signal: AbortSignal}} options
 */
export function runsTable({ selected, onSelect, changed, signal }) {
  const body = h('tbody', null)
  const element = h('div', { class: 'scroll-x' }, h('table', { class: 'figures runs-table' },
    h('caption', { class: 'visually-hidden' }, 'Runs, newest first'),
    h('thead', null, h('tr', null,
      h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Select')), h('th', { scope: 'col' }, 'Model'), h('th', { scope: 'col' }, 'Status'),
      h('th', { scope: 'col' }, 'Score'), h('th', { scope: 'col', class: 'number' }, 'Items'), h('th', { scope: 'col', class: 'number' }, 'Tokens'),
      h('th', { scope: 'col', class: 'number' }, 'Cost'), h('th', { scope: 'col', class: 'number' }, 'Time'), h('th', { scope: 'col', class: 'number' }, 'Ordered'),
      h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Actions')))),
    body))
  const chosen = new Set(selected)
  /** @type {Map<string, {row: HTMLTableRowElement, update: (run: Run) => void}>} */
  const rows = new Map()
  const add = (/** @type {Run} */ run) => {
    const entry = newRow(run, chosen, () => onSelect([...chosen]), changed, signal)
    rows.set(run.id, entry)
    body.append(entry.row)
  }
  const ticker = setInterval(() => { for (const time of body.querySelectorAll('time')) time.textContent = ago(time.dateTime) }, 30_000)
  signal.addEventListener('abort', () => clearInterval(ticker))
  return {
    element,
    /** @param {Run[]} runs shows these rows and no others */
    reset(runs) {
      rows.clear()
      replace(body)
      runs.forEach(add)
    },
    /**
     * Updates the rows that are shown. Runs that aren't shown wait, so that no row moves.
     *
     * @param {Run[]} runs
     * @returns {number} number of runs that aren't shown
     */
    update(runs) {
      const ids = new Set(runs.map(({ id }) => id))
      for (const [id, { row }] of rows) row.classList.toggle('gone', !ids.has(id))
      for (const run of runs) rows.get(run.id)?.update(run)
      return runs.filter(({ id }) => !rows.has(id)).length
    },
  }
}

/**
 * @param {Run} first
 * @param {Set<string>} chosen
 * @param {() => void} onSelect
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
function newRow(first, chosen, onSelect, changed, signal) {
  const check = h('input', { type: 'checkbox', '.checked': chosen.has(first.id), 'aria-label': `Select ${modelOf(first)} ${shortId(first.id)} for a comparison` })
  check.addEventListener('change', () => { check.checked ? chosen.add(first.id) : chosen.delete(first.id); onSelect() })
  const bar = progressBar()
  const actions = menu('⋯', [])
  /** Cells by class, each with a text that tells if it changed. @type {[string, (run: Run) => string, (run: Run) => import('../../core/dom.js').Child][]} */
  const cells = [
    ['model', labelKey, modelCell],
    ['status', (run) => `${statusOf(run)} ${run.queue_position}`, statusCell],
    ['score', (run) => JSON.stringify([run.overall_score, isOpen(run), run.error_message, isOpen(run) && progressOf(run), run.eta_seconds]), (run) => scoreCell(run, bar)],
    ['number items', (run) => `${run.progress.completed}/${run.progress.total}`, itemsCell],
    ['number tokens', (run) => String(run.spent?.tokens), (run) => tokens(run.spent?.tokens || null)],
    ['number cost', (run) => String(run.spent?.usd), (run) => usd(run.spent?.usd ?? run.cost?.total_usd)],
    ['number took', (run) => String(run.completed_at ?? progressOf(run).completed), (run) => duration(elapsedSeconds(run))],
    ['number when', (run) => run.created_at, (run) => h('time', { datetime: run.created_at, title: dateTime(run.created_at) }, ago(run.created_at))],
    ['menu', (run) => `${run.status} ${JSON.stringify(canOf(run))}`, (run) => { fillMenu(actions, run, changed, signal); return actions }],
  ]
  const tds = cells.map(([name]) => (name === 'model' ? h('th', { scope: 'row', class: name }) : h('td', { class: name })))
  const keys = cells.map(() => '')
  const row = h('tr', null, h('td', { class: 'select' }, check), tds)
  const update = (/** @type {Run} */ run) => {
    cells.forEach(([, key, make], i) => {
      const now = key(run)
      if (now === keys[i]) return
      keys[i] = now
      const content = make(run)
      if (!(content instanceof Node && content.parentNode === tds[i] && tds[i].childNodes.length === 1)) replace(tds[i], content)
    })
  }
  update(first)
  return { row, update }
}

/** @param {Run} run */
function labelKey(run) {
  return JSON.stringify([run.visibility, run.name, run.tags, run.benchmarks.map((b) => [benchmarkOfRun(run, b.benchmark_name), tasksOf(run, b), b.status, b.score]), runCautionsOf(run)])
}

/** @param {Run} run */
function modelCell(run) {
  return [
    h('a', { href: path('runs', run.id), class: 'name' }, modelOf(run)),
    run.name && h('span', { class: 'run-name' }, run.name),
    benchmarkStrip(run),
    h('span', { class: 'dim sub', title: run.subset_seed ? `seed “${run.subset_seed}”` : null }, visibilityMark(run), ' ', `${subsetText(run, SEED_MAX)} · ${shortId(run.id)}`), ' ',
    (run.tags ?? []).length > 0 && h('span', { class: 'tags' }, run.tags.map((/** @type {string} */ tag) => h('a', { class: 'tag', href: `/runs?tag=${encodeURIComponent(tag)}` }, tag))),
  ]
}

/**
 * Makes the line of benchmarks, each with its score or, if it has none, its status. The score of a single one has a column.
 *
 * @param {Run} run
 */
function benchmarkStrip(run) {
  const rest = run.benchmarks.slice(BENCHMARKS_MAX)
  return h('span', { class: 'strip' },
    run.benchmarks.slice(0, BENCHMARKS_MAX).map((b) => h('span', { class: tasksOf(run, b) ? null : 'nowrap' }, benchmarkOfRun(run, b.benchmark_name), tasksOf(run, b), ' ',
      b.score !== null ? run.benchmarks.length > 1 && h('b', null, percent(b.score)) : FAILED.has(b.status) && h('b', { class: b.status === 'failed' ? 'bad' : 'idle' }, b.status === 'needs_setup' ? 'needs setup' : b.status))),
    rest.length > 0 && h('span', { class: 'dim', title: rest.map((b) => benchmarkOfRun(run, b.benchmark_name)).join(', ') }, `+${rest.length} more`))
}

/**
 * Names the first tasks of a run of terminal tasks and counts the others: `: fix-csv, hello-world and 3 more`; '' for other runs.
 *
 * @param {Run} run
 * @param {import('../../core/run-facts.js').RunBenchmark} b
 */
function tasksOf(run, b) {
  const tasks = b.benchmark_name === 'terminal_tasks' ? (run.tasks ?? []).slice(0, TASKS_MAX) : []
  const others = b.sampled_items - tasks.length
  return tasks.length === 0 ? '' : `: ${tasks.map((task) => task.replace(/@[0-9a-f]{12}$/, '')).join(', ')}${others > 0 ? ` and ${integer(others)} more` : ''}`
}

/** @param {Run} run */
function itemsCell(run) {
  const { completed, total } = run.progress
  return isOpen(run) ? none : completed === total ? integer(total) : `${integer(completed)} of ${integer(total)}`
}

/** @param {Run} run */
function statusCell(run) {
  return [statusBadge(statusOf(run)), run.queue_position !== null && h('span', { class: 'dim sub' }, `position ${run.queue_position}`)]
}

/**
 * @param {Run} run
 * @param {import('../../components/figures.js').BenchProgress} bar
 */
function scoreCell(run, bar) {
  if (isOpen(run)) {
    const left = run.eta_seconds !== null ? `${duration(Math.max(1, Math.round(run.eta_seconds)))} left` : run.start_delay_seconds !== null ? `starts in ${duration(run.start_delay_seconds)}` : ''
    const { completed, total, unit } = progressOf(run)
    bar.show(completed, total, { label: `Progress of ${modelOf(run)}`, note: left, unit: `${unit}s` })
    return bar
  }
  const { score, interval, label, scale } = scoreOf(run)
  if (score === null) return [none, cautionList(runCautionsOf(run), 3), run.error_message && failureLine(run.error_message)]
  return [intervalFigure(score, interval, { scale }), run.benchmarks.length > 1 && h('span', { class: 'dim sub' }, label), cautionList(runCautionsOf(run), 3)]
}

/** @param {string} message */
function failureLine(message) {
  const text = outcomesInWords(splitMessage(message).text)
  return h('span', { class: 'sub bad clip', title: text }, withCode(text))
}

/**
 * @param {import('../../components/menu.js').BenchMenu} element
 * @param {Run} run
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
function fillMenu(element, run, changed, signal) {
  const exports = isOpen(run) ? [] : exportItems(run, signal)
  element.set('⋯', [{ label: 'Open', href: path('runs', run.id) }, ...actionsOf(run, changed), ...(exports.length > 0 ? [null, ...exports] : [])], `Actions on ${modelOf(run)} ${shortId(run.id)}`)
}
