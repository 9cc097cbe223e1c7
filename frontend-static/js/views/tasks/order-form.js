/**
 * Order of episodes: agent, number, the model of an agent that asks one, the files of a custom one, and variables. A key stays in memory and goes into
 * this request only.
 */

import { api } from '../../core/api.js'
import { field, h, replace, setText } from '../../core/dom.js'
import { plural } from '../../core/format.js'
import { problem } from '../../core/states.js'
import { CUSTOM, needsModel } from '../../core/agents.js'
import { modelPicker } from '../new-run/model-picker.js'
import { runsPath } from '../new-run/state.js'
import { customAgentField } from './custom-agent.js'
import { TERMINAL_TASKS, variableFields } from './variables.js'

/** Largest number of episodes of a task in an order. */
const EPISODES_MAX = 100

/**
 * @typedef {object} OrderFormOptions
 * @property {Api.Agent[]} agents
 * @property {string} [agent] agent that is chosen first
 * @property {string} [model] model that is chosen first, as PROVIDER/NAME
 * @property {number} [count] number of episodes of each task
 * @property {() => number} [tasks] number of tasks; default 1
 * @property {HTMLElement} [beside] a further action beside the button
 * @property {AbortSignal} signal
 * @property {(order: EpisodeOrder, key: string) => Promise<void>} order places it
 */

/**
 * @typedef {{agent: string, samples: number, model_id: string | undefined, agent_options?: Record<string, string>,
 *   benchmark_options?: Record<string, Record<string, string>>}} EpisodeOrder
 */

/**
 * Makes the form. Its view loads `views/new-run.css`, which has the styles of the model's field.
 *
 * @param {OrderFormOptions} options
 */
export function episodeOrderForm({ agents, agent: chosen, model: firstModel = '', count: first = 10, tasks = () => 1, beside, signal, order }) {
  const agent = h('select', { name: 'agent' }, agents.map(({ id, name }) => h('option', { value: id }, name)))
  if (chosen && agents.some(({ id }) => id === chosen)) agent.value = chosen
  const count = h('input', { name: 'samples', type: 'number', min: '1', max: String(EPISODES_MAX), required: true, inputmode: 'numeric', '.value': String(first) })
  const picker = modelPicker({
    path: 'model_id', label: 'Model', value: firstModel, placeholder: 'Search by name or provider', signal,
    hint: 'A model that isn’t listed can be typed as PROVIDER/NAME.', isOffered: (offered) => needsModel(offered.model), changed: () => {},
  })
  const model = /** @type {HTMLInputElement} */ (picker.querySelector('input'))
  const key = h('input', { name: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false', 'data-1p-ignore': true, placeholder: api.key ? 'the key from the header' : '' })
  const forModel = h('div', { class: 'for-model' }, picker,
    field('Key for these episodes', key, 'Stays in memory; the server deletes it afterwards.'))
  const errors = h('div', null)
  const variables = variableFields({}, () => replace(errors))
  const custom = customAgentField({ signal, changed: () => { replace(errors); show() } })
  const submit = h('button', { type: 'submit', class: 'button primary' })
  const episodes = field('Episodes of each task', count)
  const form = h('form', { class: 'episode-order', 'aria-label': 'Order episodes' }, field('Agent', agent), episodes, forModel, custom.element, variables.element, h('div', { class: 'actions' }, submit, beside), errors)
  const show = () => {
    forModel.hidden = !needsModel(agent.value)
    model.required = !forModel.hidden
    custom.show(agent.value === CUSTOM)
    variables.need(agent.value === CUSTOM ? custom.agent()?.required_variables ?? [] : [])
    const n = tasks()
    const label = episodes.querySelector('label')
    if (label) setText(label, n > 1 ? 'Episodes of each task' : 'Episodes')
    setText(submit, `Order ${plural(Math.max(0, Math.trunc(Number(count.value))) * n, 'episode')}${n > 1 ? ` of ${plural(n, 'task')}` : ''}`)
  }
  form.addEventListener('input', show)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    submit.disabled = true
    replace(errors)
    try {
      const needs = needsModel(agent.value)
      const options = agent.value === CUSTOM ? { agent_options: await custom.options() } : {}
      const given = variables.options()
      const values = Object.keys(given).length > 0 ? { benchmark_options: { [TERMINAL_TASKS]: given } } : {}
      await order({ agent: agent.value, samples: Number(count.value), model_id: needs ? model.value.trim() : undefined, ...options, ...values }, needs ? key.value.trim() : '')
      key.value = ''
    } catch (error) {
      if (!signal.aborted) replace(errors, problem(/** @type {Error} */ (error)))
    } finally { submit.disabled = false }
  })
  show()
  return { element: form, show }
}

/**
 * Orders one run with episodes of tasks.
 *
 * @param {string[]} tasks ids
 * @param {EpisodeOrder} order
 * @param {string} key empty for that of the header
 * @param {string[]} [tags]
 * @returns {Promise<Api.CreatedView>}
 */
export function orderEpisodes(tasks, order, key, tags = []) {
  return api.post(runsPath(key || api.key), { ...order, tasks, ...(tags.length > 0 ? { tags } : {}) }, { headers: { authorization: key ? `Bearer ${key}` : null } })
}
