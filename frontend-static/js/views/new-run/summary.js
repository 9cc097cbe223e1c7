/** What an order will take, next to the button that starts it. */

import { h, replace } from '../../core/dom.js'
import { integer, tokens, usd } from '../../core/format.js'
import { costText, isAsked, timeText } from './estimate-text.js'
import { problemsOf } from './problems.js'

/**
 * Makes the panel.
 *
 * @returns {{element: HTMLElement, line: HTMLElement, show: (estimated: import('./estimate.js').Estimated) => void}} `line` is
 *   the same in one line, for the bar of narrow screens
 */
export function estimatePanel() {
  const body = h('div', { class: 'estimate-body' })
  const line = h('p', { class: 'estimate-line' })
  const spoken = h('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const element = h('section', { class: 'estimate', 'aria-label': 'Estimate' }, h('h2', null, 'Estimate'), body, spoken)
  let text = ''
  return {
    element,
    line,
    show({ estimate, runs = 1, notes: further, error, isCurrent }) {
      element.classList.toggle('stale', !isCurrent)
      element.setAttribute('aria-busy', String(!isCurrent))
      if (!isCurrent) return
      if (error) {
        replace(body, h('p', { class: 'dim' }, error.name === 'OfflineError' ? error.message : 'No estimate for this order:'),
          problemsOf(error).map((problem) => h('p', { class: 'problem' }, problem.text)))
        replace(line, 'No estimate')
        return
      }
      if (!estimate) {
        replace(body, h('p', { class: 'dim' }, 'Choose a model, at least one benchmark, and items.'))
        replace(line, 'Nothing chosen yet')
        return
      }
      replace(body, figures(estimate, runs), notes(estimate), further)
      const next = `${runs > 1 ? `${runs} runs, ` : ''}${integer(estimate.samples)} samples, ${timeText(estimate)}, ${costText(estimate)}`
      replace(line, next)
      if (next !== text) spoken.textContent = `Estimate: ${next}`
      text = next
    },
  }
}

/**
 * @param {Api.EstimateView} estimate
 * @param {number} runs
 */
function figures(estimate, runs) {
  const asksModel = isAsked(estimate)
  const judge = (estimate.judge_input_tokens ?? 0) + (estimate.judge_output_tokens ?? 0)
  const user = (estimate.user_input_tokens ?? 0) + (estimate.user_output_tokens ?? 0)
  /** @type {([string, import('../../core/dom.js').Child] | false | null)[]} */
  const rows = [
    runs > 1 && ['Runs', h('strong', null, integer(runs))],
    ['Cost', h('strong', null, costText(estimate).replace('unknown cost', 'unknown'))],
    [runs > 1 ? 'Time, one by one' : 'Time', h('strong', null, timeText(estimate).replace('unknown time', 'unknown'))],
    [runs > 1 ? 'Items of each run' : 'Items', integer(estimate.items)],
    ['Samples', integer(estimate.samples)],
    asksModel && ['Prompt tokens', tokens(estimate.input_tokens)],
    asksModel && ['Answer tokens', tokens(estimate.output_tokens)],
    judge > 0 && ['Judge tokens', tokens(judge)],
    user > 0 && ['User model tokens', tokens(user)],
    estimate.price && ['Price', `${usd(estimate.price.input_per_million_usd)} in, ${usd(estimate.price.output_per_million_usd)} out per million`],
  ]
  return h('dl', { class: 'estimate-figures' }, rows.map((row) => row && h('div', null, h('dt', null, row[0]), h('dd', null, row[1]))))
}

/** @param {Api.EstimateView} estimate */
function notes(estimate) {
  const found = []
  if (estimate.cost_note) found.push(h('p', { class: 'note' }, estimate.cost_note))
  const unjudged = estimate.benchmarks.filter((each) => (each.judge_input_tokens ?? 0) > 0 && !each.judge)
  if (unjudged.length > 0) found.push(h('p', { class: 'note warn' },
    `Choose a judge for ${unjudged.map((each) => each.benchmark_name).join(', ')}.`))
  if (estimate.reaches_budget === true) found.push(h('p', { class: 'note warn' },
    'The budget is smaller than this estimate: the run will probably stop before it is complete.'))
  for (const message of estimate.warnings) found.push(h('p', { class: 'note warn' }, message))
  if (estimate.ignored_benchmarks?.length) found.push(h('p', { class: 'note warn' },
    `This server doesn’t know ${estimate.ignored_benchmarks.join(', ')}.`))
  if (estimate.basis?.text && isAsked(estimate)) found.push(h('p', { class: 'form-hint' }, `Based on ${estimate.basis.text}.`))
  return found
}
