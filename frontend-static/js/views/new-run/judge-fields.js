/** The judge of an order: a model that grades the answers of some benchmarks. */

import { h, setText } from '../../core/dom.js'
import { field, optional } from './control.js'
import { JUDGE } from './fields.js'
import { judgeKeyField } from './key-fields.js'
import { modelPicker } from './model-picker.js'
import { valueAt } from './order.js'

/**
 * Makes the fields. They open by themselves when a selected benchmark needs a judge.
 *
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
export function judgeFields(benchmarks, state, signal) {
  const needing = () => benchmarks.filter(({ name, judged }) => judged && state.order.selected_benchmarks?.includes(name))
  const suggestion = h('p', { class: 'form-wide form-hint' })
  const section = optional('Judge', '', false,
    suggestion,
    modelPicker({
      path: 'judge.model_id', label: 'Model that grades', value: state.order.judge?.model_id ?? '', placeholder: 'the server’s judge', signal,
      hint: 'Without one, the server’s own judge grades, if it has one. The oracle as a judge compares texts.',
      changed: (value) => state.set('judge.model_id', value),
    }),
    judgeKeyField(state),
    JUDGE.map((spec) => field(spec, valueAt(state.order, spec.name), (value) => state.set(spec.name, value))))
  const summary = /** @type {Element} */ (section.querySelector('.form-summary'))
  let wasNeeded = false
  const show = () => {
    const names = needing()
    const isNeeded = names.length > 0
    setText(summary, state.order.judge?.model_id ?? (isNeeded ? `grades ${names.map((each) => each.display_name).join(', ')}` : 'not needed by the selected benchmarks'))
    setText(suggestion, names.map((each) => {
      const official = each.protocols?.find((p) => p.is_default)?.judge?.official_model
      return official ? `The authors of ${each.display_name} use ${official}.` : ''
    }).filter(Boolean).join(' '))
    suggestion.hidden = suggestion.textContent === ''
    if (isNeeded && !wasNeeded) section.open = true
    if (!isNeeded && wasNeeded && !state.order.judge) section.open = false
    wasNeeded = isNeeded
  }
  state.addEventListener('change', show)
  show()
  if (state.order.judge) section.open = true
  return section
}
