/** What an operator should look at, in sentences. */

import { h } from '../../core/dom.js'
import { plural } from '../../core/format.js'

/**
 * @param {Api.OverviewView} overview
 * @param {Api.Resources | null} resources null without a sandbox host
 */
export function attention(overview, resources) {
  const found = problems(overview, resources)
  if (found.length === 0) return h('p', { class: 'note good', role: 'status' }, 'Nothing needs attention.')
  return h('div', { class: 'ops-attention note warn', role: 'status' }, h('ul', null, found.map((text) => h('li', null, text))))
}

/**
 * @param {Api.OverviewView} overview
 * @param {Api.Resources | null} resources
 * @returns {string[]}
 */
function problems({ queues, workers, timeseries, unreadable_messages, wrong_admin_secrets_24h }, resources) {
  const found = []
  const sum = (/** @type {'visible' | 'dead'} */ name) => queues.reduce((n, queue) => n + (queue[name] ?? 0), 0)
  const [waiting, dead] = [sum('visible'), sum('dead')]
  const lastMinute = timeseries.at(-1)
  const isWorked = workers.length > 0 || (lastMinute && Date.now() - new Date(lastMinute.timestamp).getTime() < 180_000)
  if (waiting > 0 && !isWorked) found.push(`${plural(waiting, 'message')} wait, and no worker has reported in the last three minutes.`)
  if (dead > 0) found.push(`${plural(dead, 'message')} in dead-letter queues: they were delivered five times without success.`)
  if (unreadable_messages.length > 0) found.push(`${plural(unreadable_messages.length, 'message')} that can’t be read; they are listed below.`)
  if (wrong_admin_secrets_24h > 0) found.push(`${plural(wrong_admin_secrets_24h, 'request')} with a wrong admin secret in the last 24 hours. Many of them are an attempt to guess it.`)
  if (resources && resources.canCreateSandbox === false) found.push(`No further sandbox can be created: ${resources.rejectReason ?? 'no reason was given'}.`)
  return found
}
