/** An uploaded task: pass rate, order of episodes, and the episodes of each of its runs. */

import { api } from '../core/api.js'
import { poll } from '../core/connection.js'
import { h, part, replace, useStyles } from '../core/dom.js'
import { bytes, dateTime, integer, none, plural, shortId } from '../core/format.js'
import { messageParts } from '../core/messages.js'
import { outcomesInWords, statusBadge, statusOf } from '../core/outcomes.js'
import { path, router } from '../core/router.js'
import { CUSTOM, needsModel, withAgent } from '../core/agents.js'
import { agentOf, modelOf } from '../core/run-facts.js'
import { apiSource } from '../core/source.js'
import { empty, toast, withModule } from '../core/states.js'
import { episodesLegend, episodesPanel } from './run/episodes.js'
import { openRemoveTask } from './tasks/actions.js'
import { errorList, errorsOfRuns, isListed } from './tasks/errors.js'
import { passRate, taskBadge, utc } from './tasks/facts.js'
import { episodeOrderForm, orderEpisodes } from './tasks/order-form.js'

/** Runs whose episodes are shown; older ones are in the list of runs. */
const RUNS = 20

/** @typedef {{task: Api.Task, runs: Api.RunView[], total: number}} Loaded */

/** @param {import('../app.js').Context} context */
export async function mount({ root, params, signal, title }) {
  const base = `/api/tasks/${encodeURIComponent(params.task)}`
  const tag = `task-${params.task}`
  /** @returns {Promise<Loaded>} */
  const load = async (within = signal) => {
    const [task, page] = await Promise.all([
      /** @type {Promise<Api.Task>} */ (api.get(base, { signal: within })),
      /** @type {Promise<Api.RunsView>} */ (api.get('/api/runs', { query: { task: params.task, limit: RUNS }, signal: within })),
    ])
    return { task, runs: page.runs, total: page.total }
  }
  const [first, agents] = await Promise.all([load(), /** @type {Promise<Api.Agent[]>} */ (api.get('/api/agents', { signal })), useStyles('views/tasks.css', 'views/new-run.css')])
  if (signal.aborted) return
  const name = first.task.name || `Task ${first.task.id}`
  title(`${name} – task`)

  const head = part(h('div', { class: 'view-head' }), (/** @type {Loaded} */ { task }) => task.results.status, ({ task }) => [
    h('div', { class: 'titles' }, h('nav', { class: 'crumbs', 'aria-label': 'Place' }, h('a', { href: '/tasks' }, 'Tasks')),
      h('h1', { tabindex: '-1' }, name, ' ', taskBadge(task.results.status)),
      h('p', { class: 'dim task-id' }, h('code', null, task.task), ` · ${task.original_filename}, ${bytes(task.archive_bytes)} · uploaded ${dateTime(utc(task.created_at))}`)),
    h('div', { class: 'actions' }, archiveButton(task, signal),
      h('button', { type: 'button', class: 'button', on: { click: () => openRemoveTask(task, () => router.go('/tasks')) } }, 'Delete…'))])
  const score = part(h('section', { class: 'task-score', 'aria-label': 'Pass rate' }), (/** @type {Loaded} */ { task }) => task.results, ({ task }) => scoreOf(task.results))
  const errors = part(h('div', null), (/** @type {Loaded} */ { runs }) => errorsOfRuns(runs), ({ runs }) => errorList(errorsOfRuns(runs)))
  const legend = episodesLegend()
  const list = h('div', { class: 'task-runs' })
  const more = part(h('p', { class: 'dim' }), (/** @type {Loaded} */ { runs, total }) => [runs.length, total], ({ runs, total }) =>
    (total > runs.length ? [`The newest ${runs.length} of ${plural(total, 'run')}. `, h('a', { href: `/runs?task=${first.task.id}` }, 'All runs of this task')] : null))
  /** @type {Map<string, ReturnType<typeof runSection>>} */
  const shown = new Map()
  const show = (/** @type {Loaded} */ loaded) => {
    head.show(loaded)
    score.show(loaded)
    score.element.hidden = loaded.runs.length === 0
    more.show(loaded)
    errors.show(loaded)
    errors.element.hidden = loaded.runs.length === 0
    if (loaded.runs.length === 0) { replace(list, empty('', 'No episodes yet. Order some: the agent oracle runs the task’s own solution, nop does nothing. A good task passes with the one and fails with the other.')); return }
    if (shown.size === 0) replace(list)
    const listed = errorsOfRuns(loaded.runs)
    loaded.runs.forEach((run, i) => {
      let entry = shown.get(run.id)
      if (!entry) shown.set(run.id, entry = runSection(run, first.task, legend, signal))
      if (list.children[i] !== entry.element) list.insertBefore(entry.element, list.children[i] ?? null)
      entry.show(run, isListed(listed, run))
    })
  }
  /** @type {{now: () => void}} */
  let updates = { now: () => {} }
  const form = episodeOrderForm({
    agents, agent: first.task.agent, model: ownModel(first.task), count: first.task.num_runs, signal,
    order: async (order, key) => {
      const { task } = await load()
      // The task's own order, once: clients of the tasks' routes see its episodes, too. It always asks the task's own model.
      const isOwn = task.status === 'pending' && order.agent === task.agent && order.agent !== CUSTOM && !order.benchmark_options && order.samples === task.num_runs && (order.model_id ?? '') === ownModel(task)
      if (isOwn) await api.post(`${base}/execute-async`, undefined, { headers: { authorization: key ? `Bearer ${key}` : null } })
      else await orderEpisodes([String(task.id)], order, key, [tag])
      toast(`${plural(order.samples, 'episode')} ordered.`)
      updates.now()
    },
  })
  replace(root, head.element, score.element,
    h('section', { 'aria-labelledby': 'order' }, h('h2', { id: 'order' }, 'Order episodes'), form.element),
    h('section', { 'aria-labelledby': 'episodes' }, h('h2', { id: 'episodes' }, 'Episodes'), errors.element, legend.element, list, more.element))
  show(first)
  updates = poll((signal) => load(signal), show, { signal, interval: ({ task }) => (task.results.open_runs > 0 ? 5000 : 30_000), max: 60_000 })
  api.addEventListener('key', () => updates.now(), { signal })
}

/**
 * Returns the model that a task's own order asks, as PROVIDER/NAME; '' for an agent that asks none.
 *
 * @param {Api.Task} task
 */
function ownModel({ agent, model }) {
  return needsModel(agent) && model ? `openrouter/${model.replace(/^(openrouter\/)+/, '')}` : ''
}

/**
 * Makes the button that downloads the archive. A link would send no key.
 *
 * @param {Api.Task} task
 * @param {AbortSignal} signal
 */
function archiveButton(task, signal) {
  const load = () => withModule(() => import('./run/download.js'), ({ download }) => download(`/api/tasks/${task.id}/archive`, {}, `task-${task.id}.zip`, signal))
  return h('button', { type: 'button', class: 'button', on: { click: load } }, 'Download the archive')
}

/** @param {Api.TaskResults} results of all orders */
function scoreOf({ episodes, passed, failed, partial, errors }) {
  const graded = passed + failed
  /** @type {[string, import('../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Passed', integer(passed), `of ${integer(graded)} graded`], ['Partial rewards', integer(partial), 'they don’t pass'],
    ['Not graded', integer(errors), 'in no rate'], ['Not ended', integer(Math.max(0, episodes - graded - errors))],
  ]
  return [
    h('div', null, h('p', { class: 'figure' }, passRate(passed, graded)), h('p', { class: 'dim' }, graded > 0 ? 'pass rate with 95% interval' : `pass rate: ${none}`)),
    h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))),
  ]
}

/** @param {string} message */
function failureOf(message) {
  const [text, response] = messageParts(message, outcomesInWords)
  return [h('p', { class: 'bad' }, text), response]
}

/**
 * Makes the section of one run.
 *
 * @param {Api.RunView} first
 * @param {Api.Task} task
 * @param {import('./run/episodes.js').Legend} legend of all runs
 * @param {AbortSignal} signal
 */
function runSection(first, task, legend, signal) {
  const source = apiSource(first.id)
  const name = task.name || `Task ${task.id}`
  const panel = episodesPanel({ source, signal, label: `Episodes of ${name}, run ${shortId(first.id)}`, legend, task: task.task })
  const others = (/** @type {Api.RunView} */ run) => Math.max(0, (run.benchmarks[0]?.sampled_items ?? 0) - 1)
  const head = part(h('div', { class: 'section-head' }), (/** @type {{run: Api.RunView, hasError: boolean}} */ { run, hasError }) => [statusOf(run), agentOf(run), others(run), hasError], ({ run, hasError }) => [
    h('h3', null, h('a', { href: path('runs', run.id) }, withAgent(modelOf(run), agentOf(run)), ', ', dateTime(run.created_at)), others(run) > 0 && h('span', { class: 'dim' }, ` with ${plural(others(run), 'other task')}`), ' ', statusBadge(statusOf(run))),
    hasError && run.error_message && failureOf(run.error_message)])
  return {
    element: h('section', { class: 'task-run' }, head.element, panel.element),
    /**
     * @param {Api.RunView} run
     * @param {boolean} isErrorListed true if the list of errors has that of the run
     */
    show(run, isErrorListed) {
      head.show({ run, hasError: !isErrorListed })
      source.latest = run
      const b = run.benchmarks[0]
      if (b) void panel.show(run, b)
    },
  }
}
