/** Judgings of a run's answers: who graded them, and which score came out. */

import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { dateTime, none, percent } from '../../core/format.js'
import { statusBadge } from '../../core/outcomes.js'
import { path } from '../../core/router.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** @param {{signal: AbortSignal}} options */
export function judgings({ signal }) {
  const element = h('section', { class: 'no-print', hidden: true, 'aria-labelledby': 'judgings' })
  let key = ''
  return {
    element,
    /** Loads the list once per state of a run with a judge. @param {Run} run */
    async show(run) {
      const now = `${run.id} ${run.status}`
      if (now === key || !run.benchmarks.some((b) => b.judge)) return
      key = now
      try {
        /** @type {Api.JudgingsView} */
        const body = await api.get(`/api/runs/${run.id}/judgings`, { signal })
        element.hidden = body.judgings.length < 2
        replace(element, h('h2', { id: 'judgings' }, 'Judgings of these answers'), h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Judgings' }, h('table', { class: 'figures' },
          h('thead', null, h('tr', null, ['Number', 'Judge', 'Status', 'Scores', 'Ordered'].map((text) => h('th', { scope: 'col' }, text)))),
          h('tbody', null, body.judgings.map((j) => h('tr', { 'aria-current': j.run_id === run.id ? 'true' : null },
            h('td', null, j.deleted ? `${j.version} (deleted)` : h('a', { href: path('runs', j.run_id) }, String(j.version))),
            h('td', null, j.judge?.model ?? j.benchmarks[0]?.judge?.model ?? none),
            h('td', null, j.status ? statusBadge(j.status) : none),
            h('td', null, j.benchmarks.map((b) => `${b.benchmark_name} ${percent(b.score)}`).join(', ')),
            h('td', { class: 'nowrap' }, dateTime(j.created_at))))))))
      } catch (error) { if (!signal.aborted) console.warn(error) }
    },
  }
}
