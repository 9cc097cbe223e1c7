/** What a reader has to know before anything else: failure, waiting, interruption. */

import { h, part } from '../../core/dom.js'
import { dateTime, duration, plural, timeOfDay } from '../../core/format.js'
import { messageParts } from '../../core/messages.js'
import { outcomesInWords } from '../../core/outcomes.js'
import { changeAdvice, isOpen } from '../../core/run-facts.js'
import { path } from '../../core/router.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** @type {Record<string, string>} */
const FAILURES = {
  budget: 'The run reached its budget. Requeue it with a larger one to continue.',
  refused: 'The provider refused the first requests with the same message. Order a new run with settings that the model takes.',
  failures: 'As many samples failed as the order allows. Resolve the cause that the items name, then requeue the failures.',
}

/** @param {{source: import('../../core/source.js').RunSource}} options */
export function noticesOf({ source }) {
  return part(h('div', { class: 'notices' }),
    (/** @type {Run} */ run) => [run.status, run.error_message, run.failure_reason, run.interrupted, run.waiting, run.queue_position, run.start_delay_seconds, run.rejudges,
      run.benchmarks.map((b) => [b.error_message, b.status, b.error_causes])],
    (run) => [
      // After a requeue, the message is of the time before.
      run.error_message && !isOpen(run) && failureOf(run, run.error_message, source),
      !run.error_message && changeAdvice(run) && h('p', { class: 'note warn' }, changeAdvice(run)),
      run.interrupted && isOpen(run) && h('p', { class: 'note warn' }, h('strong', null, 'Interrupted. '), 'The command that ran it has ended. Resume continues it on this server; finished samples are kept.'),
      run.waiting && waiting(run.waiting),
      run.queue_position !== null && run.queue_position !== undefined && h('p', { class: 'note' }, `In the queue at position ${run.queue_position}`,
        run.start_delay_seconds !== null && `, starts in about ${duration(run.start_delay_seconds)}`, '.'),
      run.rejudges && h('p', { class: 'note' }, `Judging ${run.rejudges.version} of the answers of `,
        source.live ? h('a', { href: path('runs', run.rejudges.run) }, 'an earlier run') : `run ${run.rejudges.run}`, '. The model wasn\'t asked again.'),
      run.benchmarks.filter((b) => b.error_message && b.error_message !== run.error_message && !run.error_message?.includes(b.error_message)).map(benchmarkNote),
    ])
}

/**
 * @param {Run} run
 * @param {string} message
 * @param {import('../../core/source.js').RunSource} source
 */
function failureOf(run, message, source) {
  const [text, response] = messageParts(message, outcomesInWords)
  const advice = changeAdvice(run) || FAILURES[run.failure_reason ?? '']
  return h('section', { class: 'note bad', 'aria-label': 'Failure' },
    h('p', null, h('strong', null, 'Failed: '), text, run.error_code && h('span', { class: 'dim' }, ' (', h('code', null, run.error_code), ')')),
    response, causeOf(run, source),
    advice && h('p', null, advice))
}

/** @param {import('../../core/run-facts.js').RunBenchmark} b */
function benchmarkNote(b) {
  const [text, response] = messageParts(b.error_message ?? '', outcomesInWords)
  return h('div', { class: b.status === 'failed' ? 'note bad' : 'note warn' }, h('p', null, h('strong', null, b.benchmark_name, ': '), text), response)
}

/**
 * Names the most frequent cause of a failed run's errors, with the way to all of them.
 *
 * @param {Run} run
 * @param {import('../../core/source.js').RunSource} source
 */
function causeOf(run, source) {
  const failed = run.benchmarks.filter((b) => b.status === 'failed' && (b.error_causes ?? []).length > 0)
  const [first] = failed
  if (!first) return null
  const [cause] = first.error_causes ?? []
  const [text, response] = messageParts(cause.message)
  return [h('p', { class: 'cause' }, `Most frequent cause, in ${plural(cause.count, 'sample')}: `, text, ' ',
    h('a', { href: source.runPath({ benchmark: first.benchmark_name, tab: 'errors' }) }, 'All errors')), response]
}

/** @param {Api.WaitingView} wait */
function waiting(wait) {
  const who = /** @type {Record<string, string>} */ ({ judge: 'judge’s provider', user_model: 'user model’s provider' })[wait.waits_for] ?? 'provider'
  const why = wait.kind === 'rate_limited' ? `The ${who} limits the rate of requests.` : `The ${who} isn't available.`
  const [text, response] = messageParts(wait.message ?? '')
  return h('div', { class: 'note warn' }, h('p', null, h('strong', null, 'Waiting. '), why,
    ` Next request at ${timeOfDay(wait.until)}; waiting since ${dateTime(wait.since)}`,
    wait.waiting_samples !== null && `, ${plural(wait.waiting_samples, 'sample')} open`, '. Nothing is lost: the run continues by itself.',
    wait.message && h('span', { class: 'dim' }, ' Its message: ', text)), response)
}
