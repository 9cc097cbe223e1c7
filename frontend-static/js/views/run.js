/** A run: score and what to know about it, progress, benchmarks, items, log, actions. */

import { api } from '../core/api.js'
import { h, painted, replace, useStyles } from '../core/dom.js'
import { poll } from '../core/connection.js'
import { isBenchmarkOpen, isOpen, modelOf, progressOf } from '../core/run-facts.js'
import { statusOf } from '../core/outcomes.js'
import { session } from '../core/session.js'
import { apiSource } from '../core/source.js'
import { withModule } from '../core/states.js'
import { benchmarkPanel } from './run/benchmark-panel.js'
import { benchmarksTable } from './run/benchmarks-table.js'
import { headOf } from './run/head.js'
import { noticesOf } from './run/notices.js'
import { scorePart } from './run/score.js'

/** @typedef {import('../core/run-facts.js').Run} Run */

/**
 * Shows a run of the server, or of the context's source.
 *
 * @param {import('../app.js').Context} context
 */
export async function mount(context) {
  const { root, params, query, signal, title, announce } = context
  const source = context.source ?? apiSource(params.run)
  const [run] = await Promise.all([source.run(signal), useStyles('views/run.css')])
  if (signal.aborted) return
  title(`${run.name ?? modelOf(run)} – run`)
  const names = run.benchmarks.map((b) => b.benchmark_name)
  let chosen = names.includes(query.get('benchmark') ?? '') ? /** @type {string} */ (query.get('benchmark')) : names[0]
  // The samples are on their way while the view is built.
  if (source.live && chosen) source.index(chosen, signal).catch(() => {})

  let changed = () => {}
  const parts = [headOf({ source, signal, changed: () => changed() }), noticesOf({ source }), scorePart()]
  const select = (/** @type {string} */ name) => {
    query.set({ benchmark: name, outcome: null, group: null, q: null, sort: null })
    chosen = name
    table.select(name)
    panel.show(run0, name)
    panel.refresh()
    announce(`Benchmark ${name}.`)
  }
  let run0 = run
  const table = benchmarksTable({ select })
  const panel = benchmarkPanel({ source, query, signal, announce, onSummary: (name, summary) => table.setCounts(name, summary?.outcomes) })
  const below = h('div', { class: 'below' })
  /** @type {ReturnType<typeof import('./run/below.js').eventLog> | null} */
  let log = null
  let showBelow = (/** @type {Run} */ _) => {}

  let status = ''
  let ticks = 0
  let quarter = 0
  const show = (/** @type {Run} */ value) => {
    run0 = value
    for (const part of parts) part.show(value)
    table.show(value)
    if (chosen) { table.select(chosen); panel.show(value, chosen) }
    showBelow(value)
    const now = statusOf(value)
    if (status && now !== status) announce(`The run is now ${now}.`)
    else if (isOpen(value) && Math.floor(progressOf(value).percent / 25) > quarter) announce(`${Math.floor(progressOf(value).percent)}% of the ${progressOf(value).unit}s are done.`)
    quarter = Math.floor(progressOf(value).percent / 25)
    status = now
    // Counts of outcomes and events take turns, so that watching a run stays cheap.
    if (isOpen(value)) {
      ticks += 1
      if (ticks % 2 === 0) panel.refresh()
      else if (ticks > 1) log?.refresh()
    } else { panel.refresh(); log?.refresh() }
  }
  replace(root, ...parts.map(({ element }) => element), table.element, panel.element, below)
  show(run)
  void painted().then(() => withModule(() => import('./run/below.js'), ({ eventLog, judgings, printReport }) => {
    if (signal.aborted) return
    log = source.events ? eventLog({ source, signal }) : null
    const judged = source.live ? judgings({ signal }) : null
    const report = h('div', { class: 'print-only' })
    showBelow = (value) => {
      replace(report, printReport(value))
      judged?.show(value)
      log?.setOpen(isOpen(value))
    }
    replace(below, log?.element, judged?.element, report)
    showBelow(run0)
  }))
  const name = (/** @type {Run} */ value) => value.name ?? modelOf(value)
  if (!source.live) return
  /** @type {ReturnType<typeof poll> | null} */
  let polling = null
  // Time of the reader's last action on the run, which makes it young again.
  let actedAt = 0
  const age = (/** @type {Run} */ value) => ageSeconds(value, actedAt)
  const watch = () => {
    polling = poll((signal) => source.run(signal), (value) => { show(value); title(`${isOpen(value) ? `${Math.floor(progressOf(value).percent)}% · ` : ''}${name(value)} – run`) }, {
      signal, interval: (value) => delayOf(value, age(value)), max: (value) => longestOf(value, age(value)), isOver: isSettled,
    })
  }
  const look = () => (polling ? polling.now() : watch())
  changed = () => { actedAt = Date.now(); look() }
  // What the reader may do depends on the key, and what would help on the sign-in.
  api.addEventListener('key', look, { signal })
  session.addEventListener('change', () => parts[0].show(run0), { signal })
  if (!isSettled(run)) setTimeout(() => { if (!signal.aborted && !polling) watch() }, Math.min(1000, delayOf(run, age(run))))
}

/** Time after the end of a run in which its benchmarks are closed, in milliseconds. */
const CLOSING = 60_000

/**
 * True if a run is over and its benchmarks are closed: those of a canceled run are closed a moment later.
 *
 * @param {Run} run
 */
function isSettled(run) {
  const age = run.completed_at ? Date.now() - new Date(run.completed_at).getTime() : 0
  return !isOpen(run) && (age > CLOSING || !run.benchmarks.some(isBenchmarkOpen))
}

/** Seconds in which a run is young: a short one could end between two looks if they became rare. */
const YOUNG_S = 15

/**
 * Longest time between two looks at a run that doesn't change, in milliseconds.
 *
 * @param {Run} run
 * @param {number} age in seconds
 */
function longestOf(run, age) {
  return isOpen(run) && age < YOUNG_S ? 2000 : 60_000
}

/**
 * Returns the seconds since a run was ordered, or since the reader's last action on it.
 *
 * @param {Run} run
 * @param {number} actedAt
 */
function ageSeconds(run, actedAt) {
  return (Date.now() - Math.max(new Date(run.created_at).getTime(), actedAt)) / 1000
}

/** Longest time between two looks at a run whose progress is known, in milliseconds. */
const LONGEST = 20_000

/**
 * Milliseconds until the next look at a run: half of its remaining time, so that short runs look live and long ones cost
 * few requests.
 *
 * @param {Run} run
 * @param {number} age in seconds
 */
function delayOf(run, age) {
  if (!isOpen(run)) return 1500
  if (age < 4) return 1000
  if (run.eta_seconds === null || run.eta_seconds === undefined) return age < YOUNG_S ? 2000 : 12_000
  return Math.min(LONGEST, Math.max(1000, run.eta_seconds * 500))
}
