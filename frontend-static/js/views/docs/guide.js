/** The way of a run through the API, as commands: order, watch, read, download, verify. */

import { curl } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { copyBox } from '../../components/copy.js'
import { quote } from '../new-run/commands.js'
import { BODIES } from './examples.js'

/** @param {import('./own.js').Own} own */
export function guide(own) {
  const run = encodeURIComponent(own.run || 'RUN')
  const url = (/** @type {string} */ path) => quote(location.origin + path)
  return h('ol', { class: 'guide' },
    step('Order a run', 'On demo data and without a key, on a server on your own machine.', curl('POST', '/api/runs', BODIES['POST /api/runs'])),
    step('Order a run on your own key', 'The key pays for the answers. It is stored encrypted and deleted when the run is over.',
      curl('POST', '/api/runs/api', BODIES['POST /api/runs/api'], { key: true })),
    step('Look at it', own.run ? 'With your run filled in.' : 'RUN is the id in the answer to the order.', curl('GET', `/api/runs/${run}`)),
    step('Watch it', 'Events as they happen; the stream ends with the run.',
      `curl -NsS ${url(`/api/runs/${run}/events`)} -H 'accept: text/event-stream'`),
    step('Cancel it', 'While it is queued or running. Answers are kept.', curl('POST', `/api/runs/${run}/cancel`)),
    step('Download the results', 'The signed archive of a run that is over; format=csv and format=jsonl have the samples.',
      `${curl('GET', `/api/runs/${run}/export?format=zip`)} \\\n  -o results.zip`),
    step('Verify an archive', 'The view Verify does the same in the browser, and uploads nothing.',
      `curl -fsS ${url('/api/exports/verify')} -F file=@results.zip`),
    step('Read the public keys', 'To verify archives elsewhere.', curl('GET', '/.well-known/bench-runner-keys.json')))
}

/**
 * @param {string} title
 * @param {string} text
 * @param {string} command
 */
function step(title, text, command) {
  return h('li', null, h('h3', null, title), h('p', { class: 'dim' }, text), copyBox(command, { name: `the command “${title}”` }))
}
