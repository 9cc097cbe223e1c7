/** Sections of a schedule's form that choose terminal tasks and the agent that works on them. */

import { api } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { framed, select } from '../new-run/control.js'
import { modelPicker } from '../new-run/model-picker.js'
import { CUSTOM, needsModel } from '../../core/agents.js'
import { customAgentField } from '../tasks/custom-agent.js'
import { TERMINAL_TASKS, variableFields, variablesOf } from '../tasks/variables.js'

/** Tasks that the form offers: the latest. */
const OFFERED = 100

/** @typedef {{tasks: Api.Task[], agents: Api.Agent[]}} Choices */

/**
 * Loads what the form offers.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<Choices>}
 */
export async function loadChoices(signal) {
  const [tasks, agents] = await Promise.all([
    /** @type {Promise<Api.Task[]>} */ (api.get('/api/tasks', { query: { limit: OFFERED }, signal })),
    /** @type {Promise<Api.Agent[]>} */ (api.get('/api/agents', { signal })),
  ])
  const seen = new Set()
  // Several uploads of the same files are one item.
  return { tasks: tasks.filter(({ task }) => !seen.has(task) && seen.add(task)), agents }
}

/**
 * Returns the order of a new schedule of tasks.
 *
 * @param {string} ids ids of tasks, with commas between them
 * @param {Choices} choices
 * @returns {import('../new-run/order.js').Order}
 */
export function orderOfTasks(ids, { tasks }) {
  const wanted = new Set(ids.split(','))
  return { tasks: tasks.filter(({ id }) => wanted.has(String(id))).map(({ task }) => task), agent: 'oracle', selected_benchmarks: [TERMINAL_TASKS] }
}

/**
 * @param {object} options
 * @param {import('../new-run/state.js').OrderState} options.state
 * @param {Choices} options.choices
 * @param {AbortSignal} options.signal
 * @returns {HTMLElement[]}
 */
export function taskSections({ state, choices: { tasks, agents }, signal }) {
  const chosen = new Set(state.order.tasks ?? [])
  // A schedule may have tasks that are older than those offered.
  const offered = [...new Set([...chosen, ...tasks.map(({ task }) => task)])]
  const labels = new Map(tasks.map(({ task, name }) => [task, name]))
  const choose = (/** @type {string} */ task) => (/** @type {Event & {target: HTMLInputElement}} */ { target }) => {
    if (target.checked) chosen.add(task)
    else chosen.delete(task)
    state.set('tasks', chosen.size > 0 ? offered.filter((each) => chosen.has(each)) : undefined)
  }
  const picker = framed({ path: 'tasks', label: 'Terminal tasks', isGroup: true, wide: true, hint: 'A task of a schedule can’t be deleted.' }, ({ id, describedBy }) =>
    h('div', { class: 'form-choices', role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': describedBy },
      offered.map((task) => h('label', null,
        h('input', { type: 'checkbox', name: 'tasks', value: task, '.checked': chosen.has(task), on: { change: choose(task) } }), ' ', labels.get(task) ?? '', ' ', h('code', null, task)))))
  const model = h('div', { class: 'form-section form-model' }, modelPicker({
    path: 'model_id', label: 'Model', value: state.order.model_id ?? '', placeholder: 'Search by name or provider', signal,
    hint: 'A model that isn’t listed can be typed as PROVIDER/NAME.', isOffered: (offered) => needsModel(offered.model), changed: (value) => state.set('model_id', value),
  }))
  const current = state.order.agent ?? ''
  const variables = variableFields(variablesOf(state.order.benchmark_options?.[TERMINAL_TASKS] ?? {}), () => {
    const options = variables.options()
    state.set('benchmark_options', Object.keys(options).length > 0 ? { [TERMINAL_TASKS]: options } : undefined)
  })
  const custom = customAgentField({ signal, chosen: current === CUSTOM ? state.order.agent_options?.content_hash : '', changed: () => show() })
  const show = () => {
    const isCustom = state.order.agent === CUSTOM
    model.hidden = !needsModel(state.order.agent ?? '')
    custom.show(isCustom)
    const id = custom.id()
    if (isCustom) state.set('agent_options', id ? { content_hash: id } : undefined)
    variables.need(isCustom ? custom.agent()?.required_variables ?? [] : [])
  }
  const files = h('div', { dataset: { path: 'agent_options' } }, custom.element, h('p', { class: 'form-problem', hidden: true }))
  const agent = framed({ path: 'agent', label: 'Agent' }, ({ id, describedBy }) => select({
    id, name: 'agent', 'aria-describedby': describedBy,
    on: {
      change: (/** @type {Event & {target: HTMLSelectElement}} */ { target }) => {
        if (!needsModel(target.value)) state.set('model_id', undefined)
        // They are those of the agent before.
        state.set('agent_options', undefined)
        state.set('agent', target.value)
        show()
      },
    },
  }, agents.map(({ id: name }) => name), current, Object.fromEntries(agents.map(({ id: name, name: label }) => [name, label])), ''))
  show()
  return [h('section', { class: 'form-part', 'aria-label': 'Tasks' }, picker, agent, files, variables.element), model]
}
