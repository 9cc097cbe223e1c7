/** Items one by one: where runs disagree, and which items only some of them have. */

import { h } from '../../core/dom.js'
import { integer, plural } from '../../core/format.js'
import { outcomeMark } from '../../core/outcomes.js'
import { windowedTable } from '../../components/table.js'
import { sideBySide } from './side-by-side.js'
import { isCommon, isGraded } from './statistics.js'

/** @typedef {import('./load.js').Compared} Compared */
/** @typedef {import('./statistics.js').PairedItem} PairedItem */

/**
 * Makes the list of items with its filters.
 *
 * @param {object} options
 * @param {Compared[]} options.shown Runs in the order of the items' sides.
 * @param {PairedItem[]} options.items
 * @param {string} options.name Benchmark.
 * @param {typeof import('../../core/router.js').query} options.query
 * @param {AbortSignal} options.signal
 * @param {(text: string) => void} options.announce
 */
export function disagreements({ shown, items, name, query, signal, announce }) {
  const kinds = kindsOf(shown, items)
  const groups = [...new Set(items.flatMap(({ group }) => group ?? []))].sort()
  const kind = h('select', { id: 'compare-show' }, kinds.map(({ key, label, found }) => h('option', { value: key }, `${label} (${integer(found.length)})`)))
  const group = h('select', { id: 'compare-group' }, h('option', { value: '' }, 'All groups'), groups.map((one) => h('option', { value: one }, one)))
  const usual = (kinds.find(({ found }) => found.length > 0) ?? kinds[0]).key
  kind.value = kinds.some(({ key }) => key === query.get('show')) ? /** @type {string} */ (query.get('show')) : usual
  group.value = groups.includes(query.get('group') ?? '') ? /** @type {string} */ (query.get('group')) : ''
  const count = h('span', { class: 'dim', role: 'status' })
  const detail = h('div', { class: 'compare-detail' })
  const open = (/** @type {PairedItem} */ item, isByReader = true) => {
    query.set({ item: item.key })
    sideBySide({ place: detail, item, shown, name, signal, isByReader })
  }
  const isNarrow = matchMedia('(max-width: 40rem)').matches
  const table = windowedTable({
    label: 'Items', key: (/** @type {PairedItem} */ { key }) => key, nothing: 'No item is like this.', open,
    columns: [
      { key: 'item', label: 'Item', width: 'minmax(6rem, 1fr)', cell: (item) => h('button', { type: 'button', class: 'link', tabindex: '-1', title: 'Show the answers side by side', on: { click: () => open(item) } }, itemName(item)) },
      ...(groups.length > 0 && !isNarrow ? [{ key: 'group', label: 'Group', width: 'minmax(7rem, 1fr)', cell: (/** @type {PairedItem} */ item) => item.group ?? '–' }] : []),
      ...shown.map((compared, at) => ({ key: compared.letter, label: compared.letter, width: isNarrow ? 'minmax(7.5rem, 1fr)' : 'minmax(8.5rem, 1.4fr)', cell: (/** @type {PairedItem} */ item) => sideCell(item, at, compared, name) })),
    ],
  })
  const draw = () => {
    const found = (kinds.find(({ key }) => key === kind.value)?.found ?? []).filter((item) => !group.value || item.group === group.value)
    table.setRows(found)
    count.textContent = plural(found.length, 'item')
  }
  const changed = () => {
    query.set({ show: kind.value === usual ? null : kind.value, group: group.value })
    draw()
    announce(count.textContent ?? '')
  }
  kind.addEventListener('change', changed)
  group.addEventListener('change', changed)
  draw()
  const chosen = items.find(({ key }) => key === query.get('item'))
  if (chosen) {
    open(chosen, false)
    requestAnimationFrame(() => table.selectKey(chosen.key))
  }
  return h('section', { class: 'compare-items', 'aria-labelledby': 'items-title' },
    h('h2', { id: 'items-title' }, 'Item by item'),
    h('div', { class: 'filters' },
      h('div', { class: 'field' }, h('label', { for: 'compare-show' }, 'Show'), kind),
      groups.length > 0 && h('div', { class: 'field' }, h('label', { for: 'compare-group' }, 'Group'), group), count),
    h('p', { class: 'hint keys' }, h('kbd', null, 'j'), ' ', h('kbd', null, 'k'), ' move, ', h('kbd', null, 'Enter'), ' shows the answers side by side; a result opens the item in its run.'),
    table, detail)
}

/** Name of an item: the dataset's own id, or `#` and the index of its row. @param {PairedItem} item */
export function itemName({ sides }) {
  const row = sides.find((side) => side !== null)?.rows[0]
  return row?.source_id ?? `#${row?.item_id}`
}

/**
 * Makes the result of an item in one run, as a link to it.
 *
 * @param {PairedItem} item
 * @param {number} at
 * @param {Compared} compared
 * @param {string} name
 */
function sideCell(item, at, { source, letter }, name) {
  const side = item.sides[at]
  if (!side) return h('span', { class: 'dim' }, 'not in the run')
  const [row] = side.rows
  const content = side.rows.length > 1
    ? [h('span', { class: side.isRight ? 'good' : 'bad', 'aria-hidden': 'true' }, side.isRight ? '✓ ' : '✗ '), `${side.correct} of ${side.graded} right`]
    : [outcomeMark(row.outcome), row.extracted && h('span', { class: 'dim' }, ` ${row.extracted}`)]
  if (item.isChanged) content.push(h('code', { class: 'dim', title: 'Hash of the question in this run' }, ` ${row.item_hash?.slice(0, 6) ?? ''}`))
  return h('a', { href: source.itemPath(name, row.item_id), tabindex: '-1', 'aria-label': side.rows.length > 1 ? `${letter}: ${side.correct} of ${side.graded} samples right` : null }, content)
}

/**
 * Sorts the items by how the runs did on them. Empty kinds are left out, apart from the first.
 *
 * @param {Compared[]} shown
 * @param {PairedItem[]} items
 */
function kindsOf(shown, items) {
  const common = items.filter(isCommon)
  const right = (/** @type {PairedItem} */ { sides }) => sides.filter((side) => side?.isRight).length
  const text = (/** @type {PairedItem} */ { sides }, /** @type {number} */ at) => sides[at]?.rows.map(({ outcome }) => outcome).join() ?? ''
  const kinds = [{ key: 'disagree', label: shown.length > 2 ? 'Not all agree' : 'Only one is right', found: common.filter((item) => right(item) > 0 && right(item) < shown.length) }]
  for (const [at, { letter }] of shown.entries()) {
    kinds.push({ key: `only-${letter}`, label: `Only ${letter} right`, found: common.filter((item) => right(item) === 1 && item.sides[at]?.isRight) })
    if (shown.length > 2) kinds.push({ key: `not-${letter}`, label: `Only ${letter} wrong`, found: common.filter((item) => right(item) === shown.length - 1 && !item.sides[at]?.isRight) })
  }
  kinds.push(
    { key: 'wrong', label: shown.length > 2 ? 'All wrong' : 'Both wrong', found: common.filter((item) => right(item) === 0) },
    { key: 'right', label: shown.length > 2 ? 'All right' : 'Both right', found: common.filter((item) => right(item) === shown.length) },
    { key: 'outcome', label: 'Another outcome', found: common.filter((item) => shown.some((_, at) => text(item, at) !== text(item, 0))) },
    { key: 'common', label: 'All items in common', found: common },
    { key: 'changed', label: shown.length > 2 ? 'Different questions in some runs' : 'Different questions', found: items.filter(({ isChanged }) => isChanged) },
    { key: 'missing', label: 'Graded in some runs only', found: items.filter((item) => item.sides.some(isGraded) && !item.sides.every(isGraded)) },
  )
  return kinds.filter(({ found }, at) => at === 0 || found.length > 0)
}
