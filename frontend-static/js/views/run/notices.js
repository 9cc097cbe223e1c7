/** What a reader has to know before anything else: failure, waiting, interruption. */

import { h } from '../../core/dom.js'
import { dateTime, duration, plural, timeOfDay } from '../../core/format.js'
import { part } from '../../core/patch.js'
import { isOpen } from '../../core/run-facts.js'
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
      run.benchmarks.map((b) => [b.error_message, b.status])],
    (run) => [
      run.error_message && h('section', { class: 'note bad', 'aria-label': 'Failure' },
        h('p', null, h('strong', null, 'Failed: '), run.error_message, run.error_code && h('span', { class: 'dim' }, ' (', h('code', null, run.error_code), ')')),
        run.failure_reason && FAILURES[run.failure_reason] && h('p', null, FAILURES[run.failure_reason])),
      run.interrupted && isOpen(run) && h('p', { class: 'note warn' }, h('strong', null, 'Interrupted. '), 'The command that ran it has ended. Resume continues it on this server; finished samples are kept.'),
      run.waiting && waiting(run.waiting),
      run.queue_position !== null && run.queue_position !== undefined && h('p', { class: 'note' }, `In the queue at position ${run.queue_position}`,
        run.start_delay_seconds !== null && `, starts in about ${duration(run.start_delay_seconds)}`, '.'),
      run.rejudges && h('p', { class: 'note' }, `Judging ${run.rejudges.version} of the answers of `,
        source.live ? h('a', { href: path('runs', run.rejudges.run) }, 'an earlier run') : `run ${run.rejudges.run}`, '. The model wasn\'t asked again.'),
      run.benchmarks.filter((b) => b.error_message && b.error_message !== run.error_message && !run.error_message?.includes(b.error_message)).map((b) =>
        h('p', { class: b.status === 'failed' ? 'note bad' : 'note warn' }, h('strong', null, b.benchmark_name, ': '), b.error_message)),
    ])
}

/** @param {Api.WaitingView} wait */
function waiting(wait) {
  const who = wait.waits_for === 'judge' ? 'judge\'s provider' : 'provider'
  const why = wait.kind === 'rate_limited' ? `The ${who} limits the rate of requests.` : `The ${who} isn't available.`
  return h('p', { class: 'note warn' }, h('strong', null, 'Waiting. '), why,
    ` Next request at ${timeOfDay(wait.until)}; waiting since ${dateTime(wait.since)}`,
    wait.waiting_samples !== null && `, ${plural(wait.waiting_samples, 'sample')} open`, '. Nothing is lost: the run continues by itself.',
    wait.message && h('span', { class: 'dim' }, ` Its message: ${wait.message}`))
}
