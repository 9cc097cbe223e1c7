/** Running, queued and recently completed runs. */

import { h } from '../../core/dom.js'
import { ago, dateTime, duration, integer } from '../../core/format.js'
import { statusBadge } from '../../core/outcomes.js'
import { leveled } from '../../core/agents.js'

/** @param {Api.OverviewView} overview */
export function runLists({ running_runs, queued_runs, completed_runs, queue_counts }) {
  const over = queue_counts.succeeded + queue_counts.failed + queue_counts.canceled
  return h('section', { class: 'ops-runs', 'aria-label': 'Runs' },
    h('div', { class: 'ops-open' },
      listOf('Running', running_runs, queue_counts.running, queue_counts.running, 'No run is in progress.', (run) => ['started', run.started_at]),
      listOf('Queued', queued_runs, queue_counts.queued, queue_counts.queued, 'No run waits.', (run) => ['ordered', run.created_at])),
    listOf('Recently completed', completed_runs, null, over, 'No run is over yet.', (run) => ['ended', run.completed_at]))
}

/**
 * @param {string} title
 * @param {Api.RunLine[]} runs
 * @param {number | null} total of which the list has the newest; null if the list is what counts
 * @param {number} known number of such runs, which callers other than the operator get without the list
 * @param {string} nothing
 * @param {(run: Api.RunLine) => [string, string | null]} time
 */
function listOf(title, runs, total, known, nothing, time) {
  return h('div', null, h('h2', null, title, ' ',
    h('span', { class: 'dim' }, (total ?? 0) > runs.length ? `${runs.length} of ${integer(total)}` : integer(total ?? (runs.length === 0 ? known : runs.length)))),
    runs.length === 0 ? h('p', { class: 'dim' }, known > 0 ? 'Runs are listed for the operator of this server only.' : nothing)
      : h('ul', { class: 'ops-list' }, runs.map((run) => line(run, ...time(run)))))
}

/**
 * @param {Api.RunLine} run
 * @param {string} verb
 * @param {string | null} at
 */
function line(run, verb, at) {
  const seconds = run.started_at && run.completed_at ? (new Date(run.completed_at).getTime() - new Date(run.started_at).getTime()) / 1000 : null
  const subset = run.subset_count !== null ? `${integer(run.subset_count)} items` : run.subset_pct === 100 ? 'all items' : `${run.subset_pct}%`
  return h('li', null,
    h('div', null, h('a', { href: `/runs/${run.id}` }, leveled(run.model, run.thinking_level)), ' ', statusBadge(run.interrupted ? 'interrupted' : run.status)),
    h('div', { class: 'dim' }, [(run.benchmarks ?? []).join(', '), subset].filter(Boolean).join(' · ')),
    h('div', { class: 'dim' }, h('time', { datetime: at, title: dateTime(at) }, `${verb} ${ago(at)}`),
      seconds !== null && ` · took ${duration(seconds)}`))
}
