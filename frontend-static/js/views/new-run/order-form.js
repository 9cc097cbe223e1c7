/** The form of an order, for a new run and for a schedule. */

import { h, replace } from '../../core/dom.js'
import { withModule } from '../../core/states.js'
import { hasConversations } from '../../core/agents.js'
import { benchmarkPicker } from './benchmark-picker.js'
import { controlOf, field, optional, setProblem } from './control.js'
import { BUDGET, GENERATION, LABELS, LIMITS } from './fields.js'
import { itemsFields } from './items-fields.js'
import { judgeFields } from './judge-fields.js'
import { keyField, payerPhrase } from './key-fields.js'
import { modelPicker } from './model-picker.js'
import { valueAt } from './order.js'
import { fieldAt, problemsOf } from './problems.js'
import { REASONING } from './state.js'

/**
 * Makes the sections of the form.
 *
 * @param {object} options
 * @param {import('./state.js').OrderState} options.state
 * @param {Api.BenchmarkView[]} options.benchmarks
 * @param {AbortSignal} options.signal
 * @param {string} [options.payer] what the key pays for
 * @param {boolean} [options.isSweep] true lets the form order several runs: models and thinking levels
 * @param {boolean} [options.hasName] false leaves the name out of the labels
 * @param {HTMLElement[]} [options.subject] sections instead of those that choose model, benchmarks, items and judge
 * @returns {HTMLElement[]}
 */
export function orderSections({ state, benchmarks, signal, payer, hasName = true, isSweep = false, subject }) {
  const plain = (/** @type {import('./fields.js').FieldSpec} */ spec) =>
    field(spec, valueAt(state.order, spec.name), (value) => state.set(spec.name, value))
  const labels = hasName ? LABELS : LABELS.filter(({ name }) => name !== 'name')
  const parts = subject ?? [
    h('div', { class: 'form-section form-model' }, modelPicker({
      path: 'model_id', label: 'Model', value: state.order.model_id ?? '', placeholder: 'Search by name or provider', signal,
      hint: 'A model that isn’t listed can be typed as PROVIDER/NAME.',
      changed: (value) => state.set('model_id', value),
    }), isSweep && sweepPart(state, signal)),
    h('section', { class: 'form-part', 'aria-label': 'Benchmarks' }, benchmarkPicker(benchmarks, state)),
    itemsFields(state, { benchmarks, signal }),
    judgeFields(benchmarks, state, signal), userPart(benchmarks, state, signal),
  ]
  return [
    ...parts,
    generationSection(state, plain),
    counted('Budget and limits', 'none', [...BUDGET, ...LIMITS], state, plain),
    counted(hasName ? 'Name, tags, visibility' : 'Tags, visibility', 'for people and lists', labels, state, plain),
    optional('Key', payerPhrase(state, signal), false, keyField(state, { what: payer, signal })),
  ]
}

/**
 * Makes the place of further models and thinking levels, which are loaded when it is opened. It is open if the form has some.
 *
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
function sweepPart(state, signal) {
  const body = h('div', { class: 'sweep-fields' })
  const { models, levels } = state.sweep
  const element = h('details', { class: 'form-sweep', open: models.length + levels.length > 0 }, h('summary', null, 'Several models or thinking levels'), body)
  element.addEventListener('toggle', () => void withModule(() => import('./models-fields.js'), ({ sweepFields }) => replace(body, sweepFields(state, signal))), { once: true })
  return element
}

/**
 * Makes the place of the user model, whose fields are loaded when a selected benchmark needs one.
 *
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {import('./state.js').OrderState} state
 * @param {AbortSignal} signal
 */
function userPart(benchmarks, state, signal) {
  const place = h('div', { class: 'form-place' })
  let isLoading = false
  const show = () => {
    if (isLoading || !state.order.selected_benchmarks?.some(hasConversations)) return
    isLoading = true
    void withModule(() => import('./user-fields.js'), ({ userFields }) => replace(place, userFields(benchmarks, state, signal)))
  }
  state.addEventListener('change', show)
  show()
  return place
}

/**
 * Makes the section of generation settings, without those that thinking levels replace while some are chosen.
 *
 * @param {import('./state.js').OrderState} state
 * @param {(spec: import('./fields.js').FieldSpec) => HTMLElement} draw
 */
function generationSection(state, draw) {
  /** @type {HTMLElement[]} */
  const replaced = []
  const section = counted('Generation settings', 'the benchmark’s own', GENERATION, state, (spec) => {
    const element = draw(spec)
    if (REASONING.includes(spec.name)) replaced.push(element)
    return element
  })
  const show = () => { for (const element of replaced) element.hidden = state.sweep.levels.length > 0 }
  state.addEventListener('change', show)
  show()
  return section
}

/**
 * Makes an optional section whose summary names the fields that are set.
 *
 * @param {string} title
 * @param {string} nothing summary if none is
 * @param {import('./fields.js').FieldSpec[]} specs
 * @param {import('./state.js').OrderState} state
 * @param {(spec: import('./fields.js').FieldSpec) => HTMLElement} draw
 */
function counted(title, nothing, specs, state, draw) {
  const isReplaced = (/** @type {string} */ name) => state.sweep.levels.length > 0 && REASONING.includes(name)
  const text = () => specs.filter(({ name }) => valueAt(state.order, name) !== undefined && !isReplaced(name)).map(({ label }) => label).join(', ')
  const section = optional(title, text() || nothing, text() !== '', specs.map(draw))
  const summary = /** @type {Element} */ (section.querySelector('.form-summary'))
  state.addEventListener('change', () => { summary.textContent = text() || nothing })
  return section
}

/**
 * Shows an error at the fields that it names, moves the focus to the first of them, and returns what has no field.
 *
 * @param {Element} form
 * @param {Error} error
 * @returns {string[]} sentences without a field
 */
export function showProblems(form, error) {
  clearProblems(form)
  const rest = []
  let first = null
  for (const { path, text } of problemsOf(error)) {
    const element = path ? fieldAt(form, path) : null
    if (!element) { rest.push(path ? `${path}: ${text}` : text); continue }
    for (let around = element.closest('details'); around; around = around.parentElement?.closest('details') ?? null) around.open = true
    setProblem(element, text)
    first ??= element
  }
  if (first) {
    const control = controlOf(first)
    control?.focus({ preventScroll: true })
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches
    first.scrollIntoView({ block: 'center', behavior: isCalm ? 'instant' : 'smooth' })
  }
  return rest
}

/**
 * Removes all problems but those of texts that can't be parsed.
 *
 * @param {Element} form
 */
export function clearProblems(form) {
  for (const element of form.querySelectorAll('[data-path]')) {
    const control = /** @type {HTMLInputElement | null} */ (element.querySelector(':invalid'))
    setProblem(element, control?.validationMessage ?? null)
  }
}

/**
 * Moves the focus to the first text that can't be parsed.
 *
 * @param {Element} form
 * @returns {boolean} false if there is none
 */
export function focusInvalid(form) {
  const control = /** @type {HTMLElement | null} */ (form.querySelector('.form-control:invalid'))
  for (let around = control?.closest('details'); around; around = around.parentElement?.closest('details')) around.open = true
  control?.focus()
  return control !== null
}
