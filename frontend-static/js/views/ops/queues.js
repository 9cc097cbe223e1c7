/** Queues of messages, and messages that can't be read. */

import { h } from '../../core/dom.js'
import { dateTime, integer, none } from '../../core/format.js'

/** Purpose of each queue. */
const PURPOSES = { plans: 'runs to plan', items: 'samples to answer', turns: 'answers to judge or run', finishes: 'runs to close' }

/** @param {Api.QueueView[]} queues */
export function queueTable(queues) {
  return h('section', { 'aria-labelledby': 'ops-queues' }, h('h2', { id: 'ops-queues' }, 'Queues'),
    h('table', { class: 'ops-numbers' },
      h('thead', null, h('tr', null, ['Queue', 'Waiting', 'In flight', 'For later',
        'Dead letters'].map((name, i) => h('th', { scope: 'col', class: i > 0 ? 'number' : null }, name)))),
      h('tbody', null, queues.map((queue) => h('tr', null,
        h('th', { scope: 'row' }, h('code', null, queue.name), ' ', h('span', { class: 'dim' }, /** @type {Record<string, string>} */ (PURPOSES)[queue.name] ?? '')),
        number(queue.visible), number(queue.in_flight), number(queue.delayed), number(queue.dead, (queue.dead ?? 0) > 0))))),
    queues.some(({ visible }) => visible === null) && h('p', { class: 'dim' }, `${none}: the API may not read this queue.`))
}

/**
 * @param {number | null} value
 * @param {boolean} [isBad]
 */
function number(value, isBad = false) {
  return h('td', { class: 'number' }, isBad ? h('span', { class: 'badge bad' }, integer(value)) : integer(value))
}

/** @param {Api.UnreadableView[]} messages */
export function unreadableTable(messages) {
  if (messages.length === 0) return null
  return h('section', { 'aria-labelledby': 'ops-unreadable' }, h('h2', { id: 'ops-unreadable' }, 'Unreadable messages'),
    h('p', { class: 'dim' }, 'Removed from their queue and stored for 90 days. If their run is open, a new message was sent.'),
    h('table', { class: 'cards' },
      h('thead', null, h('tr', null, ['Sent', 'Queue', 'Run', 'Problem'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, messages.map((message) => h('tr', null,
        h('td', null, dateTime(message.sent_at)), h('td', { dataset: { label: 'Queue' } }, h('code', null, message.queue)),
        h('td', { dataset: { label: 'Run' } },
          message.run_id ? h('a', { href: `/runs/${message.run_id}` }, message.run_id.slice(0, 8)) : none,
          message.sample && h('small', null, message.sample)),
        h('td', { dataset: { label: 'Problem' } }, message.problem, h('small', null, message.message_id)))))))
}
