/** Terminal tasks one by one: how often each run passes, the difference, and the episodes of both side by side. */

import { h, replace } from '../../core/dom.js'
import { duration, integer, percent, plural, points } from '../../core/format.js'
import { outcomeMark } from '../../core/outcomes.js'
import { sampleScore } from '../../core/run-facts.js'
import { windowedTable } from '../../components/table.js'
import { itemName } from './disagreements.js'
import { isCommon, isGraded } from './statistics.js'

/** @typedef {import('./load.js').Compared} Compared */
/** @typedef {import('./load.js').Row} Row */
/** @typedef {import('./statistics.js').PairedItem} PairedItem */
/** @typedef {import('./statistics.js').Side} Side */

/** Differences of rates below this are none. */
const SAME = 1e-9

/**
 * Makes the list of tasks with its filter.
 *
 * @param {object} options
 * @param {Compared[]} options.shown runs in the order of the items' sides, the baseline first
 * @param {PairedItem[]} options.items
 * @param {string} options.name benchmark
 * @param {typeof import('../../core/router.js').query} options.query
 * @param {(text: string) => void} options.announce
 */
export function taskByTask({ shown, items, name, query, announce }) {
  const kinds = kindsOf(shown, items)
  const kind = h('select', { id: 'compare-show' }, kinds.map(({ key, label, found }) => h('option', { value: key }, `${label} (${integer(found.length)})`)))
  const usual = kinds.find(({ found }) => found.length > 0)?.key ?? kinds[0].key
  kind.value = kinds.some(({ key }) => key === query.get('show')) ? /** @type {string} */ (query.get('show')) : usual
  const count = h('span', { class: 'dim', role: 'status' })
  const detail = h('div', { class: 'compare-detail' })
  const open = (/** @type {PairedItem} */ item, isByReader = true) => {
    query.set({ item: item.key })
    const title = h('h3', { tabindex: '-1' }, `Episodes of ${itemName(item)}`)
    replace(detail, title, episodesTable(item, shown, name))
    if (!isByReader) return
    title.focus({ preventScroll: true })
    detail.scrollIntoView({ block: 'start' })
  }
  // The largest differences first, until the reader wants another order.
  let order = { key: `difference-${shown[1]?.letter}`, descending: true }
  const isNarrow = matchMedia('(max-width: 40rem)').matches
  const rates = shown.map((compared, at) => ({
    key: compared.letter, label: compared.letter, title: `Pass rate of ${compared.label}`, width: isNarrow ? '4.5rem' : 'minmax(8rem, 1fr)', number: true, sortable: true, cell: (/** @type {PairedItem} */ item) => rateCell(item.sides[at], isNarrow),
  }))
  const differences = shown.slice(1).map(({ letter }, i) => ({
    key: `difference-${letter}`, label: `${letter} − A`, title: 'Difference of the pass rates', width: '6rem', number: true, sortable: true, cell: (/** @type {PairedItem} */ item) => differenceCell(item, i + 1),
  }))
  const table = windowedTable({
    label: 'Tasks', key: (/** @type {PairedItem} */ { key }) => key, nothing: 'No task is like this.', open,
    columns: [
      { key: 'task', label: 'Task', width: isNarrow ? 'minmax(6rem, 1fr)' : 'minmax(12rem, 2fr)', sortable: true, cell: (item) => h('button', { type: 'button', class: 'link', tabindex: '-1', title: `${itemName(item)}: show the episodes side by side`, on: { click: () => open(item) } }, isNarrow ? briefName(item) : itemName(item)) },
      ...rates, ...differences,
    ],
    sort: (key, descending) => { order = { key, descending }; draw() },
  })
  const draw = () => {
    const found = kinds.find(({ key }) => key === kind.value)?.found ?? []
    table.setRows(sorted(found, order, shown))
    table.setSort(order.key, order.descending)
    count.textContent = plural(found.length, 'task')
  }
  kind.addEventListener('change', () => {
    query.set({ show: kind.value === usual ? null : kind.value })
    draw()
    announce(count.textContent ?? '')
  })
  draw()
  const chosen = items.find(({ key }) => key === query.get('item'))
  if (chosen) {
    open(chosen, false)
    requestAnimationFrame(() => table.selectKey(chosen.key))
  }
  return h('section', { class: 'compare-items', 'aria-labelledby': 'items-title' },
    h('h2', { id: 'items-title' }, 'Task by task'),
    h('div', { class: 'filters' }, h('div', { class: 'field' }, h('label', { for: 'compare-show' }, 'Show'), kind), count),
    h('p', { class: 'hint' }, 'Passed of graded episodes. Above, a task counts as right if more than half of its graded episodes passed. ', h('span', { class: 'keys' }, h('kbd', null, 'j'), ' ', h('kbd', null, 'k'), ' move, ', h('kbd', null, 'Enter'), ' shows the episodes side by side.')),
    table, detail)
}

/** Name of a task without its organization and the beginning of its hash. @param {PairedItem} item */
function briefName(item) {
  return itemName(item).replace(/^.*\//, '').replace(/@[0-9a-f]{12}$/, '')
}

/** Share of the graded episodes that passed; null without any. @param {Side | null} side */
function rateOf(side) {
  return isGraded(side) ? side.correct / side.graded : null
}

/** @param {PairedItem} item @param {number} at */
function differenceOf({ sides, isChanged }, at) {
  const [a, b] = [rateOf(sides[0]), rateOf(sides[at])]
  return a === null || b === null || isChanged ? null : b - a
}

/**
 * @param {Side | null} side
 * @param {boolean} [isBrief] without the counts
 */
function rateCell(side, isBrief = false) {
  if (!side) return h('span', { class: 'dim' }, isBrief ? '–' : 'not in the run')
  const ungraded = side.rows.length - side.graded
  const without = ungraded > 0 && h('span', { class: 'dim', title: `${plural(ungraded, 'episode')} without a grade` }, ` +${ungraded} !`)
  const rate = rateOf(side)
  if (isBrief) return percent(rate, 0)
  return rate === null ? h('span', { class: 'dim' }, 'not graded') : [h('b', null, percent(rate)), h('span', { class: 'dim' }, ` ${side.correct}/${side.graded}`), without]
}

/** @param {PairedItem} item @param {number} at */
function differenceCell(item, at) {
  const difference = differenceOf(item, at)
  if (difference === null) return item.isChanged ? h('span', { class: 'dim', title: 'The task’s files differ between the runs.' }, 'changed') : '–'
  return Math.abs(difference) < SAME ? h('span', { class: 'dim' }, '0.0 pp') : h('span', { class: difference > 0 ? 'good' : 'bad' }, points(difference))
}

/**
 * @param {PairedItem[]} items
 * @param {{key: string, descending: boolean}} order
 * @param {Compared[]} shown
 */
function sorted(items, { key, descending }, shown) {
  const at = shown.findIndex(({ letter }) => key === letter || key === `difference-${letter}`)
  const sign = descending ? -1 : 1
  if (at < 0) return descending ? items.toReversed() : items
  const value = (/** @type {PairedItem} */ item) => {
    const number = key.startsWith('difference') ? differenceOf(item, at) : rateOf(item.sides[at])
    // The size of a difference counts first; what isn't known is last.
    return number === null ? null : key.startsWith('difference') ? Math.abs(number) : number
  }
  return items.toSorted((one, other) => {
    const [a, b] = [value(one), value(other)]
    if (a === null || b === null) return Number(a === null) - Number(b === null)
    return (a - b) * sign
  })
}

/**
 * Makes the table of a task's episodes: a line for each, with a link to it in every run.
 *
 * @param {PairedItem} item
 * @param {Compared[]} shown
 * @param {string} name
 */
function episodesTable({ sides }, shown, name) {
  const samples = [...new Set(sides.flatMap((side) => side?.rows.map(({ sample }) => sample) ?? []))].sort((one, other) => one - other)
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Episodes side by side' }, h('table', { class: 'figures compare-episodes' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Episode'), shown.map(({ letter, label }, at) => h('th', { scope: 'col' }, `${letter} `, h('span', { class: 'hint' }, label), ' ', rateCell(sides[at]))))),
    h('tbody', null, samples.map((sample) => h('tr', null, h('th', { scope: 'row' }, String(sample + 1)), shown.map(({ source, letter }, at) => {
      const row = sides[at]?.rows.find((one) => one.sample === sample)
      return h('td', null, row ? episodeCell(row, source.itemPath(name, row.item_id, sample), `episode ${sample + 1} of ${letter}`) : h('span', { class: 'dim' }, 'none'))
    }))))))
}

/** @param {Row} row @param {string} path @param {string} label */
function episodeCell(row, path, label) {
  const { input_tokens: input, output_tokens: output, latency_ms: ms } = row
  const facts = [
    row.score !== null && `reward ${sampleScore(row.score)}`, input !== null && `${integer(input)} → ${integer(output)} tokens`, ms !== null && duration(ms / 1000),
  ].filter(Boolean).join(' · ')
  return [h('a', { href: path }, outcomeMark(row.outcome), h('span', { class: 'visually-hidden' }, `, ${label}`)), facts && h('small', null, facts)]
}

/**
 * Sorts the tasks by how the runs did on them. Empty kinds are left out, apart from the first.
 *
 * @param {Compared[]} shown
 * @param {PairedItem[]} items
 */
function kindsOf(shown, items) {
  const common = items.filter(isCommon)
  const rates = (/** @type {PairedItem} */ { sides }) => sides.map((side) => rateOf(side) ?? 0)
  const isSame = (/** @type {PairedItem} */ item) => Math.max(...rates(item)) - Math.min(...rates(item)) < SAME
  const kinds = [
    { key: 'common', label: 'All tasks in common', found: common },
    { key: 'differ', label: 'The rates differ', found: common.filter((item) => !isSame(item)) },
    ...shown.map(({ letter }, at) => ({ key: `best-${letter}`, label: `${letter} passes most often`, found: common.filter((item) => rates(item).every((rate, other) => other === at || rate < rates(item)[at] - SAME)) })),
    { key: 'same', label: 'The same rate', found: common.filter(isSame) },
    { key: 'none', label: 'Never passed', found: common.filter((item) => rates(item).every((rate) => rate === 0)) },
    { key: 'always', label: 'Always passed', found: common.filter((item) => rates(item).every((rate) => rate === 1)) },
    { key: 'changed', label: 'Different files', found: items.filter(({ isChanged }) => isChanged) },
    { key: 'missing', label: 'Graded in some runs only', found: items.filter((item) => item.sides.some(isGraded) && !item.sides.every(isGraded)) },
  ]
  return kinds.filter(({ found }, at) => at === 0 || found.length > 0)
}
