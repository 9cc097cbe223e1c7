/** One board: models under equal conditions. */

import { h } from '../../core/dom.js'
import { ago, date, dateTime, integer, none, percent, plural, usd } from '../../core/format.js'
import { intervalFigure } from '../../components/figures.js'
import { sentence } from '../new-run/problems.js'

/**
 * @param {Api.BoardView} board
 * @param {string} benchmark
 * @param {number} index
 */
export function board(board, benchmark, index) {
  const { entries } = board
  const id = `board-${index}`
  const scale = scaleOf(entries)
  const runs = entries.map((entry) => entry.run_id)
  return h('article', { class: 'board', 'aria-labelledby': id },
    h('div', { class: 'section-head' },
      h('h2', { id }, board.demo && h('span', { class: 'caution' }, board.dataset?.source === 'demo' ? 'DEMO' : 'demo data used'), board.demo && ' ', title(board)),
      runs.length > 1 && h('a', { class: 'button small',
        href: `/compare?runs=${runs.slice(0, 8).join(',')}&benchmark=${encodeURIComponent(benchmark)}` },
        runs.length > 8 ? 'Compare the first 8' : runs.length > 2 ? `Compare all ${runs.length}` : 'Compare both')),
    h('p', { class: 'board-conditions' }, conditions(board)),
    h('div', { class: 'scroll-x' }, h('table', { class: 'board-table' },
      h('thead', null, h('tr', null, ['Rank', 'Model', `Score with 95% interval, scale ${percent(scale[0], 0)}–${percent(scale[1], 0)}`,
        'Best', 'Latest run', 'Cost']
        .map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, entries.map((entry, i) => row(entry, entries[i - 1], scale, userOf(board)))))))
}

/**
 * Returns limits in whole tenths around all intervals, so that differences are visible.
 *
 * @param {Api.EntryView[]} entries
 * @returns {[number, number]}
 */
function scaleOf(entries) {
  const ends = entries.flatMap(({ score, interval }) => [score, interval?.low ?? score, interval?.high ?? score])
  const high = Math.ceil(Math.max(...ends) * 10) / 10
  return [Math.min(Math.floor(Math.min(...ends) * 10) / 10, high - 0.1), high]
}

/** Returns the model that simulated users; null without one. @param {Api.BoardView} board */
function userOf(board) {
  return /** @type {{user_model?: string | null}} */ (board).user_model ?? null
}

/** @param {Api.BoardView} board */
function title(board) {
  const part = board.items < board.dataset_items ? `${integer(board.items)} of ${integer(board.dataset_items)} items` : `all ${integer(board.items)} items`
  return `${board.protocol_name}, ${part}`
}

/** @param {Api.BoardView} board */
function conditions(board) {
  const { dataset } = board
  const options = Object.entries(board.options ?? {}).map(([name, value]) => `${name} ${value}`)
  const parts = [
    board.protocol,
    dataset && `dataset ${dataset.id} at ${String(dataset.revision ?? '').slice(0, 12)}`,
    board.subset_seed && `seed “${board.subset_seed}”`,
    board.samples_per_item > 1 && plural(board.samples_per_item, 'sample') + ' per item',
    ...options,
    board.judge && `judged by ${board.judge}`,
    userOf(board) && `users simulated by ${userOf(board)}`,
  ].filter(Boolean)
  return [
    board.prompt_source === 'own' && [h('span', { class: 'caution' }, 'prompt: own'), ' '],
    (board.changed_settings ?? []).map((/** @type {string} */ text) => [h('span', { class: 'caution' }, text), ' ']),
    parts.join(' · '),
    dataset?.note && h('small', null, sentence(dataset.note)),
  ]
}

/**
 * @param {Api.EntryView} entry
 * @param {Api.EntryView | undefined} above the entry above; undefined for the first
 * @param {[number, number]} scale
 * @param {string | null} user model that simulated users
 */
function row(entry, above, scale, user) {
  const isTied = entry.rank_low !== entry.rank_high
  const ranks = isTied ? `${entry.rank_low}–${entry.rank_high}` : String(entry.rank_low)
  const isSameGroup = above && above.rank_low === entry.rank_low && above.rank_high === entry.rank_high
  return h('tr', { class: isSameGroup ? 'tied' : null },
    h('td', { class: 'rank' }, ranks, isTied && h('span', { class: 'visually-hidden' }, ', a tie')),
    h('th', { scope: 'row' }, h('a', { href: `/runs/${entry.run_id}` }, entry.model), user && h('span', { class: 'dim' }, ` with user ${user}`),
      h('small', null, [entry.thinking_level && `thinking ${entry.thinking_level}`, entry.endpoint_host, entry.run_name].filter(Boolean).join(' · ')),
      entry.own_endpoint && h('span', { class: 'caution' }, 'own base URL')),
    h('td', { dataset: { label: 'Score' } }, intervalFigure(entry.score, entry.interval, { scale })),
    h('td', { dataset: { label: 'Best' } }, entry.best && entry.runs > 1
      ? [h('a', { href: `/runs/${entry.best.run_id}` }, percent(entry.best.score)), h('small', null, `best of ${plural(entry.runs, 'run')}`)]
      : h('span', { class: 'dim' }, 'its only run')),
    h('td', { dataset: { label: 'Latest run' } },
      h('time', { datetime: entry.completed_at, title: dateTime(entry.completed_at) },
      isRecent(entry.completed_at) ? ago(entry.completed_at) : date(entry.completed_at)),
      entry.partial_runs > 0 && h('small', null, `${plural(entry.partial_runs, 'run')} with partial coverage not ranked`)),
    h('td', { class: 'cost', dataset: { label: 'Cost' } }, entry.cost_usd === null ? h('span', { class: 'dim' }, entry.endpoint_host ? 'unknown' : none) : usd(entry.cost_usd)))
}

/** @param {string} time */
function isRecent(time) {
  return Date.now() - new Date(time).getTime() < 30 * 86_400_000
}
