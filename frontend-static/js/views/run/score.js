/** The score of a run with its interval, what to know about it, and the figures of the whole run. */

import { h, part } from '../../core/dom.js'
import { duration, integer, none, number, percent, plural, tokens, usd } from '../../core/format.js'
import { cautionList, elapsedSeconds, isOfEpisodes, isOpen, progressOf, runCautionsOf, scoreOf } from '../../core/run-facts.js'
import { outcomeOf } from '../../core/outcomes.js'
import { intervalFigure, progressBar } from '../../components/figures.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** Makes the part at the top of the run view. */
export function scorePart() {
  const bar = progressBar()
  const score = part(h('div', { class: 'score' }),
    (/** @type {Run} */ run) => [run.overall_score, isOpen(run), runCautionsOf(run), scoreOf(run), isOpen(run) && soFar(run)], scoreOfRun)
  const progress = part(h('div', { class: 'run-progress' }), (/** @type {Run} */ run) => [isOpen(run), progressOf(run), run.eta_seconds, run.queue_position], (run) => {
    if (!isOpen(run)) return null
    const { completed, total, unit } = progressOf(run)
    bar.show(completed, total, { label: 'Progress of the run', note: leftText(run), unit: `${unit}s` })
    return bar
  })
  const figures = part(h('dl', { class: 'tiles' }), (/** @type {Run} */ run) => tilesOf(run), (run) => tilesOf(run).map(([term, value, small]) =>
    h('div', null, h('dt', null, term), h('dd', null, value, small && [' ', h('small', null, small)]))))
  const meanings = part(h('div', null), meaningsOf, explanation)
  const element = h('section', { class: 'run-score', 'aria-label': 'Score' }, score.element, progress.element, figures.element, meanings.element)
  return {
    element,
    /** @param {Run} run */
    show(run) {
      score.show(run)
      progress.show(run)
      figures.show(run)
      const isRead = meanings.element.querySelector('details')?.open
      meanings.show(run)
      if (isRead) meanings.element.querySelector('details')?.setAttribute('open', '')
    },
  }
}

/** @param {Run} run */
function scoreOfRun(run) {
  const cautions = cautionList(runCautionsOf(run))
  if (isOpen(run)) {
    const { graded, score } = soFar(run)
    return [
      h('p', { class: 'big dim' }, score === null ? none : percent(score)),
      h('div', { class: 'beside' }, h('p', null, graded > 0 ? `Provisional: of ${plural(graded, 'graded sample')} so far` : 'No sample is graded yet'), cautions),
    ]
  }
  const { score, interval, label, scale } = scoreOf(run)
  if (score === null) return [h('p', { class: 'big dim' }, none), h('div', { class: 'beside' }, h('p', null, withoutScore(run)), cautions)]
  const figure = intervalFigure(score, interval, { scale })
  figure.style.setProperty('--interval-width', '12rem')
  return [
    h('p', { class: 'big' }, percent(score)),
    h('div', { class: 'beside' }, interval ? h('p', { class: 'figure' }, figure, h('span', { class: 'dim', 'aria-hidden': 'true' }, ' 95%\u00a0interval'))
      : run.benchmarks.length === 1 && h('p', { class: 'dim' }, 'No 95% interval: the items’ scores are all equal, so their spread isn’t known'),
      h('p', null, label[0]?.toUpperCase() + label.slice(1), run.benchmarks.length > 1 && h('span', { class: 'dim' }, '; it is the score of none of them')), cautions),
  ]
}

/**
 * Says why a run that is over has no score.
 *
 * @param {any} run
 */
function withoutScore({ status, benchmarks }) {
  if (status === 'canceled') return benchmarks.length > 1 ? 'The run was canceled; finished benchmarks have their own scores.' : 'No score: the run was canceled.'
  if (benchmarks.length > 1) return 'No overall score: not every benchmark has one.'
  return status === 'failed' ? 'No score: the benchmark failed.' : 'No score: the benchmark has none.'
}

/**
 * Share of correct samples so far.
 *
 * @param {Run} run
 */
function soFar(run) {
  let graded = 0
  let points = 0
  for (const b of run.benchmarks) {
    graded += b.graded_samples ?? 0
    points += (b.score_of_graded ?? (b.graded_samples ? b.correct_samples / b.graded_samples : 0)) * (b.graded_samples ?? 0)
  }
  return { graded, score: graded > 0 ? points / graded : null }
}

/** @param {Run} run */
function leftText(run) {
  if (run.status === 'queued') return 'queued'
  if (run.eta_seconds !== null && run.eta_seconds !== undefined) return `about ${duration(Math.max(1, Math.round(run.eta_seconds)))} left`
  return run.waiting ? 'no estimate while it waits' : 'no estimate yet'
}

/** Seconds below which a run is short. */
const SHORT_S = 60

/**
 * Makes the tile with the number of items. That of a run of terminal tasks counts its tasks, each with several episodes of
 * which all would have to be over.
 *
 * @param {Run} run
 * @returns {[string, string, string?][]}
 */
function itemsTile(run) {
  if (!run.progress) return [['Items', none]]
  const { completed, total } = run.progress
  if (isOfEpisodes(run)) return [['Tasks', integer(total)]]
  return [['Items', integer(completed), completed !== total ? `of ${integer(total)}` : '']]
}

/**
 * @param {Run} run
 * @returns {[string, string, string?][]}
 */
function tilesOf(run) {
  const sum = (/** @type {'completed_samples' | 'correct_samples' | 'graded_samples' | 'planned_samples'} */ name) => run.benchmarks.reduce((s, b) => s + (b[name] ?? 0), 0)
  const seconds = elapsedSeconds(run)
  const done = sum('completed_samples')
  // Archives have times in whole seconds, which are too coarse for the figures of a short run.
  const isRounded = seconds !== null && seconds < SHORT_S && !`${run.started_at}${run.completed_at}`.includes('.')
  /** @type {[string, string, string?][]} */
  const tiles = [
    ...itemsTile(run),
    [isOfEpisodes(run) ? 'Episodes' : 'Samples', integer(done), sum('planned_samples') !== done ? `of ${integer(sum('planned_samples'))}` : ''],
    ['Correct', integer(sum('correct_samples')), `of ${integer(sum('graded_samples'))} graded`],
    ['Coverage', run.coverage === null || run.coverage === undefined ? none : percent(run.coverage), isOpen(run) ? 'so far' : ''],
    ['Time', isRounded ? `${integer(seconds)} s` : duration(seconds), isRounded ? 'to the second' : ''],
  ]
  if (seconds && seconds >= 1 && done > 0 && !isRounded) {
    const rate = done / seconds * 60
    tiles.push(['Rate', rate < 100 ? number(Math.round(rate * 10) / 10) : integer(rate), isOfEpisodes(run) ? 'episodes/min' : 'samples/min'])
  }
  // As in the table of benchmarks, no tokens are no figure: the run asked no model, or no answer came.
  const used = run.spent?.tokens ?? (run.input_tokens ?? 0) + (run.output_tokens ?? 0)
  tiles.push(['Tokens', tokens(used || null), used > 0 ? `${tokens(run.input_tokens)} in, ${tokens(run.output_tokens)} out` : ''])
  const cost = run.spent?.usd ?? run.cost?.total_usd ?? null
  tiles.push(['Cost', usd(cost), cost === null ? ((run.spent?.tokens ?? 0) > 0 ? 'price unknown' : '') : run.spent?.estimated_tokens ? 'estimated' : ''])
  if (run.budget) tiles.push(['Budget', run.budget.usd !== null ? usd(run.budget.usd) : tokens(run.budget.tokens), run.budget.usd === null ? 'tokens' : ''])
  return tiles
}

/**
 * Lists the terms that a run shows, each with its meaning: cautions first, then figures, then outcomes.
 *
 * @param {Run} run
 * @returns {[string, string][]}
 */
export function meaningsOf(run) {
  const isOne = run.benchmarks.length === 1
  const { interval } = scoreOf(run)
  const names = [...new Set(run.benchmarks.flatMap((b) => Object.entries(b.outcomes ?? {}).filter(([, n]) => n > 0).map(([name]) => name)))]
  /** @type {[string, string][]} */
  const list = runCautionsOf(run).filter(({ text }) => !/^(coverage|[\d.,]+) /.test(text)).map(({ text, title }) => [text, title])
  list.push(['Score', isOne ? 'Mean of the graded samples: a correct one counts 1, a partial one its share, all others 0. Samples that failed through no fault of the model are in no score.'
    : 'Mean of the benchmarks’ scores, so it is the score of none of them. Each of these is the mean of its graded samples.'])
  if (run.benchmarks.some((b) => b.interval) || isOpen(run)) {
    list.push(['95% interval', `Range in which the true score plausibly lies: of 100 intervals made this way, 95 contain it. ${interval?.method === 'wilson' ? 'It is Wilson’s. ' : ''}Few items make it wide.`])
  }
  list.push(
    ['Coverage', `Graded of planned samples. Below ${percent(run.coverage_min ?? 0.9, 0)}, a benchmark has no score and the run fails.`],
    ['Items, samples', 'An item is a question of the dataset; benchmarks that ask it several times have several samples of each.'],
  )
  for (const name of names) list.push([outcomeOf(name).label, outcomeOf(name).meaning])
  return list
}

/** @param {Run} run */
export function explanation(run) {
  return h('details', { class: 'meanings no-print' }, h('summary', null, 'What these figures mean'),
    h('dl', { class: 'facts' }, meaningsOf(run).map(([term, text]) => [h('dt', null, term), h('dd', null, text)])))
}
