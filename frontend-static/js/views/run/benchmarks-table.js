/** Benchmarks of a run: status, progress or score with interval, outcomes. One of them is chosen. */

import { h, part } from '../../core/dom.js'
import { integer, none, tokens, usd } from '../../core/format.js'
import { statusBadge } from '../../core/outcomes.js'
import { cautionList, cautionsOf, hasAgent, isBenchmarkOpen, runCautionsOf, scaleOf } from '../../core/run-facts.js'
import { intervalFigure, outcomesFigure, progressBar } from '../../components/figures.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {ReturnType<typeof cautionsOf>[number]} Caution */

/** @param {{select: (name: string) => void}} options */
export function benchmarksTable({ select }) {
  const body = h('tbody', null)
  const element = h('section', { 'aria-labelledby': 'benchmarks' },
    h('h2', { id: 'benchmarks', class: 'section-title' }, 'Benchmarks'),
    h('div', { class: 'scroll-x' }, h('table', { class: 'figures run-benchmarks' },
      h('thead', null, h('tr', null, ['Benchmark', 'Status', 'Score with 95% interval', 'Outcomes'].map((text) => h('th', { scope: 'col' }, text)),
        ['Samples', 'Tokens', 'Cost'].map((text) => h('th', { scope: 'col', class: 'number' }, text)))),
      body)))
  /** @type {Map<string, {row: HTMLElement, show: (b: RunBenchmark, cautions: Caution[]) => void, setCounts: (counts: Record<string, number>) => void}>} */
  const rows = new Map()
  return {
    element,
    /** @param {Run} run */
    show(run) {
      // What is said about a run of one benchmark isn't repeated in its row.
      const said = new Set(run.benchmarks.length === 1 ? runCautionsOf(run).map(({ text }) => text) : [])
      for (const b of run.benchmarks) {
        let entry = rows.get(b.benchmark_name)
        if (!entry) {
          entry = newRow(b.benchmark_name, select)
          rows.set(b.benchmark_name, entry)
          body.append(entry.row)
        }
        entry.show(b, cautionsOf(b).filter(({ text }) => !said.has(text)))
      }
    },
    /**
     * Shows counts of outcomes of a benchmark that isn't over.
     *
     * @param {string} name
     * @param {Record<string, number> | null | undefined} counts
     */
    setCounts(name, counts) { if (counts) rows.get(name)?.setCounts(counts) },
    /** @param {string} name */
    select(name) {
      for (const [key, { row }] of rows) {
        row.classList.toggle('chosen', key === name)
        row.querySelector('button')?.setAttribute('aria-pressed', String(key === name))
      }
    },
  }
}

/**
 * @param {string} name
 * @param {(name: string) => void} select
 */
function newRow(name, select) {
  const bar = progressBar()
  /** @type {Record<string, number> | null} */
  let counts = null
  /** @type {RunBenchmark | null} */
  let latest = null
  /** @type {Caution[]} */
  let cautions = []
  const cell = (/** @type {string} */ label, /** @type {(b: RunBenchmark) => unknown} */ key, /** @type {(b: RunBenchmark) => import('../../core/dom.js').Child} */ make, className = '') =>
    part(h('td', { class: className, 'data-label': label }), key, make)
  const parts = [
    cell('Status', (b) => b.status, (b) => statusBadge(b.status)),
    cell('Score', (b) => [b.status, b.score, b.interval, b.coverage, b.completed_samples, b.planned_samples, b.score_of_graded, cautions], (b) => scoreCell(b, bar, cautions), 'score'),
    cell('Outcomes', (b) => [b.outcomes, counts, b.completed_samples, b.correct_samples, b.graded_samples], (b) => outcomesCell(b, counts), 'outcomes'),
    cell('Samples', (b) => [b.completed_samples, b.planned_samples], (b) => samplesText(b), 'number'),
    cell('Tokens', (b) => [b.input_tokens, b.output_tokens], (b) => tokens(b.input_tokens + b.output_tokens || null), 'number'),
    cell('Cost', (b) => b.cost, (b) => usd(b.cost?.total_usd), 'number'),
  ]
  const row = h('tr', null,
    h('th', { scope: 'row' }, h('button', { type: 'button', class: 'link', on: { click: () => select(name) } }, name)),
    parts.map(({ element }) => element))
  const show = (/** @type {RunBenchmark} */ b, /** @type {Caution[]} */ list) => { latest = b; cautions = list; parts.forEach((p) => p.show(b)) }
  return { row, show, setCounts: (/** @type {Record<string, number>} */ now) => { counts = now; if (latest) show(latest, cautions) } }
}

/**
 * @param {RunBenchmark} b
 * @param {import('../../components/figures.js').BenchProgress} bar
 * @param {Caution[]} cautions
 */
function scoreCell(b, bar, cautions) {
  if (isBenchmarkOpen(b)) {
    bar.show(b.completed_samples, b.planned_samples || b.total_items, { label: `Progress of ${b.benchmark_name}`, unit: hasAgent(b) ? 'episodes' : 'samples' })
    return [bar, cautionList(cautions)]
  }
  const isLow = b.score === null && b.score_of_graded !== null && b.score_of_graded !== undefined
  return [
    b.score !== null ? intervalFigure(b.score, b.interval, { scale: scaleOf(b.benchmark_name) }) : none,
    isLow && h('span', { class: 'dim sub' }, `no score: below ${Math.round((b.coverage_min ?? .9) * 100)}% coverage`),
    cautionList(cautions),
  ]
}

/**
 * @param {RunBenchmark} b
 * @param {Record<string, number> | null} counts outcomes so far, if they were loaded
 */
function outcomesCell(b, counts) {
  const link = (/** @type {string} */ outcome) => `${location.pathname}?benchmark=${encodeURIComponent(b.benchmark_name)}&outcome=${outcome}`
  const openIn = (/** @type {Record<string, number>} */ sums) => Math.max(0, (b.planned_samples ?? 0) - Object.values(sums).reduce((x, y) => x + y, 0))
  if (b.outcomes) return outcomesFigure(b.outcomes, { open: openIn(b.outcomes), link })
  if (!b.completed_samples) return none
  if (counts && openIn(counts) < b.planned_samples) return outcomesFigure(counts, { open: openIn(counts), link })
  // Until the outcomes are loaded, and for benchmarks that aren't chosen, the counters of the run tell these apart.
  const sums = { correct: b.correct_samples, 'not-correct': b.graded_samples - b.correct_samples, ungraded: b.completed_samples - b.graded_samples }
  return outcomesFigure(sums, { open: openIn(sums) })
}

/** @param {RunBenchmark} b */
function samplesText(b) {
  if (!b.planned_samples) return none
  return b.completed_samples === b.planned_samples ? integer(b.planned_samples) : `${integer(b.completed_samples)} of ${integer(b.planned_samples)}`
}
