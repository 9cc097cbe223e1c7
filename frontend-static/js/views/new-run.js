/** Orders a run: model, benchmarks, items and settings, with an estimate before it starts. */

import { api } from '../core/api.js'
import { toast, withModule } from '../core/states.js'
import { h, replace, useStyles } from '../core/dom.js'
import { router } from '../core/router.js'
import { findModels } from './new-run/model-picker.js'
import { keepEstimate } from './new-run/estimate.js'
import { OrderState } from './new-run/state.js'
import { clearProblems, focusInvalid, orderSections, showProblems } from './new-run/order-form.js'
import { estimatePanel } from './new-run/summary.js'
import { orderOf, queryOf } from './new-run/address.js'
import { orderOfRun, relevant, SHARE_DEFAULT } from './new-run/order.js'
import { serverNotices } from './new-run/notices.js'

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
  const [{ benchmarks: all }, { models }, asked] = await Promise.all([
    /** @type {Promise<Api.BenchmarksView>} */ (api.get('/api/benchmarks', { signal })), findModels('', signal), orderAsked(query, signal),
  ])
  // Items of terminal tasks are uploaded; they have an order form of their own.
  const benchmarks = all.filter(({ name }) => name !== 'terminal_tasks')
  const state = new OrderState(withDefaults(asked, benchmarks, models))
  const panel = estimatePanel()
  const notices = serverNotices(signal, (isOpen) => { start.disabled = !isOpen })
  const start = h('button', { type: 'submit', class: 'button primary' }, 'Start run')
  const errors = h('div', { class: 'form-errors', role: 'alert' })
  const commands = commandsPanel(state)
  const form = h('form', { class: 'order-form', novalidate: true, 'aria-label': heading },
    h('div', { class: 'order-sections' }, orderSections({ state, benchmarks, signal })),
    h('div', { class: 'order-side' }, panel.element,
      h('div', { class: 'order-bar' }, errors, panel.line, start), commands.element))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void submit(form, state, start, errors, signal)
  })
  state.addEventListener('change', () => {
    commands.refresh()
    if (keepsAddress) showAddress(state)
  })
  replace(root,
    h('div', { class: 'view-head' }, h(level, null, heading)),
    notices, onlyOracle(models) && providerNote(), form)
  keepEstimate(state, benchmarks, panel.show, signal)
}

/**
 * Returns the order that the address asks for: a run to repeat, fields, or both.
 *
 * @param {URLSearchParams} query
 * @param {AbortSignal} signal
 */
async function orderAsked(query, signal) {
  const from = query.get('from')
  const base = from ? orderOfRun(await api.get(`/api/runs/${encodeURIComponent(from)}`, { signal })) : {}
  return { ...base, ...orderOf(query) }
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
  order.selected_benchmarks ??= (suggested.length > 0 ? suggested : enabled).map(({ name }) => name)
  if (!order.items && order.subset_count == null) order.subset_pct ??= SHARE_DEFAULT
  return order
}

/** @param {import('./new-run/model-picker.js').Model[]} models */
function onlyOracle(models) {
  return models.every(({ provider }) => provider === 'oracle')
}

/** Says how to get models on a server without a provider. */
function providerNote() {
  return h('p', { class: 'note' }, 'This server lists no models of a provider yet. Start it with a provider’s key, such as ',
    h('code', null, 'OPENROUTER_API_KEY'), ' or ',
    h('code', null, 'CHUTES_API_KEY'), ', or type a model as ', h('code', null, 'PROVIDER/NAME'), ' and give your key for this run below.')
}

/** @param {OrderState} state */
function showAddress(state) {
  const text = queryOf(relevant(state.order)).toString().replaceAll('%2C', ',').replaceAll('%2F', '/')
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

/**
 * Orders the run and opens it. A repeated attempt has the same idempotency key as long as the order is the same, so a lost
 * answer never makes a second run.
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
  const problem = missing(state.order)
  if (problem) return void replace(errors, showProblems(form, problem).map((text) => h('p', { class: 'problem' }, text)))
  button.disabled = true
  button.textContent = 'Starting…'
  try {
    const body = relevant(state.order)
    /** @type {Api.CreatedView} */
    const run = await api.post(state.path, body, { signal, headers: { ...state.headers, 'idempotency-key': attemptKey(state.path, body) } })
    if (state.key) {
      api.rememberKey(state.remember)
      api.key = state.key
    }
    for (const warning of run.warnings ?? []) toast(warning, { kind: 'bad' })
    if (run.ignored_benchmarks?.length) toast(`This server doesn’t know ${run.ignored_benchmarks.join(', ')}.`, { kind: 'bad' })
    lastAttempt = { text: '', key: '' }
    router.go(`/runs/${run.id}`)
  } catch (error) {
    if (signal.aborted) return
    const rest = showProblems(form, /** @type {Error} */ (error))
    replace(errors, rest.map((text) => h('p', { class: 'problem' }, text)),
      rest.length === 0 && h('p', { class: 'problem' }, 'The order wasn’t accepted. The marked field says why.'))
  } finally {
    button.disabled = false
    button.textContent = 'Start run'
  }
}

let lastAttempt = { text: '', key: '' }

/**
 * @param {string} path
 * @param {import('./new-run/order.js').Order} body
 */
function attemptKey(path, body) {
  const text = path + JSON.stringify(body)
  if (lastAttempt.text !== text) lastAttempt = { text, key: crypto.randomUUID() }
  return lastAttempt.key
}

/**
 * Returns what the API would take as "all" or refuse without naming a field.
 *
 * @param {import('./new-run/order.js').Order} order
 */
function missing(order) {
  const fields = []
  if (!order.model_id) fields.push({ field: 'model_id', message: 'Choose a model.' })
  if (!order.selected_benchmarks?.length) fields.push({ field: 'selected_benchmarks', message: 'Choose at least one benchmark.' })
  if (order.items?.length === 0) fields.push({ field: 'items', message: 'Give at least one item.' })
  return fields.length > 0 ? Object.assign(new Error('The order isn’t complete.'), { fields }) : null
}
