/** Which items a run takes, and how often each is asked. */

import { h } from '../../core/dom.js'
import { withModule } from '../../core/states.js'
import { field, group } from './control.js'
import { COUNT, DEMO, ITEMS, SAMPLES, SEED } from './fields.js'
import { SHARES, valueAt } from './order.js'

/** Items of a new order by number. */
const COUNT_DEFAULT = 25

/**
 * Makes the fields.
 *
 * @param {import('./state.js').OrderState} state
 * @param {{benchmarks: Api.BenchmarkView[], signal: AbortSignal}} options
 */
export function itemsFields(state, { benchmarks, signal }) {
  const { order } = state
  const current = order.items ? 'items' : order.subset_count != null ? 'count' : String(order.subset_pct ?? 100)
  const shares = order.subset_pct == null || SHARES.includes(order.subset_pct) ? SHARES : [...SHARES, order.subset_pct].sort((a, b) => a - b)
  const plain = (/** @type {import('./fields.js').FieldSpec} */ spec) =>
    field(spec, valueAt(order, spec.name), (changed) => state.set(spec.name, changed))
  /** @type {number | undefined} */
  let count = order.subset_count ?? COUNT_DEFAULT
  let items = order.items
  const countField = field(COUNT, count, (value) => { count = /** @type {number | undefined} */ (value); state.set('subset_count', value) })
  const itemsField = field(ITEMS, items, (value) => { items = /** @type {string[] | undefined} */ (value); state.set('items', items ?? []); chooser?.show(items ?? []) })
  const withTasks = benchmarks.find(({ code_tasks: tasks }) => tasks > 0)
  const chooser = withTasks && taskChooser(withTasks, {
    items: () => items ?? [], signal,
    changed: (chosen) => {
      items = chosen
      const control = /** @type {HTMLTextAreaElement} */ (itemsField.querySelector('textarea'))
      control.value = chosen.join('\n')
      state.set('items', chosen)
    },
  })
  const seed = plain(SEED)
  const show = (/** @type {string} */ choice) => {
    countField.hidden = choice !== 'count'
    itemsField.hidden = choice !== 'items'
    if (chooser) chooser.element.hidden = choice !== 'items' || !(order.selected_benchmarks ?? []).includes(withTasks?.name ?? '')
    seed.hidden = choice === 'items' || choice === '100'
  }
  const choose = (/** @type {string} */ choice) => {
    for (const name of /** @type {const} */ (['subset_pct', 'subset_count', 'items'])) delete order[name]
    if (choice === 'count') order.subset_count = count
    else if (choice === 'items') order.items = items ?? []
    else order.subset_pct = Number(choice)
    show(choice)
    state.changed('subset')
  }
  show(current)
  const selected = () => /** @type {HTMLInputElement | null} */ (element.querySelector('[name="subset"]:checked'))?.value ?? current
  state.addEventListener('change', () => show(selected()))
  state.addEventListener('choose-tasks', () => {
    const radio = /** @type {HTMLInputElement} */ (element.querySelector('[name="subset"][value="items"]'))
    radio.checked = true
    if (!order.items) choose('items')
    chooser?.open()
  })
  const option = (/** @type {string} */ value, /** @type {string} */ label) => h('label', { class: 'segment' },
    h('input', { type: 'radio', name: 'subset', value, '.checked': value === current, on: { change: () => choose(value) } }),
    h('span', null, label))
  const element = group('Items and samples',
    h('div', { class: 'form-field form-wide', dataset: { path: 'subset', paths: 'subset_pct' } },
      h('div', { class: 'segments', role: 'radiogroup', 'aria-label': 'Items of each benchmark' },
        shares.map((share) => option(String(share), share === 100 ? 'All items' : `${share}%`)),
        option('count', 'Number'), option('items', 'By id')),
      h('p', { class: 'form-problem', hidden: true })),
    h('div', { class: 'form-grid' }, countField, itemsField, chooser?.element, seed, plain(SAMPLES), plain(DEMO)))
  return element
}

/**
 * Makes the place where programming tasks of a benchmark are chosen, which loads them when it is opened.
 *
 * @param {Api.BenchmarkView} benchmark
 * @param {{items: () => string[], changed: (items: string[]) => void, signal: AbortSignal}} options
 */
function taskChooser({ name, code_tasks: tasks }, { items, changed, signal }) {
  /** @type {((items: string[]) => void) | null} */
  let refresh = null
  const body = h('div', null)
  const summary = h('summary', null, 'Choose among the ', `${tasks} tasks of `, h('code', null, name))
  const element = h('details', { class: 'form-wide task-chooser' }, summary, body)
  element.addEventListener('toggle', () => void withModule(() => import('./task-chooser.js'), async ({ showTaskChooser }) => {
    refresh = await showTaskChooser(body, { benchmark: name, items: items(), changed, signal })
  }), { once: true })
  return {
    element,
    show: (/** @type {string[]} */ chosen) => refresh?.(chosen),
    open: () => {
      element.open = true
      summary.focus({ preventScroll: true })
      element.scrollIntoView({ block: 'nearest' })
    },
  }
}
