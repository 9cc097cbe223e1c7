/** Form of a new or changed schedule: its times, and the order of its runs. */

import { api, curl } from '../../core/api.js'
import { toast } from '../../core/states.js'
import { h, replace, useStyles } from '../../core/dom.js'
import { path, query, router } from '../../core/router.js'
import { timeZone } from '../../core/format.js'
import { copyBox } from '../../components/copy.js'
import { field, framed, group } from '../new-run/control.js'
import { lines, option, optionsOf, quote } from '../new-run/commands.js'
import { keepEstimate } from '../new-run/estimate.js'
import { findModels } from '../new-run/model-picker.js'
import { clearProblems, focusInvalid, orderSections, showProblems } from '../new-run/order-form.js'
import { relevant, SHARE_DEFAULT } from '../new-run/order.js'
import { OrderState } from '../new-run/state.js'
import { estimatePanel } from '../new-run/summary.js'
import { cronInWords } from '../schedules/times.js'
import { changes, orderOfSchedule } from './order.js'
import { loadChoices, orderOfTasks, taskSections } from './task-fields.js'

/** Planned times that the form offers. */
const TIMES = { '30 2 * * *': 'Every night', '0 4 * * MON-FRI': 'Weekdays', '0 22 * * SUN': 'Sundays', '0 */6 * * *': 'Every 6 hours' }

/**
 * Shows the form.
 *
 * @param {HTMLElement} root
 * @param {Api.ScheduleView | null} schedule null for a new one
 * @param {AbortSignal} signal
 */
export async function showScheduleForm(root, schedule, signal) {
  const ids = query.get('tasks')
  const isOfTasks = schedule ? schedule.tasks.length > 0 : ids !== null
  const choices = isOfTasks ? await loadChoices(signal) : null
  const [{ benchmarks }, { models }] = await Promise.all([
    /** @type {Promise<Api.BenchmarksView>} */ (api.get('/api/benchmarks', { query: { texts: false }, signal })), findModels('', signal, 1), useStyles('views/new-run.css'),
  ])
  const before = schedule ? orderOfSchedule(schedule) : null
  const state = new OrderState(before ? structuredClone(before) : {
    name: '', cron: '30 2 * * *', time_zone: timeZone(),
    ...(choices ? orderOfTasks(ids ?? '', choices) : {
      model_id: models[0]?.model, subset_pct: SHARE_DEFAULT, selected_benchmarks: benchmarks.filter((each) => each.default_selected).map((each) => each.name),
    }),
  })
  const panel = estimatePanel()
  const heading = schedule ? `Edit ${schedule.name}` : 'New schedule'
  const errors = h('div', { class: 'form-errors', role: 'alert' })
  const save = h('button', { type: 'submit', class: 'button primary' }, schedule ? 'Save' : 'Create schedule')
  const commands = h('div', { class: 'commands' })
  const details = h('details', { class: 'order-commands' }, h('summary', null, 'The same as a command'), commands)
  const refresh = () => { if (details.open) replace(commands, commandsOf(schedule, before, state)) }
  details.addEventListener('toggle', refresh)
  state.addEventListener('change', refresh)
  const form = h('form', { class: 'order-form', novalidate: true, 'aria-label': heading },
    h('div', { class: 'order-sections' }, timeFields(state),
      orderSections({
        state, benchmarks, signal, payer: 'the schedule’s runs', hasName: false, subject: choices ? taskSections({ state, choices, signal }) : undefined,
      })),
    h('div', { class: 'order-side' }, panel.element, h('div', { class: 'order-bar' }, errors, panel.line, save), details))
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    clearProblems(form)
    replace(errors)
    if (focusInvalid(form)) return
    save.disabled = true
    try {
      const saved = await store(schedule, before, state, signal)
      for (const warning of saved.warnings ?? []) toast(warning, { kind: 'bad' })
      router.go(path('schedules', saved.id))
    } catch (error) {
      if (signal.aborted) return
      const rest = showProblems(form, /** @type {Error} */ (error))
      replace(errors, (rest.length > 0 ? rest : ['The schedule wasn’t saved. The marked field says why.']).map((text) => h('p',
        { class: 'problem' }, text)))
    } finally {
      save.disabled = false
    }
  })
  replace(root, h('div', { class: 'view-head' }, h('h1', null, heading),
    h('a', { class: 'button', href: schedule ? path('schedules', schedule.id) : '/schedules' }, 'Discard'),
    h('p', { class: 'sub' }, 'All runs of a schedule ask the same items, so that each can be compared with the one before. The estimate is for one run.')), form)
  keepEstimate(state, choices ? [] : benchmarks, panel.show, signal)
}

/** @param {OrderState} state */
function timeFields(state) {
  const set = (/** @type {string} */ name) => (/** @type {import('../new-run/fields.js').FieldValue | undefined} */ value) => state.set(name, value)
  const words = h('span', null)
  const describe = () => { words.textContent = cronInWords(state.order.cron ?? '') ?? 'Minute, hour, day of month, month, day of week. Two runs are at least 15 minutes apart.' }
  describe()
  state.addEventListener('change', describe)
  const cron = field({ name: 'cron', label: 'Planned times', kind: 'text', flag: '--cron', hint: words },
    state.order.cron, set('cron'))
  const input = /** @type {HTMLInputElement} */ (cron.querySelector('input'))
  input.classList.add('mono')
  const presets = h('div', { class: 'actions' }, Object.entries(TIMES).map(([value, label]) => h('button', {
    type: 'button', class: 'button small', on: { click: () => { input.value = value; state.set('cron', value) } },
  }, label)))
  cron.append(presets)
  const zones = Intl.supportedValuesOf('timeZone')
  const zone = framed({ path: 'time_zone', label: 'Time zone', hint: 'Name such as Europe/Berlin or UTC' }, ({ id, describedBy }) => [
    h('input', {
      id, class: 'form-control', name: 'time_zone', list: `${id}-list`, autocomplete: 'off', 'aria-describedby': describedBy,
        '.value': state.order.time_zone ?? 'UTC',
      on: { change: (/** @type {Event & {target: HTMLInputElement}} */ event) => state.set('time_zone', event.target.value.trim() || undefined) },
    }),
    h('datalist', { id: `${id}-list` }, ['UTC', ...zones].map((name) => h('option', { value: name })))])
  return group('Schedule', h('div', { class: 'form-grid' },
    field({ name: 'name', label: 'Name', kind: 'text', flag: '--name', hint: 'Its runs have the same name', placeholder: 'nightly' },
      state.order.name, set('name')),
    cron, zone,
    field({ name: 'webhook_url', label: 'Webhook', kind: 'text', flag: '--webhook-url', placeholder: 'https://',
      hint: 'Called when a run is worse than the one before, fails, takes too long or doesn’t start' }, state.order.webhook_url, set('webhook_url'))))
}

/**
 * @param {Api.ScheduleView | null} schedule null for a new one
 * @param {import('../new-run/order.js').Order | null} before
 * @param {OrderState} state
 * @param {AbortSignal} signal
 * @returns {Promise<Api.SavedView>}
 */
function store(schedule, before, state, signal) {
  const options = { signal, headers: state.headers }
  if (!schedule) return api.post('/api/schedules', relevant(state.order), options)
  return api.patch(`/api/schedules/${schedule.id}`, changes(before ?? {}, state.order), options)
}

/**
 * @param {Api.ScheduleView | null} schedule null for a new one
 * @param {import('../new-run/order.js').Order | null} before
 * @param {OrderState} state
 */
function commandsOf(schedule, before, state) {
  const key = state.key !== '' || api.key !== ''
  if (schedule) {
    return [h('h3', null, 'curl'), copyBox(curl('PATCH', `/api/schedules/${schedule.id}`, changes(before ?? {}, state.order), { key }))]
  }
  const { name, cron, time_zone, webhook_url, ...order } = relevant(state.order)
  const bench = lines(['bench schedules add', `--name ${quote(name ?? '')}`, `--cron ${quote(cron ?? '')}`,
    `--time-zone ${quote(time_zone ?? 'UTC')}`,
    ...(webhook_url ? [option('--webhook-url', webhook_url)] : []), ...optionsOf(order), option('--server', location.origin)])
  return [h('h3', null, 'bench'), copyBox(bench), h('h3', null, 'curl'), copyBox(curl('POST', '/api/schedules', relevant(state.order), { key }))]
}
