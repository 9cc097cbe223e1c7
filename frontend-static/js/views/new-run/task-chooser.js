/** Choice of programming tasks in a form, which loads their list when it is opened. */

import { api } from '../../core/api.js'
import { replace, useStyles } from '../../core/dom.js'
import { failure, loading } from '../../core/states.js'
import { codeTaskList } from '../code-tasks/list.js'

/**
 * Loads the tasks of a benchmark and shows them in an element.
 *
 * @param {HTMLElement} body
 * @param {object} options
 * @param {string} options.benchmark
 * @param {string[]} options.items ids that are chosen at first; others than tasks are kept
 * @param {(items: string[]) => void} options.changed
 * @param {AbortSignal} options.signal
 * @returns {Promise<((items: string[]) => void) | null>} shows a choice that was made elsewhere; null if the list can't be loaded
 */
export async function showTaskChooser(body, options) {
  const { benchmark, items, changed, signal } = options
  replace(body, loading('Loading the tasks'))
  try {
    const [{ tasks }] = await Promise.all([
      /** @type {Promise<Api.CodeTasksView>} */ (api.get(`/api/benchmarks/${encodeURIComponent(benchmark)}/tasks`, { signal })), useStyles('views/code-tasks.css'),
    ])
    const ids = tasks.map(({ task_id: id }) => id)
    const chosen = new Set(items)
    const list = codeTaskList({
      benchmark, tasks, chosen, isCompact: true,
      changed: () => changed([...ids.filter((id) => chosen.has(id)), ...[...chosen].filter((id) => !ids.includes(id))]),
    })
    replace(body, list.element)
    return (now) => {
      chosen.clear()
      for (const id of now) chosen.add(id)
      list.refresh()
    }
  } catch (error) {
    if (signal.aborted) return null
    replace(body, failure(/** @type {Error} */ (error), () => void showTaskChooser(body, options)))
    return null
  }
}
