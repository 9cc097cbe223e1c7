/** Models ranked within one benchmark, only under equal conditions, with differences that chance explains as ties. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { plural } from '../core/format.js'
import { query } from '../core/router.js'
import { empty, failure, loading } from '../core/states.js'
import { copyBox } from '../components/copy.js'
import { board } from './leaderboard/board.js'

/** Why runs are left out, by reason of the API. */
const REASONS = {
  partial: 'with partial coverage', demo: 'of demo data', oracle: 'of the oracle', replay: 'of stored responses', rejudged: 'judged again',
  own_endpoint: 'with base URLs of their own', own_items: 'with items that no other run has', failed: 'failed', private: 'private',
}

/** @param {import('../app.js').Context} context */
export async function mount({ root, signal, title, announce }) {
  title('Leaderboard')
  await useStyles('views/leaderboard.css')
  /** @type {Api.LeaderboardView} */
  const first = await api.get('/api/leaderboard', { query: { benchmark: query.get('benchmark') }, signal })
  const { benchmarks } = first
  const boards = h('div', { class: 'boards', 'aria-live': 'off' })
  const picker = h('select', { id: 'leaderboard-benchmark', on: { change: () => { query.set('benchmark', picker.value); void load() } } })
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Leaderboard'),
      h('p', { class: 'sub' }, 'Only like is ranked with like: the same protocol, prompt, dataset revision, items, settings and judge. The latest run of a model with full coverage ranks.')),
    benchmarks.length > 0 && h('div', { class: 'filters' },
      h('div', { class: 'field' }, h('label', { for: 'leaderboard-benchmark' }, 'Benchmark'), picker)),
    boards)
  if (benchmarks.length === 0) {
    replace(boards, empty('No run can be ranked yet', 'A run ranks when it has succeeded with full coverage.',
      h('a', { class: 'button primary', href: '/new' }, 'New run')))
    return
  }
  const selected = query.get('benchmark') ?? mostRuns(benchmarks)
  replace(picker, choices(benchmarks, selected))
  if (first.benchmark) show(boards, first)
  else await load()

  async function load() {
    replace(boards, loading('Ranking'))
    try {
      /** @type {Api.LeaderboardView} */
      const page = await api.get('/api/leaderboard', { query: { benchmark: picker.value }, signal })
      show(boards, page)
      announce(plural(page.boards.length, 'board'))
    } catch (error) {
      if (!signal.aborted) replace(boards, failure(/** @type {Error} */ (error), load))
    }
  }
}

/** @param {{benchmark_name: string, runs: number}[]} benchmarks */
function mostRuns(benchmarks) {
  return [...benchmarks].sort((a, b) => b.runs - a.runs)[0].benchmark_name
}

/**
 * @param {{benchmark_name: string, runs: number}[]} benchmarks
 * @param {string} selected
 */
function choices(benchmarks, selected) {
  const all = benchmarks.some(({ benchmark_name }) => benchmark_name === selected) ? benchmarks : [{ benchmark_name: selected, runs: 0 },
    ...benchmarks]
  return all.map(({ benchmark_name, runs }) => h('option', { value: benchmark_name, selected: benchmark_name === selected },
    `${benchmark_name} (${plural(runs, 'run')})`))
}

/**
 * @param {HTMLElement} place
 * @param {Api.LeaderboardView} page
 */
function show(place, page) {
  const { boards } = page
  const benchmark = page.benchmark ?? ''
  replace(place,
    boards.length === 0 && empty(`No run of ${benchmark} can be ranked`, 'A run ranks when it has succeeded with full coverage.',
      h('a', { class: 'button primary', href: `/new?benchmarks=${encodeURIComponent(benchmark)}` }, 'New run')),
    boards.map((each, i) => board(each, benchmark, i)),
    h('section', { class: 'board-notes', 'aria-label': 'About these ranks' },
      boards.length > 0 && h('p', null, page.tie_method),
      leftOut(page.excluded),
      !page.is_complete && h('p', { class: 'note warn' },
        `Only the newest ${plural(page.runs_read, 'run')} of this benchmark were read; older ones may be missing here.`),
      h('details', null, h('summary', null, 'The same as a command'), copyBox(`bench leaderboard ${benchmark} --server ${location.origin}`))))
}

/** @param {Api.ExcludedView} excluded */
function leftOut(excluded) {
  const parts = Object.entries(excluded ?? {}).filter(([, n]) => n > 0)
    .map(([reason, n]) => `${n} ${/** @type {Record<string, string>} */ (REASONS)[reason] ?? reason}`)
  return parts.length > 0 && h('p', null, `Runs left out: ${parts.join(', ')}.`)
}
