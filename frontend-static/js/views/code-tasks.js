/** Programming tasks of a benchmark: what they are, how each was proven, and a choice of those to run. */

import { api } from '../core/api.js'
import { h, part, replace, useStyles } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { path } from '../core/router.js'
import { empty } from '../core/states.js'
import { copyBox } from '../components/copy.js'
import { codeTaskList } from './code-tasks/list.js'

const FILTERS = /** @type {const} */ (['q', 'language', 'type', 'difficulty'])

/** @param {import('../app.js').Context} context */
export async function mount({ root, params, query, signal, title }) {
  const name = params.benchmark
  const [{ benchmark, tasks }] = await Promise.all([
    /** @type {Promise<Api.CodeTasksView>} */ (api.get(`/api/benchmarks/${encodeURIComponent(name)}/tasks`, { signal })), useStyles('views/code-tasks.css'),
  ])
  if (signal.aborted) return
  title(`Tasks of ${benchmark}`)
  const head = h('div', { class: 'view-head' },
    h('nav', { class: 'crumbs', 'aria-label': 'Place' }, h('a', { href: '/benchmarks' }, 'Benchmarks'), ' › ', h('a', { href: path('benchmarks', benchmark) }, benchmark)),
    h('h1', null, 'Tasks of ', h('code', null, benchmark)),
    tasks.length > 0 && h('p', { class: 'sub' }, 'A task is admitted if the untouched project fails, the reference passes all tests each time, and wrong solutions fail for the reason named. Models see neither tests nor reference.'))
  if (tasks.length === 0) {
    replace(root, head, empty('', 'The items of this benchmark aren’t programming tasks that come with the program.', h('a', { class: 'button', href: path('benchmarks', benchmark) }, 'Benchmark')))
    return
  }
  /** @type {Set<string>} */
  const chosen = new Set()
  const bar = part(h('div', { class: 'code-task-bar' }), () => [...chosen], () => chooserBar(benchmark, tasks, chosen))
  const list = codeTaskList({
    benchmark, tasks, chosen, changed: () => bar.show(null),
    filters: Object.fromEntries(FILTERS.map((filter) => [filter, query.get(filter) ?? ''])),
    filtered: (filters) => query.set(Object.fromEntries(FILTERS.map((filter) => [filter, filters[filter]?.trim() ?? '']))),
  })
  bar.show(null)
  replace(root, head, list.element, bar.element,
    h('section', { 'aria-labelledby': 'command' },
      h('div', { class: 'section-head' }, h('h2', { id: 'command' }, 'The same as a command')), copyBox(`bench benchmarks ${benchmark} --tasks`)))
}

/**
 * Says how many tasks are chosen, and leads to a run of them.
 *
 * @param {string} benchmark
 * @param {Api.CodeTaskView[]} tasks
 * @param {Set<string>} chosen
 */
function chooserBar(benchmark, tasks, chosen) {
  const ids = tasks.map(({ task_id: id }) => id).filter((id) => chosen.has(id))
  const isAll = ids.length === 0 || ids.length === tasks.length
  const query = new URLSearchParams({ benchmarks: benchmark, ...(isAll ? { subset_pct: '100' } : { items: ids.join('\n') }) })
  return [
    h('span', { role: 'status' }, ids.length === 0 ? 'No task is chosen.' : `${plural(ids.length, 'task')} chosen.`),
    h('a', { class: 'button primary', href: `/new?${query}`, dataset: { key: 'run' } }, isAll ? `New run of all ${integer(tasks.length)}` : `New run of ${plural(ids.length, 'task')}`),
  ]
}
