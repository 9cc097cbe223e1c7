/** Which items a run takes, and how often each is asked. */

import { h } from '../../core/dom.js'
import { field, group } from './control.js'
import { COUNT, DEMO, ITEMS, SAMPLES, SEED } from './fields.js'
import { SHARES, valueAt } from './order.js'

/** Items of a new order by number. */
const COUNT_DEFAULT = 25

/**
 * Makes the fields.
 *
 * @param {import('./state.js').OrderState} state
 */
export function itemsFields(state) {
  const { order } = state
  const current = order.items ? 'items' : order.subset_count != null ? 'count' : String(order.subset_pct ?? 100)
  const shares = order.subset_pct == null || SHARES.includes(order.subset_pct) ? SHARES : [...SHARES, order.subset_pct].sort((a, b) => a - b)
  const plain = (/** @type {import('./fields.js').FieldSpec} */ spec) =>
    field(spec, valueAt(order, spec.name), (changed) => state.set(spec.name, changed))
  /** @type {number | undefined} */
  let count = order.subset_count ?? COUNT_DEFAULT
  let items = order.items
  const countField = field(COUNT, count, (value) => { count = /** @type {number | undefined} */ (value); state.set('subset_count', value) })
  const itemsField = field(ITEMS, items, (value) => { items = /** @type {string[] | undefined} */ (value); state.set('items', items ?? []) })
  const seed = plain(SEED)
  const show = (/** @type {string} */ choice) => {
    countField.hidden = choice !== 'count'
    itemsField.hidden = choice !== 'items'
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
  const option = (/** @type {string} */ value, /** @type {string} */ label) => h('label', { class: 'segment' },
    h('input', { type: 'radio', name: 'subset', value, '.checked': value === current, on: { change: () => choose(value) } }),
    h('span', null, label))
  return group('Items and samples',
    h('div', { class: 'form-field form-wide', dataset: { path: 'subset', paths: 'subset_pct' } },
      h('div', { class: 'segments', role: 'radiogroup', 'aria-label': 'Items of each benchmark' },
        shares.map((share) => option(String(share), share === 100 ? 'All items' : `${share}%`)),
        option('count', 'Number'), option('items', 'By id')),
      h('p', { class: 'form-problem', hidden: true })),
    h('div', { class: 'form-grid' }, countField, itemsField, seed, plain(SAMPLES), plain(DEMO)))
}
