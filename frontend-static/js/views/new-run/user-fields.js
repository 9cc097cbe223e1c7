/** The user model of an order: the model that simulates users in benchmarks whose items are conversations. There is no default. */

import { h, setText } from '../../core/dom.js'
import { hasConversations, needsModel } from '../../core/agents.js'
import { field, optional } from './control.js'
import { USER } from './fields.js'
import { userKeyField } from './key-fields.js'
import { modelPicker } from './model-picker.js'
import { valueAt } from './order.js'
import { REPLAY } from './state.js'

/**
 * Makes the fields, which are hidden unless a selected benchmark needs them.
 *
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
export function userFields(benchmarks, state, signal) {
  const suggestion = h('p', { class: 'form-wide form-hint' })
  const section = optional('User model', '', true,
    suggestion,
    modelPicker({
      path: 'user_model.model_id', label: 'Model that simulates users', value: String(valueAt(state.order, 'user_model.model_id') ?? ''), placeholder: 'Search by name or provider', signal,
      hint: 'Required: scores depend on it, so runs and leaderboards name it. The evaluated model never takes its place. Your key pays for it if it is of the same provider.',
      isOffered: ({ model }) => needsModel(model ?? '') && !(model ?? '').startsWith(REPLAY),
      changed: (value) => state.set('user_model.model_id', value),
    }),
    userKeyField(state),
    USER.map((spec) => field(spec, valueAt(state.order, spec.name), (value) => state.set(spec.name, value))))
  const summary = /** @type {Element} */ (section.querySelector('.form-summary'))
  const show = () => {
    const named = benchmarks.filter(({ name }) => hasConversations(name) && state.order.selected_benchmarks?.includes(name))
    section.hidden = named.length === 0
    const model = valueAt(state.order, 'user_model.model_id')
    setText(summary, model ? String(model) : state.missingUser ? 'required' : 'not needed: no model is asked')
    setText(suggestion, named.map((each) => {
      const official = /** @type {{user?: {official_model?: string} | null} | undefined} */ (each.protocols?.find((p) => p.is_default))?.user?.official_model
      return official ? `The authors of ${each.display_name} use ${official}.` : ''
    }).filter(Boolean).join(' '))
    suggestion.hidden = suggestion.textContent === ''
  }
  state.addEventListener('change', show)
  show()
  return section
}
