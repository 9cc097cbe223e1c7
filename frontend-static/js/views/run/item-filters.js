/** Filters of the table of samples; their state is in the address. */

import { field, h, replace } from '../../core/dom.js'
import { integer } from '../../core/format.js'
import { OPEN, OUTCOME_NAMES, outcomeOf } from '../../core/outcomes.js'
import { NOT_ENDED } from './item-list.js'

/** Milliseconds without a key press after which a typed text is used. */
const TYPING_MS = 200

/**
 * @param {{query: typeof import('../../core/router.js').query, changed: () => void}} options
 */
export function itemFilters({ query, changed }) {
  const text = h('input', { type: 'search', spellcheck: 'false', autocomplete: 'off' })
  const outcome = h('select', null)
  const group = h('select', null)
  const hint = h('p', { class: 'hint' })
  const textField = field('Find', text)
  const element = h('form', { class: 'filters', 'aria-label': 'Filter samples' },
    h('div', { class: 'grow' }, textField), field('Outcome', outcome), field('Group', group), hint)
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const write = () => { query.set({ q: text.value.trim(), outcome: outcome.value, group: group.value }); changed() }
  element.addEventListener('submit', (event) => { event.preventDefault(); write() })
  element.addEventListener('input', (event) => {
    clearTimeout(timer)
    timer = setTimeout(write, event.target === text ? TYPING_MS : 0)
  })
  return {
    element,
    /**
     * Offers the choices that the rows have, with their counts.
     *
     * @param {import('../../core/source.js').IndexRow[] | null} rows null if there is no index
     * @param {boolean} hidden true if answers are left out
     * @param {string[]} [groupNames] groups without counts, if there is no index
     */
    setChoices(rows, hidden, groupNames = []) {
      text.placeholder = rows ? 'Id, group or answer' : 'Id of the dataset, or #row'
      hint.textContent = hidden ? 'The dataset is gated: answers are shown to the run\'s owner only.' : ''
      hint.hidden = !hidden
      const outcomes = counted(rows?.map((row) => row.outcome ?? NOT_ENDED))
      const names = rows ? [...OUTCOME_NAMES, NOT_ENDED].filter((name) => outcomes.has(name)) : OUTCOME_NAMES
      fill(outcome, 'All outcomes', names.map((name) => [name, label(name === NOT_ENDED ? OPEN.label : outcomeOf(name).label, outcomes.get(name))]), query.get('outcome') ?? '')
      const groups = counted(rows?.flatMap((row) => row.group ?? []))
      const all = rows ? [...groups.keys()].sort((a, b) => a.localeCompare(b)) : groupNames
      fill(group, 'All groups', all.map((name) => [name, label(name, groups.get(name))]), query.get('group') ?? '')
      if (group.parentElement) group.parentElement.hidden = all.length === 0
      text.value = query.get('q') ?? ''
    },
  }
}

/**
 * @param {string} text
 * @param {number | undefined} count
 */
function label(text, count) {
  return count === undefined ? text : `${text} (${integer(count)})`
}

/** @param {string[]} [values] */
function counted(values = []) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/**
 * @param {HTMLSelectElement} select
 * @param {string} all
 * @param {[string, string][]} options
 * @param {string} value
 */
function fill(select, all, options, value) {
  if (value && !options.some(([name]) => name === value)) options = [...options, [value, value.split(',').map((name) => outcomeOf(name).label).join(', ')]]
  replace(select, h('option', { value: '' }, all), options.map(([name, text]) => h('option', { value: name }, text)))
  select.value = value
}
