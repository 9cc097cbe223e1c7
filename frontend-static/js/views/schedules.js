/** All schedules: what is next, what is paused, and whether the last run got worse. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { ago, dateTime, plural, timeZone } from '../core/format.js'
import { poll } from '../core/connection.js'
import { withAgent } from '../core/agents.js'
import { modelOf } from '../core/run-facts.js'
import { path } from '../core/router.js'
import { empty } from '../core/states.js'
import { mineFilter, noneOfMine } from '../components/mine-filter.js'
import { differences, firingScore, firingStatus } from './schedules/firing.js'
import { timesInWords } from './schedules/times.js'

/** Schedules of a page of the API. */
const PAGE = 200

/** @param {import('../app.js').Context} context */
export async function mount({ root, query, signal, title }) {
  title('Schedules')
  const mine = mineFilter(query, () => updates?.now())
  const load = async () => ({ schedules: await allSchedules(mine.value, signal), isAll: mine.value === null })
  /** @type {{now: () => void} | null} */
  let updates = null
  const [first] = await Promise.all([load(), useStyles('views/schedules.css')])
  const list = h('div', null)
  const count = h('p', { class: 'sub' })
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Schedules'), h('a', { class: 'button primary', href: '/schedules/new' }, 'New schedule'), count, mine.element),
    list)
  const show = (/** @type {Awaited<ReturnType<typeof load>>} */ { schedules, isAll }) => {
    const paused = schedules.filter(({ enabled }) => !enabled).length
    replace(count, `${plural(schedules.length, 'schedule')}${paused > 0 ? `, ${paused} paused` : ''}. Times are in your zone, ${timeZone()}.`)
    mine.element.hidden = isAll && schedules.length === 0
    replace(list, schedules.length > 0 ? table(schedules)
      : !isAll ? noneOfMine('schedule')
      : empty('No schedules yet', 'A schedule orders the same run again and again, and says when a model got worse on the same items.',
        h('a', { class: 'button', href: '/schedules/new' }, 'New schedule')))
  }
  show(first)
  updates = poll(load, show, { signal, interval: 30_000, max: 120_000 })
  api.addEventListener('key', () => updates?.now(), { signal })
}

/**
 * @param {string | null} mine
 * @param {AbortSignal} signal
 */
async function allSchedules(mine, signal) {
  /** @type {Api.ScheduleView[]} */
  const all = []
  /** @type {number | null} */
  let offset = 0
  while (offset !== null) {
    /** @type {Api.SchedulesView} */
    const page = await api.get('/api/schedules', { query: { mine, limit: PAGE, offset }, signal })
    all.push(...page.schedules)
    offset = page.next_offset
  }
  return all
}

/** @param {Api.ScheduleView[]} schedules */
function table(schedules) {
  return h('table', { class: 'cards schedules-table', 'aria-label': 'Schedules' },
    h('thead', null, h('tr', null, ['Schedule', 'Model and benchmarks', 'Next run', 'Last run', 'Score',
      'Change'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, schedules.map((schedule) => h('tr', { class: schedule.enabled ? null : 'paused' },
      h('th', { scope: 'row' }, h('a', { href: path('schedules', schedule.id) }, schedule.name), h('small', null, timesInWords(schedule))),
      h('td', null, modelOf(schedule), schedule.demo && [' ', h('span', { class: 'caution' }, 'DEMO')],
        h('small', null, schedule.benchmarks.map((name) => withAgent(name, schedule.benchmark_options[name]?.agent)).join(', '))),
      h('td', { dataset: { label: 'Next run' } }, schedule.enabled ? dateTime(schedule.next_times[0]) : h('span', { class: 'badge warn' }, 'Paused'),
        schedule.enabled && h('small', null, ago(schedule.next_times[0]))),
      h('td', { dataset: { label: 'Last run' } },
        schedule.last ? [firingStatus(schedule.last), h('small', null, ago(schedule.last.planned_at))] : h('span', { class: 'dim' }, 'none yet')),
      h('td', { dataset: { label: 'Score' } }, schedule.last ? firingScore(schedule.last) : h('span', { class: 'dim' }, '–')),
      h('td', { dataset: { label: 'Change' } },
        schedule.last?.comparison ? differences(schedule.last.comparison) : h('span', { class: 'dim' }, '–'))))))
}
