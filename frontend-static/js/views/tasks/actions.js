/** Removal of an uploaded task. */

import { api } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { toast } from '../../core/states.js'
import { openDialog } from '../../components/dialog.js'

/**
 * Asks, removes a task, and tells what happened.
 *
 * @param {Api.Task} task
 * @param {() => void} removed
 */
export function openRemoveTask(task, removed) {
  openDialog({
    title: `Delete the task ${task.name}?`,
    content: h('p', null, 'Its archive is removed, and its open runs are canceled. Runs stay in the list of runs with the results that they have.'),
    action: 'Delete the task', danger: true,
    run: async () => {
      await api.delete(`/api/tasks/${task.id}`)
      toast(`${task.name} was deleted.`)
      removed()
    },
  })
}
