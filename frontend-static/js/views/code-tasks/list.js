/** Programming tasks with filters, search and a choice of some of them. Tasks may be anyone's, so their texts are only text. */

import { h, replace, setText, uniqueId } from '../../core/dom.js'
import { bytes, integer, none, plural } from '../../core/format.js'
import { path } from '../../core/router.js'

/** @typedef {Api.CodeTaskView} Task */
/** @typedef {{q?: string, language?: string, type?: string, difficulty?: string}} Filters */

/** Filters with a list of values: name, label, value of a task, and the value's text. @type {['language' | 'type' | 'difficulty', string, (task: Task) => string, (task: Task) => string][]} */
const CHOICES = [
  ['language', 'Language', (task) => task.language, (task) => task.language_name],
  ['type', 'Type', (task) => task.type, (task) => words(task.type)],
  ['difficulty', 'Difficulty', (task) => task.difficulty, (task) => words(task.difficulty)],
]

/**
 * Writes a name of the metadata, such as `bug_fix`, as words.
 *
 * @param {string} name
 */
export function words(name) {
  return name.replaceAll('_', ' ') || none
}

/**
 * Makes the list.
 *
 * @param {object} options
 * @param {string} options.benchmark
 * @param {Task[]} options.tasks
 * @param {Set<string>} options.chosen ids of the chosen tasks; the list changes it
 * @param {() => void} options.changed called after a change of the choice
 * @param {boolean} [options.isCompact] leaves out what helps to read rather than to choose
 * @param {Filters} [options.filters] at first
 * @param {(filters: Filters) => void} [options.filtered] called after a change of the filters
 * @returns {{element: HTMLElement, refresh: () => void}} `refresh` shows a choice that was changed elsewhere
 */
export function codeTaskList({ benchmark, tasks, chosen, changed, isCompact = false, filters = {}, filtered }) {
  const current = { ...filters }
  const rows = tasks.map((task) => new Row(task, { benchmark, isCompact, toggle: (isOn) => { set([task], isOn); changed() } }))
  const set = (/** @type {Task[]} */ some, /** @type {boolean} */ isOn) => {
    for (const { task_id: id } of some) isOn ? chosen.add(id) : chosen.delete(id)
  }
  const shown = () => rows.filter(({ element }) => !element.hidden)
  const count = h('p', { class: 'sub', role: 'status' })
  const nothing = h('p', { class: 'state', hidden: true }, 'No task matches. The search looks at names and tags.')
  const all = h('button', { type: 'button', class: 'button small', on: { click: () => choose(true) } }, 'Select all shown')
  const clear = h('button', { type: 'button', class: 'button small', on: { click: () => choose(false) } }, 'Select none')
  const choose = (/** @type {boolean} */ isOn) => {
    set(isOn ? shown().map(({ task }) => task) : tasks, isOn)
    refresh()
    changed()
  }
  const table = h('table', { class: `code-tasks${isCompact ? ' compact' : ''}`, 'aria-label': 'Programming tasks' },
    h('thead', null, h('tr', null,
      h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Chosen')),
      ['Task', 'Language', 'Type', 'Difficulty', 'Tests', 'Code', ...(isCompact ? [] : ['Proof'])].map((name) =>
        h('th', { scope: 'col', class: name === 'Tests' || name === 'Code' ? 'number' : null }, name)))),
    h('tbody', null, rows.map(({ element }) => element)))
  const filter = () => {
    for (const row of rows) row.element.hidden = !matches(row.task, current)
    const visible = shown().length
    nothing.hidden = visible > 0
    table.hidden = visible === 0
    all.disabled = visible === 0
    setText(count, visible === tasks.length ? plural(tasks.length, 'task') : `${plural(visible, 'task')} of ${integer(tasks.length)} match`)
  }
  const refresh = () => { for (const row of rows) row.box.checked = chosen.has(row.task.task_id) }
  const change = (/** @type {keyof Filters} */ name, /** @type {string} */ value) => {
    current[name] = value
    filter()
    filtered?.(current)
  }
  filter()
  refresh()
  return {
    element: h('div', { class: 'code-task-list' },
      h('div', { class: 'filters', role: 'search', 'aria-label': 'Filter tasks' },
        h('div', { class: 'field grow' }, ...searchField(current.q ?? '', (text) => change('q', text))),
        CHOICES.map(([name, label, valueOf, textOf]) => h('div', { class: 'field' },
          ...choiceField(label, valuesOf(tasks, valueOf, textOf), current[name] ?? '', (value) => change(name, value))))),
      h('div', { class: 'section-head' }, count, h('span', { class: 'actions' }, all, clear)), table, nothing),
    refresh,
  }
}

/**
 * @param {Task} task
 * @param {Filters} filters
 */
function matches(task, { q = '', ...filters }) {
  const text = q.trim().toLowerCase()
  return [task.task_id, ...task.tags].some((part) => part.toLowerCase().includes(text)) &&
    CHOICES.every(([name, , valueOf]) => !filters[name] || valueOf(task) === filters[name])
}

/**
 * Returns the values that tasks have, each with its text and the number of tasks, in the order of the texts.
 *
 * @param {Task[]} tasks
 * @param {(task: Task) => string} valueOf
 * @param {(task: Task) => string} textOf
 */
function valuesOf(tasks, valueOf, textOf) {
  /** @type {Map<string, {text: string, count: number}>} */
  const found = new Map()
  for (const task of tasks) found.set(valueOf(task), { text: textOf(task), count: (found.get(valueOf(task))?.count ?? 0) + 1 })
  return [...found].filter(([value]) => value !== '').sort(([, a], [, b]) => a.text.localeCompare(b.text))
}

/**
 * @param {string} value
 * @param {(text: string) => void} changed
 */
function searchField(value, changed) {
  const id = uniqueId('code-task-search')
  return [h('label', { for: id }, 'Search'), h('input', {
    id, type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'Name or tag', '.value': value,
    on: {
      input: (/** @type {Event & {target: HTMLInputElement}} */ event) => changed(event.target.value),
      // The list may be in a form, which Enter would send.
      keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter') event.preventDefault() },
    },
  })]
}

/**
 * @param {string} label
 * @param {[string, {text: string, count: number}][]} values
 * @param {string} current
 * @param {(value: string) => void} changed
 */
function choiceField(label, values, current, changed) {
  const id = uniqueId('code-task-filter')
  const known = values.some(([value]) => value === current)
  return [h('label', { for: id }, label), h('select', {
    id, on: { change: (/** @type {Event & {target: HTMLSelectElement}} */ event) => changed(event.target.value) },
  }, h('option', { value: '' }, 'All'), values.map(([value, { text, count }]) =>
    h('option', { value, selected: value === current }, `${text} (${integer(count)})`)),
  current && !known && h('option', { value: current, selected: true }, current))]
}

class Row {
  /**
   * @param {Task} task
   * @param {{benchmark: string, isCompact: boolean, toggle: (isOn: boolean) => void}} options
   */
  constructor(task, { benchmark, isCompact, toggle }) {
    this.task = task
    this.box = h('input', {
      type: 'checkbox', 'aria-label': `Choose ${task.task_id}`,
      on: { change: (/** @type {Event & {target: HTMLInputElement}} */ event) => toggle(event.target.checked) },
    })
    const cell = (/** @type {string} */ label, /** @type {import('../../core/dom.js').Child} */ child, /** @type {string} */ name = '') =>
      h('td', { dataset: { label }, class: name || null }, child)
    this.element = h('tr', null,
      h('td', { class: 'select' }, this.box),
      h('th', { scope: 'row' }, h('a', { href: path('benchmarks', benchmark, 'tasks', task.task_id) }, task.task_id),
        task.tags.length > 0 && h('span', { class: 'tags' }, task.tags.map((tag) => h('span', { class: 'tag' }, tag)))),
      cell('Language', task.language_name), cell('Type', words(task.type)), cell('Difficulty', words(task.difficulty)),
      cell('Tests', task.tests === null ? none : integer(task.tests), 'number'),
      cell('Code', [plural(task.lines, 'line'), h('small', null, `${plural(task.files, 'file')}, ${bytes(task.bytes)}`)], 'number'),
      !isCompact && cell('Proof', proofDetails(task)))
  }
}

/**
 * Shows a task's proof: in a few words, and opened, how its wrong solutions fail.
 *
 * @param {Task} task
 */
function proofDetails({ task_id: id, digest, proof }) {
  if (!proof) return h('span', { class: 'caution' }, 'not proven')
  const body = h('div', { class: 'code-task-proof' })
  const details = h('details', null,
    h('summary', { 'aria-label': `Proof of ${id}: ${proofInWords(proof)}` }, proofInWords(proof)), body)
  // Rows are many, and few are opened.
  details.addEventListener('toggle', () => replace(body, wrongSolutions(proof), h('p', { class: 'dim' }, 'Digest ', h('code', { title: digest }, digest.slice(0, 12)))))
  return details
}

/** @param {Api.AdmissionProofView} proof */
function proofInWords({ repeats, wrong }) {
  return `passed ${integer(repeats)}×, ${plural(wrong.length, 'wrong solution')} refused`
}

/**
 * Lists wrong solutions with their mistakes.
 *
 * @param {Api.AdmissionProofView} proof
 * @param {{hasTests?: boolean}} [options] `hasTests` names the tests that each fails
 */
export function wrongSolutions({ wrong }, { hasTests = false } = {}) {
  return h('ul', { class: 'wrong-solutions' }, wrong.map(({ name, why, fails }) => h('li', null,
    h('strong', null, words(name).replaceAll('-', ' ')), why && `: ${why}`, ' ',
    h('span', { class: 'dim' }, `fails ${plural(fails.length, 'test')}`),
    hasTests && h('ul', null, fails.map((test) => h('li', null, h('code', null, test)))))))
}
