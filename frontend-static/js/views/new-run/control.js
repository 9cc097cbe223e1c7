/** Labeled controls of the form, each with its hint and with room for the problem that the API names. */

import { h, uniqueId } from '../../core/dom.js'
import { format, parse } from './fields.js'

/** @typedef {import('../../core/dom.js').Child} Child */
/** @typedef {import('./fields.js').FieldValue} FieldValue */

/**
 * Frames a control with its label, hint and problem. Errors are found by `path`.
 *
 * @param {{path: string, label: string, hint?: Child, isGroup?: boolean, wide?: boolean}} spec
 * @param {(ids: {id: string, describedBy: string}) => Child} draw makes the control
 */
export function framed(spec, draw) {
  const id = uniqueId('field')
  const describedBy = [spec.hint && `${id}-hint`, `${id}-problem`].filter(Boolean).join(' ')
  const label = spec.isGroup
    ? h('span', { class: 'form-label', id: `${id}-label` }, spec.label)
    : h('label', { class: 'form-label', for: id }, spec.label)
  return h('div', { class: spec.wide ? 'form-field form-wide' : 'form-field', dataset: { path: spec.path } },
    label,
    draw({ id, describedBy }),
    spec.hint ? h('p', { class: 'form-hint', id: `${id}-hint` }, spec.hint) : null,
    h('p', { class: 'form-problem', id: `${id}-problem`, hidden: true }))
}

/**
 * Draws a plain field.
 *
 * @param {import('./fields.js').FieldSpec} spec
 * @param {FieldValue | null | undefined} value
 * @param {(value: FieldValue | undefined) => void} changed gets undefined for an empty control, and for text that can't be parsed, which makes the control invalid
 */
export function field(spec, value, changed) {
  if (spec.kind === 'switch') return switchField(spec, value, changed)
  if (spec.kind === 'choices') return choicesField(spec, Array.isArray(value) ? value : [], changed)
  const isWide = ['lines', 'long', 'json'].includes(spec.kind)
  const element = framed({ path: spec.name, label: spec.label, hint: spec.hint, wide: isWide }, ({ id, describedBy }) => {
    const read = (/** @type {Event} */ event) => {
      const control = /** @type {HTMLInputElement} */ (event.target)
      const { value: parsed, problem } = parse(spec, control.value)
      control.setCustomValidity(problem ?? '')
      setProblem(element, problem ?? null)
      changed(parsed)
    }
    const common = { id, name: spec.name, 'aria-describedby': describedBy, on: { input: read, change: read } }
    const text = format(spec, value)
    if (spec.kind === 'choice') return select(common, spec.values ?? [], text || (spec.initial ?? ''), {}, spec.initial ? '' : undefined)
    if (isWide) return h('textarea',
      { ...common, class: 'form-control', rows: spec.kind === 'json' ? 2 : 3, placeholder: spec.placeholder, spellcheck: 'false', '.value': text })
    const isNumber = spec.kind === 'integer' || spec.kind === 'number'
    return h('input', {
      ...common, class: isNumber ? 'form-control form-number' : 'form-control', type: 'text', autocomplete: 'off',
      inputmode: isNumber ? (spec.kind === 'integer' ? 'numeric' : 'decimal') : null,
      placeholder: spec.placeholder ?? null, spellcheck: 'false', '.value': text,
    })
  })
  return element
}

/**
 * @param {object} attributes
 * @param {string[]} values
 * @param {string} current
 */
export function select(attributes, values, current, labels = /** @type {Record<string, string>} */ ({}), empty = 'default') {
  return h('select', { class: 'form-control', ...attributes },
    empty === '' ? null : h('option', { value: '', selected: current === '' }, empty),
    values.map((value) => h('option', { value, selected: value === current }, labels[value] ?? value)))
}

/**
 * @param {import('./fields.js').FieldSpec} spec
 * @param {FieldValue | null | undefined} value
 * @param {(value: FieldValue | undefined) => void} changed
 */
function switchField(spec, value, changed) {
  const id = uniqueId('field')
  return h('div', { class: 'form-field form-switch', dataset: { path: spec.name } },
    h('input', {
      type: 'checkbox', id, name: spec.name, '.checked': value === true, 'aria-describedby': `${id}-hint ${id}-problem`,
      on: { change: (/** @type {Event & {target: HTMLInputElement}} */ event) => changed(event.target.checked ? true : undefined) },
    }),
    h('label', { for: id }, spec.label),
    spec.hint ? h('p', { class: 'form-hint', id: `${id}-hint` }, spec.hint) : null,
    h('p', { class: 'form-problem', id: `${id}-problem`, hidden: true }))
}

/**
 * @param {import('./fields.js').FieldSpec} spec
 * @param {string[]} value
 * @param {(value: string[] | undefined) => void} changed
 */
function choicesField(spec, value, changed) {
  const chosen = new Set(value)
  return framed({ path: spec.name, label: spec.label, hint: spec.hint, isGroup: true }, ({ id, describedBy }) =>
    h('div', { class: 'form-choices', role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': describedBy },
      (spec.values ?? []).map((entry) => h('label', null,
        h('input', {
          type: 'checkbox', name: spec.name, value: entry, '.checked': chosen.has(entry),
          on: {
            change: (/** @type {Event & {target: HTMLInputElement}} */ event) => {
              if (event.target.checked) chosen.add(entry)
              else chosen.delete(entry)
              changed(chosen.size > 0 ? (spec.values ?? []).filter((each) => chosen.has(each)) : undefined)
            },
          },
        }), ' ', h('code', null, entry)))))
}

/**
 * Shows a problem at a field, or removes it.
 *
 * @param {Element} element a field
 * @param {string | null} text
 */
export function setProblem(element, text) {
  const slot = /** @type {HTMLElement | null} */ (element.querySelector('.form-problem'))
  if (slot) {
    slot.textContent = text ?? ''
    slot.hidden = !text
  }
  const control = controlOf(element)
  if (text) control?.setAttribute('aria-invalid', 'true')
  else control?.removeAttribute('aria-invalid')
}

/**
 * Returns the control of a field that takes the focus.
 *
 * @param {Element} element
 * @returns {HTMLElement | null}
 */
export function controlOf(element) {
  return element.querySelector('input:checked, input, select, textarea, button')
}

/**
 * Draws a group of optional fields, which is closed while none of them is set.
 *
 * @param {string} title
 * @param {string | HTMLElement} summary one phrase about what is inside
 * @param {boolean} isOpen
 * @param {...Child} children
 */
export function optional(title, summary, isOpen, ...children) {
  return h('details', { class: 'form-section form-optional', open: isOpen },
    h('summary', null, h('span', { class: 'form-legend', role: 'heading', 'aria-level': '2' }, title), ' ',
      h('span', { class: 'form-summary' }, summary)),
    h('div', { class: 'form-grid' }, children))
}

/**
 * Draws a group of fields.
 *
 * @param {Child} title
 * @param {...Child} children
 */
export function group(title, ...children) {
  return h('fieldset', { class: 'form-section' }, h('legend', { class: 'form-legend' }, title), children)
}
