/** Models of a form and the thinking levels at which they run: each model at each level is a run of its own. */

import { h, uniqueId } from '../../core/dom.js'
import { framed, setProblem } from './control.js'
import { modelPicker } from './model-picker.js'
import * as planner from './sweep.js'

const PLACEHOLDER = 'Search by name or provider'

const { LEVELS, RUNS_MAX, TOKENS_MAX } = planner

/**
 * Makes the fields for further models and for thinking levels.
 *
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
export function sweepFields(state, signal) {
  state.planner = planner
  const more = h('div', { class: 'more-models' })
  const add = h('button', { type: 'button', class: 'button small', on: { click: () => { insert(''); more.lastElementChild?.querySelector('input')?.focus() } } }, 'Add a model')
  const write = () => {
    state.setSweep({ models: [...more.querySelectorAll('input')].map((input) => input.value.trim()).filter(Boolean) })
    add.disabled = more.childElementCount >= RUNS_MAX - 1
  }
  const insert = (/** @type {string} */ value) => {
    const row = h('div', { class: 'more-model' },
      modelPicker({ path: `models.${uniqueId('model')}`, label: 'Further model', value, placeholder: PLACEHOLDER, signal, changed: write }),
      h('button', {
        type: 'button', class: 'button small', 'aria-label': 'Remove this model',
        on: { click: () => { row.remove(); write(); add.focus() } },
      }, 'Remove'))
    more.append(row)
  }
  for (const model of state.sweep.models) insert(model)
  return [more, h('p', { class: 'actions' }, add), levelsField(state)]
}

/**
 * Makes the choice of thinking levels, with a control for budgets in tokens.
 *
 * @param {import('./state.js').OrderState} state
 */
function levelsField(state) {
  const chosen = new Set(state.sweep.levels.filter((level) => LEVELS.includes(level)))
  let budgets = state.sweep.levels.filter((level) => !LEVELS.includes(level))
  const write = () => state.setSweep({ levels: [...LEVELS.filter((level) => chosen.has(level)), ...budgets] })
  const boxes = LEVELS.map((level) => h('label', null,
    h('input', {
      type: 'checkbox', value: level, '.checked': chosen.has(level),
      on: {
        change: (/** @type {Event & {target: HTMLInputElement}} */ event) => {
          event.target.checked ? chosen.add(level) : chosen.delete(level)
          write()
        },
      },
    }), ' ', h('code', null, level)))
  const levels = framed({
    path: 'thinking_levels', label: 'Thinking levels', isGroup: true, wide: true,
    hint: ['Each level is a run of its own; ', h('code', null, 'base'), ' is the provider’s own level. None chosen: one run with the generation settings below.'],
  }, ({ id, describedBy }) => h('div', { class: 'form-choices', role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': describedBy }, boxes))
  const tokens = framed({ path: 'thinking_levels.tokens', label: 'Levels in tokens', hint: 'Budgets of thinking, separated by commas' }, ({ id, describedBy }) => h('input', {
    id, type: 'text', class: 'form-control', autocomplete: 'off', spellcheck: 'false', inputmode: 'numeric', placeholder: '4096, 16384', 'aria-describedby': describedBy, '.value': budgets.join(', '),
    on: {
      input: (/** @type {Event & {target: HTMLInputElement}} */ { target }) => {
        const words = target.value.split(',').map((word) => word.trim()).filter(Boolean)
        const isFine = words.every((word) => /^[1-9]\d*$/.test(word) && Number(word) <= TOKENS_MAX)
        const problem = isFine ? '' : `Enter whole numbers from 1 to ${TOKENS_MAX.toLocaleString()}.`
        target.setCustomValidity(problem)
        setProblem(tokens, problem || null)
        if (!isFine) return
        budgets = [...new Set(words)]
        write()
      },
    },
  }))
  return h('div', { class: 'form-grid' }, levels, tokens)
}
