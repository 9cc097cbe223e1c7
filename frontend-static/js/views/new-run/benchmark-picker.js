/** Benchmarks by category, each with its size and with an estimate of its time, tokens and cost. */

import { h, replace } from '../../core/dom.js'
import { integer, plural } from '../../core/format.js'
import { path } from '../../core/router.js'
import { hasConversations } from '../../core/agents.js'
import { benchmarkSettings } from './benchmark-settings.js'
import { estimateText } from './estimate-text.js'
import { group } from './control.js'
import { rich } from './text.js'

/**
 * Groups benchmarks by category, in the order of the API.
 *
 * @param {Api.BenchmarkView[]} benchmarks
 * @returns {Map<string, Api.BenchmarkView[]>}
 */
export function byCategory(benchmarks) {
  /** @type {Map<string, Api.BenchmarkView[]>} */
  const groups = new Map()
  for (const benchmark of benchmarks) {
    const name = categoryLabel(benchmark)
    groups.set(name, [...(groups.get(name) ?? []), benchmark])
  }
  return groups
}

/**
 * Returns a benchmark's category in sentence case: the compatible API writes `Core Benchmarks`. Abbreviations stay.
 *
 * @param {Api.BenchmarkView} benchmark
 */
export function categoryLabel({ category }) {
  return (category ?? 'Other').replace(/(?<=\s)\p{Lu}(?=\p{Ll})/gu, (letter) => letter.toLowerCase())
}

/**
 * Makes the fields.
 *
 * @param {Api.BenchmarkView[]} benchmarks
 * @param {import('./state.js').OrderState} state
 */
export function benchmarkPicker(benchmarks, state) {
  const rows = new Map(benchmarks.map((benchmark) => [benchmark.name, new Row(benchmark, state)]))
  const selected = () => new Set(state.order.selected_benchmarks ?? [])
  state.addEventListener('change', () => {
    const names = selected()
    for (const [name, row] of rows) row.show(names.has(name))
  })
  state.addEventListener('estimates', () => { for (const row of rows.values()) row.showEstimate() })
  const setAll = (/** @type {Api.BenchmarkView[]} */ members, /** @type {boolean} */ isOn) => {
    const names = selected()
    for (const { name, is_enabled } of members) {
      if (isOn && is_enabled !== false) names.add(name)
      else names.delete(name)
    }
    state.set('selected_benchmarks', benchmarks.map(({ name }) => name).filter((name) => names.has(name)))
  }
  const groups = [...byCategory(benchmarks)].map(([category, members]) => group(
    h('span', null, category, ' ', h('span', { class: 'form-count' }, integer(members.length))),
    h('p', { class: 'form-tools' },
      h('button', { type: 'button', class: 'plain', on: { click: () => setAll(members, true) } }, 'Select all'),
      h('button', { type: 'button', class: 'plain', on: { click: () => setAll(members, false) } }, 'None')),
    members.map(({ name }) => rows.get(name)?.element)))
  return h('div', { class: 'benchmark-picker', dataset: { path: 'selected_benchmarks', paths: 'protocols' } },
    groups,
    benchmarks.length === 0 ? h('p', null, 'This server offers no benchmarks.') : null,
    h('p', { class: 'form-problem', id: 'benchmarks-problem', hidden: true }))
}

class Row {
  /**
   * @param {Api.BenchmarkView} benchmark
   * @param {import('./state.js').OrderState} state
   */
  constructor(benchmark, state) {
    this.benchmark = benchmark
    this.state = state
    const { name } = benchmark
    const id = `benchmark-${name}`
    this.box = h('input', {
      type: 'checkbox', id, name: 'selected_benchmarks', value: name, disabled: benchmark.is_enabled === false,
      'aria-describedby': `${id}-text ${id}-estimate`,
      on: { change: () => this.#toggle() },
    })
    this.estimate = h('p', { class: 'benchmark-estimate', id: `${id}-estimate` })
    this.settings = h('div', { class: 'benchmark-settings', hidden: true })
    this.element = h('div', { class: 'benchmark-row' },
      this.box,
      h('div', { class: 'benchmark-body' },
        h('label', { for: id, class: 'benchmark-name' }, benchmark.display_name ?? name, ' ', h('code', null, name)),
        h('p', { class: 'benchmark-text', id: `${id}-text` }, rich(benchmark.description ?? '')),
        badges(benchmark),
        this.settings),
      this.estimate)
    this.show((state.order.selected_benchmarks ?? []).includes(name))
    this.showEstimate()
  }

  /** @param {boolean} isSelected */
  show(isSelected) {
    this.box.checked = isSelected
    this.element.classList.toggle('selected', isSelected)
    if (isSelected && this.settings.childElementCount === 0) replace(this.settings, this.#tasks(), benchmarkSettings(this.benchmark, this.state))
    this.settings.hidden = !isSelected || this.settings.childElementCount === 0
  }

  /** Leads to the benchmark's programming tasks; null if it has none. */
  #tasks() {
    const { name, code_tasks: tasks } = this.benchmark
    return tasks > 0 ? h('p', { class: 'actions form-wide' },
      h('button', { type: 'button', class: 'button small', on: { click: () => this.state.dispatchEvent(new Event('choose-tasks')) } }, 'Choose tasks'),
      h('a', { href: `${path('benchmarks', name)}/tasks` }, `About the ${integer(tasks)} tasks`)) : null
  }

  showEstimate() {
    const found = this.state.estimates.get(this.benchmark.name)
    const total = this.state.order.demo ? this.benchmark.demo_items : this.benchmark.total_items
    replace(this.estimate, estimateText(found, total))
  }

  #toggle() {
    const names = new Set(this.state.order.selected_benchmarks ?? [])
    if (this.box.checked) names.add(this.benchmark.name)
    else names.delete(this.benchmark.name)
    this.state.set('selected_benchmarks', [...names])
  }
}

/** @param {Api.BenchmarkView} benchmark */
function badges(benchmark) {
  const protocol = benchmark.protocols?.[0]
  const marks = []
  if (benchmark.dataset?.gated) marks.push(['gated', 'Its terms must be accepted at the hub before the data can be downloaded'])
  if (benchmark.judged) marks.push(['needs a judge', 'A model grades the answers'])
  if (hasConversations(benchmark.name)) marks.push(['needs a user model', 'A model simulates users'])
  if (protocol?.sandbox) marks.push(['runs code', 'Answers are programs, run in a sandbox'])
  if (benchmark.samples_per_item > 1) marks.push([plural(benchmark.samples_per_item, 'sample') + ' per item',
    'How often each item is asked, unless you set it'])
  return h('div', { class: 'benchmark-notes' },
    marks.map(([text, title]) => h('span', { class: 'tag', title }, text)),
    benchmark.requires_setup && benchmark.setup_notes ? h('details', null, h('summary', null, 'Before the first run'),
      h('p', null, rich(benchmark.setup_notes))) : null)
}
