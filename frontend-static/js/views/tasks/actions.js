/** Removal of uploaded tasks and agents. */

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

/**
 * Asks, removes an uploaded agent, and tells what happened.
 *
 * @param {Api.CustomAgent} agent
 * @param {() => void} removed
 */
export function openRemoveAgent({ id, model }, removed) {
  openDialog({
    title: `Remove the agent ${model}?`,
    content: h('p', null, 'Its archive is removed. Runs that are over keep their results; repeating their samples needs the same files again. An agent that an open run or a schedule needs isn’t removed.'),
    action: 'Remove the agent', danger: true,
    run: async () => {
      await api.delete(`/api/agents/custom/${id}`)
      toast(`${model} was removed.`)
      removed()
    },
  })
}
