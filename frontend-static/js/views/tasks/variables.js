/** Fields for the variables of an order: those that a custom agent needs, and others that a task or an agent asks for. */

import { field, h, replace, uniqueId } from '../../core/dom.js'

/** Name of the benchmark whose items are tasks. */
export const TERMINAL_TASKS = 'terminal_tasks'
/** Beginning of the names of the benchmark's options that are variables. */
const PREFIX = 'env.'
/** Names that the server accepts. */
const NAME = '[A-Za-z0-9_]{1,64}'

/**
 * Returns the variables among the options of a benchmark, by name.
 *
 * @param {Record<string, string>} options
 * @returns {Record<string, string>}
 */
export function variablesOf(options) {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name.startsWith(PREFIX)).map(([name, value]) => [name.slice(PREFIX.length), value]))
}

/**
 * Makes the fields.
 *
 * @param {Record<string, string>} given values that are shown first
 * @param {() => void} changed called when a name or a value has changed
 */
export function variableFields(given, changed) {
  /** Inputs of the variables that the agent needs. @type {Map<string, HTMLInputElement>} */
  let needed = new Map()
  /** Values of all variables that were needed, so that they come back with the agent. */
  const kept = new Map(Object.entries(given))
  /** @type {{name: HTMLInputElement, value: HTMLInputElement, element: HTMLElement}[]} */
  let rows = []
  const own = h('div', { class: 'variables-needed' })
  const others = h('div', { class: 'variables-added' })
  const note = h('p', { class: 'note warn', hidden: true },
    'Values are stored with the run as they are: all who see the run or its archive can read them. Enter no keys and no passwords.')
  const add = h('button', { type: 'button', class: 'button small', on: { click: () => { addRow('', '').name.focus(); update() } } }, 'Add a variable')
  const element = h('fieldset', { class: 'variables' }, h('legend', { class: 'visually-hidden' }, 'Variables'), note, own, others, h('p', { class: 'actions' }, add))
  const update = () => {
    note.hidden = needed.size + rows.length === 0
    changed()
  }
  const text = (/** @type {Record<string, unknown>} */ attributes) => h('input', {
    type: 'text', class: 'form-control', required: true, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', on: { input: changed }, ...attributes,
  })
  const addRow = (/** @type {string} */ first, /** @type {string} */ firstValue) => {
    const id = uniqueId('variable')
    const name = text({ 'aria-label': 'Name of the variable', placeholder: 'NAME', pattern: NAME, title: 'Up to 64 letters, digits and _', '.value': first })
    const value = text({ 'aria-label': 'Value of the variable', placeholder: 'value', '.value': firstValue })
    const remove = h('button', { type: 'button', class: 'button small', 'aria-label': 'Remove the variable', on: { click: () => { removeRow(id); add.focus(); update() } } }, 'Remove')
    const row = { name, value, element: h('div', { class: 'variable', id }, name, h('span', { 'aria-hidden': 'true' }, '='), value, remove) }
    rows.push(row)
    others.append(row.element)
    return row
  }
  const removeRow = (/** @type {string} */ id) => {
    rows.find((row) => row.element.id === id)?.element.remove()
    rows = rows.filter((row) => row.element.id !== id)
  }
  for (const [name, value] of Object.entries(given)) addRow(name, value)
  note.hidden = rows.length === 0
  return {
    element,
    /**
     * Shows a required field for each of these variables, in the place of one that was added with the same name.
     *
     * @param {string[]} names
     */
    need(names) {
      if (names.length === needed.size && names.every((name) => needed.has(name))) return
      for (const [name, input] of needed) kept.set(name, input.value)
      for (const row of rows.filter(({ name }) => names.includes(name.value))) {
        kept.set(row.name.value, row.value.value)
        removeRow(row.element.id)
      }
      needed = new Map(names.map((name) => [name, text({ name: `${PREFIX}${name}`, '.value': kept.get(name) ?? '' })]))
      replace(own, [...needed].map(([name, input]) => field(`${name} (required)`, input)))
      update()
    },
    /** Returns the options of the benchmark that give the variables. */
    options() {
      const pairs = [...[...needed].map(([name, input]) => [name, input.value]), ...rows.map(({ name, value }) => [name.value, value.value])]
      return Object.fromEntries(pairs.map(([name, value]) => [name.trim(), value.trim()]).filter(([name, value]) => name !== '' && value !== '')
        .map(([name, value]) => [`${PREFIX}${name}`, value]))
    },
  }
}
