/** Score of a benchmark by group of its items. */

import { h } from '../../core/dom.js'
import { integer, percent } from '../../core/format.js'
import { wilson } from '../../core/metrics.js'
import { isBenchmarkOpen, scaleOf } from '../../core/run-facts.js'
import { intervalFigure } from '../../components/figures.js'

/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/** @param {RunBenchmark} b */
export function groupsOf(b) {
  const groups = Object.entries(groupScores(b) ?? {})
  if (groups.length === 0) {
    return h('p', { class: 'dim' }, isBenchmarkOpen(b) ? 'Scores by group are computed when the benchmark is over.' : 'The items of this benchmark have no groups.')
  }
  const isBinary = b.interval?.method === 'wilson'
  return [
    h('div', { class: 'scroll-x' }, h('table', { class: 'figures groups' },
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Group'), h('th', { scope: 'col' }, isBinary ? 'Score with 95% interval' : 'Score'),
        ['Correct', 'Graded', 'Ended'].map((text) => h('th', { scope: 'col', class: 'number' }, text)))),
      h('tbody', null, groups.map(([name, g]) => h('tr', null,
        h('th', { scope: 'row' }, h('a', { href: `${location.pathname}?benchmark=${encodeURIComponent(b.benchmark_name)}&group=${encodeURIComponent(name)}` }, name)),
        h('td', null, g.score === null ? percent(null) : intervalFigure(g.score, isBinary ? wilson(g.correct, g.graded) : null, { scale: scaleOf(b.benchmark_name) })),
        h('td', { class: 'number' }, integer(g.correct)), h('td', { class: 'number' }, integer(g.graded)), h('td', { class: 'number' }, integer(g.ended))))))),
    isBinary && h('p', { class: 'hint' }, 'Intervals of groups are Wilson\'s, computed from the counts of this table.'),
  ]
}

/**
 * Figures of each group of a benchmark's items; undefined until the benchmark is over, and without groups.
 *
 * @param {RunBenchmark} b
 */
export function groupScores(b) {
  return b.metrics?.groups
}
