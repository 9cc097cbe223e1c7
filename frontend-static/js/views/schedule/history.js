/** History of a schedule: scores over time with regressions marked, and every planned time. */

import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { ago, dateTime } from '../../core/format.js'
import { messageParts } from '../../core/messages.js'
import { outcomesInWords } from '../../core/outcomes.js'
import { toast } from '../../core/states.js'
import { differences, doubts, firingScore, firingStatus } from '../schedules/firing.js'
import { sentence } from '../new-run/problems.js'
import { historyFigure } from './chart.js'

/**
 * Makes the section. `show` gets the latest page; older ones are loaded on demand and stay.
 *
 * @param {string} base path of the schedule in the API
 * @param {AbortSignal} signal
 */
export function historySection(base, signal) {
  const chart = h('div', { class: 'history-chart' })
  const rows = h('tbody', null)
  const more = h('button', { type: 'button', class: 'button', hidden: true }, 'Earlier times')
  /** @type {Api.FiringView[]} */
  let older = []
  /** @type {Api.FiringView[]} */
  let latest = []
  /** @type {string | null | undefined} */
  let before
  let drawn = ''
  const draw = () => {
    const all = [...latest, ...older]
    replace(rows, all.map(row))
    more.hidden = !before
    const shown = JSON.stringify(all.map(({ planned_at, score, status }) => [planned_at, score, status]))
    if (shown !== drawn) {
      drawn = shown
      replace(chart, historyFigure(all))
    }
    table.hidden = all.length === 0
    nothing.hidden = all.length > 0
  }
  more.addEventListener('click', async () => {
    more.disabled = true
    try {
      /** @type {Api.FiringsView} */
      const page = await api.get(`${base}/firings`, { query: { limit: 200, before }, signal })
      older.push(...page.firings)
      before = page.next_before
      draw()
    } catch (error) {
      if (!signal.aborted) toast(/** @type {Error} */ (error).message, { kind: 'bad' })
    } finally {
      more.disabled = false
    }
  })
  const table = h('table', { class: 'cards firings-table' },
    h('thead', null, h('tr', null, ['Planned', 'State', 'Score',
      'Difference from the run before'].map((name) => h('th', { scope: 'col' }, name)))), rows)
  const nothing = h('p', { class: 'dim' }, 'No run yet. The history shows each run, compared with the one before on the same items.')
  const element = h('section', { 'aria-labelledby': 'history' },
    h('div', { class: 'section-head' }, h('h2', { id: 'history' }, 'History')), chart, nothing, table, more)
  return {
    element,
    show(/** @type {Api.FiringsView} */ page) {
      latest = page.firings
      const last = latest.at(-1)?.planned_at
      older = older.filter(({ planned_at }) => !last || planned_at < last)
      if (before === undefined || older.length === 0) before = page.next_before
      draw()
    },
  }
}

/** @param {Api.FiringView} firing */
function row(firing) {
  const notices = firing.notices ?? []
  return h('tr', { class: firing.comparison?.regressed ? 'regressed' : null },
    h('th', { scope: 'row' }, h('time', { datetime: firing.planned_at }, dateTime(firing.planned_at)), h('small', null, ago(firing.planned_at))),
    h('td', { dataset: { label: 'State' } }, firingStatus(firing),
      firing.error && messageParts(firing.error, outcomesInWords).map((part) => part && h('small', null, part)),
      firing.missed_earlier > 0 && h('small', null, `${firing.missed_earlier} earlier times were missed, too`),
      notices.map((notice) => h('small', null,
        // What the row says already isn't repeated.
        notice.kind === 'regressed' || (firing.error && notice.text.includes(firing.error)) ? delivery(notice) : `${sentence(notice.text)} ${delivery(notice)}`))),
    h('td', { dataset: { label: 'Score' } }, firingScore(firing)),
    h('td', { dataset: { label: 'Difference' } }, firing.comparison
      ? [differences(firing.comparison), doubts(firing.comparison).map((text) => h('small', { class: 'doubt' }, text)),
        h('small', null, h('a', { href: `/compare?runs=${firing.comparison.with_run},${firing.run_id}` }, 'Compare item by item'))]
      : h('span', { class: 'dim' }, '–')))
}

/** @param {Api.NoticeView} notice */
function delivery({ webhook }) {
  if (webhook?.state === 'done') return 'The webhook was called.'
  if (webhook?.state === 'due') return `The webhook is called again soon${webhook.error ? `: ${webhook.error}` : ''}.`
  if (webhook?.state === 'given_up') return `The webhook could not be called: ${webhook.error}.`
  return ''
}
