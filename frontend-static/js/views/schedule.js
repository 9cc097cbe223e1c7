/** One schedule: its next times, its settings, and its history with regressions. */

import { api, curl } from '../core/api.js'
import { toast } from '../core/states.js'
import { h, replace, useStyles } from '../core/dom.js'
import { ago, dateTime, timeZone } from '../core/format.js'
import { poll } from '../core/connection.js'
import { query, router } from '../core/router.js'
import { modelLabel, modelOf } from '../core/run-facts.js'
import { copyBox } from '../components/copy.js'
import { openDialog } from '../components/dialog.js'
import { facts } from './benchmark/facts.js'
import { showScheduleForm } from './schedule/form.js'
import { historySection } from './schedule/history.js'
import { settingsOf } from './schedule/settings.js'
import { quote } from './new-run/commands.js'
import { cronInWords } from './schedules/times.js'

/** Firings of a page of the history. */
const FIRINGS = 50

/** @param {import('../app.js').Context} context */
export async function mount({ root, params, signal, title }) {
  await useStyles('views/schedules.css', 'views/benchmarks.css')
  if (params.schedule === 'new') {
    title('New schedule')
    await showScheduleForm(root, null, signal)
    return
  }
  const base = `/api/schedules/${encodeURIComponent(params.schedule)}`
  const load = async () => {
    const [schedule, page] = await Promise.all([
      /** @type {Promise<Api.ScheduleView>} */ (api.get(base, { signal })),
      /** @type {Promise<Api.FiringsView>} */ (api.get(`${base}/firings`, { query: { limit: FIRINGS }, signal })),
    ])
    return { schedule, page }
  }
  const first = await load()
  if (query.get('edit')) {
    title(`Edit ${first.schedule.name}`)
    await showScheduleForm(root, first.schedule, signal)
    return
  }
  const head = h('div', { class: 'view-head' })
  const about = h('div', null)
  const history = historySection(base, signal)
  replace(root, head, about, history.element)
  const show = (/** @type {Awaited<ReturnType<typeof load>>} */ { schedule, page }) => {
    title(schedule.name)
    const focused = controls(head).indexOf(/** @type {HTMLElement} */ (document.activeElement))
    replace(head, headOf(schedule, base, () => updates.now()))
    controls(head)[focused]?.focus()
    replace(about, aboutOf(schedule))
    history.show(page)
  }
  /** @type {{now: () => void}} */
  let updates = { now: () => {} }
  show(first)
  updates = poll(load, show, { signal, interval: 10_000, max: 60_000 })
}

/**
 * @param {Element} element
 * @returns {HTMLElement[]}
 */
function controls(element) {
  return [...element.querySelectorAll('button, a')].map((each) => /** @type {HTMLElement} */ (each))
}

/**
 * @param {Api.ScheduleView} schedule
 * @param {string} base
 * @param {() => void} update
 */
function headOf(schedule, base, update) {
  const { name, enabled, is_owner } = schedule
  const act = (/** @type {() => Promise<unknown>} */ run, /** @type {string} */ done) => async (/** @type {Event & {currentTarget: HTMLButtonElement}} */ event) => {
    // A disabled button would lose the focus.
    const button = event.currentTarget
    if (button.ariaDisabled === 'true') return
    button.ariaDisabled = 'true'
    try {
      await run()
      toast(done)
    } catch (error) {
      const { message, hint = '' } = /** @type {Error & {hint?: string}} */ (error)
      toast(`${message} ${hint}`, { kind: 'bad', seconds: 12 })
    } finally {
      button.ariaDisabled = null
      update()
    }
  }
  const button = (/** @type {string} */ label, /** @type {(event: Event & {currentTarget: HTMLButtonElement}) => void} */ click) => h('button', { type: 'button', class: 'button', on: { click } }, label)
  return [
    h('nav', { class: 'crumbs', 'aria-label': 'Place' }, h('a', { href: '/schedules' }, 'Schedules')),
    h('h1', null, name, ' ', !enabled && h('span', { class: 'badge warn' }, 'Paused')),
    is_owner && h('div', { class: 'actions' },
      button('Run now', act(() => api.post(`${base}/run-now`), 'The run starts within a minute.')),
      enabled ? button('Pause', act(() => api.patch(base, { enabled: false }), `${name} is paused.`))
        : button('Resume', act(() => api.patch(base, { enabled: true }), `${name} is on again.`)),
      h('a', { class: 'button', href: `${location.pathname}?edit=1` }, 'Edit'),
      button('Remove', () => remove(schedule, base))),
    !is_owner && h('p', { class: 'sub' }, 'Only its owner can change it: enter the key that it was made with, with the button “Key” in the header.'),
  ]
}

/**
 * @param {Api.ScheduleView} schedule
 * @param {string} base
 */
function remove(schedule, base) {
  openDialog({
    title: `Remove ${schedule.name}?`,
    content: h('p', null, 'The schedule is deleted with its history and its stored key. Its runs stay.'),
    action: 'Remove',
    danger: true,
    run: async () => {
      await api.delete(base)
      toast(`${schedule.name} is removed.`)
      router.go('/schedules')
    },
  })
}

/** @param {Api.ScheduleView} schedule */
function aboutOf(schedule) {
  const words = cronInWords(schedule.cron)
  const [next, ...later] = schedule.next_times
  const name = quote(schedule.name)
  return [
    facts([
      ['Planned times', [words && `${words}, `, h('code', null, schedule.cron), ` in ${schedule.time_zone}`]],
      ['Next', next ? [h('strong', null, dateTime(next)), ` (${timeZone()}, ${ago(next)})`,
        later.length > 0 && h('span', { class: 'dim' }, `; then ${later.map(dateTime).join(', ')}`)] : 'none while it is paused'],
      [modelLabel(schedule.model, schedule.benchmarks), modelOf(schedule)],
      ['Benchmarks', schedule.benchmarks.map((each, i) => [i > 0 && ', ',
        h('a', { href: `/benchmarks/${encodeURIComponent(each)}` }, each)])],
      schedule.demo && ['Data', h('span', { class: 'caution' }, 'DEMO')],
      ...settingsOf(schedule),
      ['Paid with', schedule.own_key ? 'the owner’s key, stored encrypted' : 'the operator’s key'],
      ['Webhook', schedule.has_webhook ? schedule.webhook_url ?? 'set; only its owner sees the address' : null],
      ['Runs', h('a', { href: `/runs?search=${encodeURIComponent(schedule.name)}` }, 'all runs of this name')],
    ]),
    h('details', { class: 'schedule-commands' }, h('summary', null, 'The same as commands'),
      copyBox([`bench schedules show ${name}`, `bench schedules history ${name}`,
        `bench schedules ${schedule.enabled ? 'disable' : 'enable'} ${name}`, `bench schedules run ${name}`]
        .map((command) => `${command} --server ${location.origin}`).join('\n')),
      copyBox(curl('POST', `/api/schedules/${schedule.id}/run-now`))),
  ]
}
