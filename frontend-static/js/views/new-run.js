/** Orders runs: models, thinking levels, benchmarks, items and settings, with an estimate before they start. */

import { api } from '../core/api.js'
import { toast, withModule } from '../core/states.js'
import { h, replace, setText, useStyles } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { router } from '../core/router.js'
import { hasConversations } from '../core/agents.js'
import { findModels } from './new-run/model-picker.js'
import { keepEstimate } from './new-run/estimate.js'
import { OrderState } from './new-run/state.js'
import { clearProblems, focusInvalid, orderSections, showProblems } from './new-run/order-form.js'
import { estimatePanel } from './new-run/summary.js'
import { orderOfRun, relevant, SHARE_DEFAULT } from './new-run/order.js'
import { providerNote, serverNotices } from './new-run/notices.js'

/** @typedef {typeof import('./new-run/address.js')} Address */

/** @param {import('../app.js').Context} context */
export async function mount({ root, signal, title }) {
  title('New run')
  await useStyles('views/new-run.css')
  await mountOrderForm(root, { signal, heading: 'New run', keepsAddress: true })
}

/**
 * Shows the form in an element.
 *
 * @param {HTMLElement} root
 * @param {{signal: AbortSignal, heading: string, level?: 'h1' | 'h2', keepsAddress: boolean}} options `keepsAddress` keeps the
 *   order in the query of the address
 */
export async function mountOrderForm(root, { signal, heading, level = 'h1', keepsAddress }) {
  const query = keepsAddress ? new URLSearchParams(location.search) : new URLSearchParams()
  const addressing = keepsAddress ? import('./new-run/address.js') : null
  const [{ benchmarks: all }, { models }, asked] = await Promise.all([
    /** @type {Promise<Api.BenchmarksView>} */ (api.get('/api/benchmarks', { query: { texts: false }, signal })), findModels('', signal), orderAsked(query, addressing, signal),
  ])
  const address = await addressing
  // Items of terminal tasks are uploaded; they have an order form of their own.
  const benchmarks = all.filter(({ name }) => name !== 'terminal_tasks')
  const state = new OrderState(withDefaults(asked, benchmarks, models))
  if (query.has('thinking_level') || query.getAll('model').length > 1) {
    state.planner = await import('./new-run/sweep.js')
    state.sweep = state.planner.sweepOf(query)
  }
  const panel = estimatePanel()
  const notices = serverNotices(signal, (isOpen) => { start.disabled = !isOpen })
  const start = h('button', { type: 'submit', class: 'button primary' }, 'Start run')
  const errors = h('div', { class: 'form-errors', role: 'alert' })
  const commands = commandsPanel(state)
  const form = h('form', { class: 'order-form', novalidate: true, 'aria-label': heading },
    h('div', { class: 'order-sections' }, orderSections({ state, benchmarks, signal, isSweep: true })),
    h('div', { class: 'order-side' }, panel.element,
      h('div', { class: 'order-bar' }, errors, panel.line, start), commands.element))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void submit(form, state, start, errors, signal)
  })
  const label = () => { setText(start, labelOf(state)) }
  label()
  state.addEventListener('change', () => {
    label()
    commands.refresh()
    if (address) showAddress(state, address)
  })
  replace(root,
    h('div', { class: 'view-head' }, h(level, null, heading)),
    notices, onlyOracle(models) && providerNote(signal), form)
  keepEstimate(state, benchmarks, panel.show, signal)
}

/**
 * Returns the order that the address asks for: a run to repeat, fields, or both.
 *
 * @param {URLSearchParams} query
 * @param {Promise<Address> | null} addressing
 * @param {AbortSignal} signal
 */
async function orderAsked(query, addressing, signal) {
  const from = query.get('from')
  const base = from ? orderOfRun(await api.get(`/api/runs/${encodeURIComponent(from)}`, { signal })) : {}
  return { ...base, ...(await addressing)?.orderOf(query) }
}

/**
 * Fills in what the reader has not chosen: the first model, the benchmarks that the server suggests, a tenth of the items.
 *
 * @param {import('./new-run/order.js').Order} asked
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {import('./new-run/model-picker.js').Model[]} models
 */
function withDefaults(asked, benchmarks, models) {
  const order = { ...asked }
  order.model_id ??= models[0]?.model
  const enabled = benchmarks.filter(({ is_enabled }) => is_enabled !== false)
  const suggested = enabled.filter(({ default_selected }) => default_selected)
  order.selected_benchmarks ??= (suggested.length > 0 ? suggested : enabled.filter(({ name }) => !hasConversations(name))).map(({ name }) => name)
  if (!order.items && order.subset_count == null) order.subset_pct ??= SHARE_DEFAULT
  return order
}

/** @param {import('./new-run/model-picker.js').Model[]} models */
function onlyOracle(models) {
  return models.every(({ provider }) => provider === 'oracle')
}

/**
 * @param {OrderState} state
 * @param {Address} address
 */
function showAddress(state, { queryOf }) {
  const query = queryOf(relevant(state.order))
  state.planner?.addToQuery(query, state.order, state.sweep)
  const text = query.toString().replaceAll('%2C', ',').replaceAll('%2F', '/')
  history.replaceState(history.state, '', `${location.pathname}${text ? `?${text}` : ''}`)
}

/** @param {OrderState} state */
function commandsPanel(state) {
  const body = h('div', { class: 'commands' })
  const element = h('details', { class: 'order-commands' }, h('summary', null, 'The same as a command'), body)
  const refresh = () => {
    if (element.open) void withModule(() => import('./new-run/order-commands.js'), ({ orderCommands }) => replace(body, orderCommands(state)))
  }
  element.addEventListener('toggle', refresh)
  return { element, refresh }
}

/** @param {OrderState} state */
function labelOf(state) {
  const runs = state.runs.length
  return runs > 1 ? `Start ${integer(runs)} runs` : 'Start run'
}

/**
 * Orders the runs one after the other, and opens the only one, or the list. A repeated attempt has the same idempotency keys as
 * long as the orders are the same, so a lost answer never makes a second run.
 *
 * @param {HTMLFormElement} form
 * @param {OrderState} state
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} errors
 * @param {AbortSignal} signal
 */
async function submit(form, state, button, errors, signal) {
  clearProblems(form)
  replace(errors)
  if (focusInvalid(form)) return
  const runs = state.runsOf(relevant(state.order))
  const problem = missing(state)
  if (problem) return void replace(errors, showProblems(form, problem).map((text) => h('p', { class: 'problem' }, text)))
  button.disabled = true
  button.textContent = 'Starting…'
  /** @type {Api.CreatedView[]} */
  const created = []
  try {
    for (const { order: body } of runs) {
      if (runs.length > 1) setText(button, `Starting ${integer(created.length + 1)} of ${integer(runs.length)}…`)
      created.push(await api.post(state.path, body, { signal, headers: { ...state.headers, 'idempotency-key': attemptKey(state.path, body) } }))
    }
    if (state.key) {
      api.rememberKey(state.remember)
      api.key = state.key
    }
    for (const warning of new Set(created.flatMap((run) => run.warnings ?? []))) toast(warning, { kind: 'bad' })
    const [{ id, ignored_benchmarks: ignored }] = created
    if (ignored?.length) toast(`This server doesn’t know ${ignored.join(', ')}.`, { kind: 'bad' })
    attempts.clear()
    if (created.length > 1) toast(`${plural(created.length, 'run')} started.`)
    router.go(created.length > 1 ? '/runs' : `/runs/${id}`)
  } catch (error) {
    if (signal.aborted) return
    const rest = showProblems(form, /** @type {Error} */ (error))
    replace(errors,
      created.length > 0 && h('p', { class: 'problem' }, `${integer(created.length)} of ${integer(runs.length)} runs have started. With the same settings, the button starts the others.`),
      rest.map((text) => h('p', { class: 'problem' }, text)),
      rest.length === 0 && h('p', { class: 'problem' }, 'The order wasn’t accepted. The marked field says why.'))
  } finally {
    button.disabled = false
    setText(button, labelOf(state))
  }
}

/** Idempotency keys of orders that were sent since the last success. @type {Map<string, string>} */
const attempts = new Map()

/**
 * @param {string} path
 * @param {import('./new-run/order.js').Order} body
 */
function attemptKey(path, body) {
  const text = path + JSON.stringify(body)
  const key = attempts.get(text) ?? crypto.randomUUID()
  attempts.set(text, key)
  return key
}

/**
 * Returns what the API would take as "all" or refuse without naming a field.
 *
 * @param {OrderState} state
 */
function missing(state) {
  const { order, planner, runs } = state
  const fields = [state.missingUser ?? []].flat()
  if (!order.model_id) fields.push({ field: 'model_id', message: 'Choose a model.' })
  if (!order.selected_benchmarks?.length) fields.push({ field: 'selected_benchmarks', message: 'Choose at least one benchmark.' })
  const tooMany = planner?.tooMany(runs.length)
  if (tooMany) fields.push({ field: 'thinking_levels', message: tooMany })
  if (order.items?.length === 0) fields.push({ field: 'items', message: 'Give at least one item.' })
  return fields.length > 0 ? Object.assign(new Error('The order isn’t complete.'), { fields }) : null
}
