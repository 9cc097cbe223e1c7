/** Choice of runs to compare. */

import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { ago, percent, plural, shortId } from '../../core/format.js'
import { router } from '../../core/router.js'
import { benchmarkOfRun, modelOf } from '../../core/run-facts.js'
import { empty, failure } from '../../core/states.js'
import { RUNS_MAX } from './load.js'

/** Runs that the list has at most. */
const LISTED = 50

/**
 * Makes the list of runs that are over, from which the reader chooses.
 *
 * @param {{chosen: string[], signal: AbortSignal}} options `chosen` are ids that are chosen already, the baseline first.
 */
export async function chooser({ chosen, signal }) {
  const list = h('div', { class: 'compare-choice' })
  const ids = [...chosen]
  const go = h('button', { type: 'button', class: 'button primary', disabled: true }, 'Compare')
  const told = h('span', { class: 'dim', role: 'status' })
  const update = () => {
    go.disabled = ids.length < 2 || ids.length > RUNS_MAX
    go.textContent = ids.length < 2 ? 'Compare' : `Compare ${plural(ids.length, 'run')}`
    told.textContent = ids.length === 0 ? 'Choose a baseline, then the runs to compare with it.'
      : ids.length === 1 ? 'Now choose a run to compare with it.' : ids.length > RUNS_MAX ? `At most ${RUNS_MAX} runs can be compared at once.` : ''
    for (const mark of list.querySelectorAll('.letter')) {
      const at = ids.indexOf(/** @type {HTMLElement} */ (mark).dataset.run ?? '')
      mark.textContent = at < 0 ? '' : String.fromCharCode(65 + at)
    }
  }
  go.addEventListener('click', () => router.go(`/compare?runs=${ids.join(',')}`))
  try {
    /** @type {Api.RunsView} */
    const { runs } = await api.get('/api/runs', { query: { status: 'succeeded,failed,canceled', limit: LISTED }, signal })
    if (runs.length < 2 && chosen.length === 0) {
      return empty('There are no two runs to compare', 'A comparison needs two runs that are over and have a benchmark in common.', h('a', { class: 'button primary', href: '/new' }, 'New run'))
    }
    replace(list, h('div', { class: 'scroll-x' }, h('table', { class: 'figures', 'aria-label': 'Latest runs that are over' },
      h('thead', null, h('tr', null, ['', 'Run', 'Score', 'Ordered'].map((name) => h('th', { scope: 'col', class: name === 'Score' ? 'number' : null }, name || h('span', { class: 'visually-hidden' }, 'Choose'))))),
      h('tbody', null, runs.map((run) => h('tr', null,
        h('td', null, h('input', {
          type: 'checkbox', id: `choose-${run.id}`, 'aria-label': `${run.name ?? modelOf(run)} ${shortId(run.id)}`, '.checked': ids.includes(run.id),
          on: { change: (/** @type {Event} */ event) => {
            if (/** @type {HTMLInputElement} */ (event.target).checked) ids.push(run.id)
            else ids.splice(ids.indexOf(run.id), 1)
            update()
          } },
        }), ' ', h('b', { class: 'letter', dataset: { run: run.id } })),
        h('th', { scope: 'row' }, h('label', { for: `choose-${run.id}` }, run.name ?? modelOf(run)), ' ', h('code', { class: 'dim' }, shortId(run.id)),
          h('p', { class: 'hint' }, run.name && `${modelOf(run)} · `, run.benchmarks.map((b) => `${benchmarkOfRun(run, b.benchmark_name)}${b.demo ? ' (DEMO)' : ''}`).join(', '))),
        h('td', { class: 'number' }, percent(run.overall_score)),
        h('td', null, h('time', { datetime: run.created_at }, ago(run.created_at)))))))))
  } catch (problem) {
    if (signal.aborted) throw problem
    return failure(/** @type {Error} */ (problem))
  }
  update()
  return h('section', null, h('div', { class: 'actions compare-go' }, go, told), list,
    h('p', { class: 'hint' }, 'These are the latest runs. Others can be selected in the ', h('a', { href: '/runs' }, 'list of runs'), '.'))
}
