/** The thread of a conversation: messages of agent and user simulator, and what their tools returned. Models wrote them, so they are only text. */

import { h, replace, useStyles } from '../../core/dom.js'
import { bytes, duration, integer, plural, timeOfDay, usd } from '../../core/format.js'
import { query } from '../../core/router.js'
import { renderAnswer } from '../../text/answer.js'
import { pieces, textNodes } from '../../text/safe.js'

/** @typedef {import('./conversation.js').Message} Message */
/** @typedef {import('./conversation.js').Call} Call */

/** Messages that are shown at first, and that one more press adds. */
const FIRST_MESSAGES = 500
/** Calls of a message that are shown at first. */
const FIRST_CALLS = 20
/** Characters of a text that are shown at first. */
const FIRST_CHARS = 3_000

/** @type {Record<Message['by'], string>} */
const NAMES = { agent: 'Agent', user: 'User simulator' }

await useStyles('views/conversation.css')

/**
 * Makes a thread.
 *
 * @param {{signal: AbortSignal, announce: (text: string) => void}} options
 * @returns {{element: HTMLElement, show: (messages: Message[]) => void}} `show` adds messages, and draws those anew that have changed
 */
export function thread({ signal, announce }) {
  const list = h('ol', { class: 'thread', 'aria-label': 'Messages' })
  const more = h('button', { type: 'button', class: 'button', hidden: true })
  /** @type {Message[]} */
  let all = []
  /** What is drawn of each message, as JSON. @type {string[]} */
  const drawn = []
  let limit = FIRST_MESSAGES
  let current = 0
  const draw = () => {
    for (const [at, message] of all.slice(0, limit).entries()) {
      const key = JSON.stringify(message)
      if (drawn[at] === key) continue
      const item = itemOf(message)
      const old = list.children[at]
      if (old) old.replaceWith(item)
      else list.append(item)
      drawn[at] = key
    }
    while (list.children.length > Math.min(all.length, limit)) list.lastElementChild?.remove()
    drawn.length = list.children.length
    more.hidden = all.length <= limit
    more.textContent = `Show ${integer(Math.min(all.length - limit, FIRST_MESSAGES))} more of ${plural(all.length, 'message')}`
  }
  more.addEventListener('click', () => {
    const first = limit
    limit += FIRST_MESSAGES
    draw()
    linkAt(first + 1)?.focus()
  })
  const linkAt = (/** @type {number} */ number) => /** @type {HTMLElement | null} */ (list.children[number - 1]?.querySelector('.message-link') ?? null)
  const select = (/** @type {number} */ to, say = true) => {
    if (all.length === 0) return
    current = Math.min(Math.max(to, 1), all.length)
    if (current > limit) { limit = current; draw() }
    for (const item of list.querySelectorAll('[aria-current]')) item.removeAttribute('aria-current')
    const link = linkAt(current)
    link?.closest('li')?.setAttribute('aria-current', 'true')
    link?.focus({ preventScroll: true })
    link?.closest('li')?.scrollIntoView({ block: 'start' })
    if (!say) return
    query.set({ message: current })
    announce(`Message ${current} of ${all.length}.`)
  }
  list.addEventListener('click', (event) => {
    const link = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.message-link'))
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    select(Number(link.dataset.number))
  })
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || (event.key !== 'n' && event.key !== 'p')) return
    if (/** @type {HTMLElement} */ (event.target).closest('input, textarea, select, dialog, bench-menu, [contenteditable]')) return
    event.preventDefault()
    select(current + (event.key === 'n' ? 1 : -1))
  }, { signal })
  const asked = Math.trunc(Number(query.get('message')))
  let isFirst = true
  const show = (/** @type {Message[]} */ messages) => {
    all = messages
    draw()
    if (isFirst && asked >= 1 && all.length > 0) requestAnimationFrame(() => { if (!signal.aborted && list.isConnected) select(asked, false) })
    isFirst = false
  }
  return { element: h('div', { class: 'thread-box' }, list, more), show }
}

/** @param {Message} message */
function itemOf(message) {
  const { by, text, reasoning, calls, omittedCalls, omittedBytes } = message
  const left = [omittedBytes > 0 && `${bytes(omittedBytes)} of the text`, omittedCalls > 0 && plural(omittedCalls, 'tool call')].filter(Boolean)
  return h('li', { class: `message by-${by}` },
    h('div', { class: 'message-head' },
      h('a', { class: 'message-link', href: hrefOf(message.number), dataset: { number: message.number } }, `${NAMES[by]} `, h('span', { class: 'message-number' }, `#${message.number}`)),
      h('span', { class: 'message-figures' }, figures(message))),
    reasoning && lazyDetails('Reasoning', () => renderAnswer(reasoning, { firstChars: FIRST_CHARS })),
    text.trim() ? renderAnswer(text, { firstChars: FIRST_CHARS })
      : calls.length + omittedCalls === 0 && h('p', { class: 'dim' }, 'No text.'),
    callList(calls, by),
    left.length > 0 && h('p', { class: 'dim' }, `Not stored here: ${left.join(' and ')}.`))
}

/** @param {Message} message */
function figures({ model, clock, input, output, cost, ms }) {
  return [model, input !== null && `${integer(input)} → ${integer(output)} tokens`, cost !== null && usd(cost), ms !== null && duration(ms / 1000), clock !== null && timeOfDay(new Date(clock).toISOString())].filter(Boolean).join(' · ')
}

/** @param {number} number */
function hrefOf(number) {
  const search = new URLSearchParams(location.search)
  search.set('message', String(number))
  return `${location.pathname}?${search}`
}

/**
 * @param {Call[]} calls
 * @param {Message['by']} by
 */
function callList(calls, by) {
  if (calls.length === 0) return null
  const items = (/** @type {Call[]} */ some) => some.map(callItem)
  const list = h('ul', { class: 'tool-calls', 'aria-label': by === 'agent' ? 'Tool calls of the agent' : 'Tool calls of the user' }, items(calls.slice(0, FIRST_CALLS)))
  const rest = calls.slice(FIRST_CALLS)
  if (rest.length === 0) return list
  const more = h('button', { type: 'button', class: 'button small' })
  const label = () => { more.textContent = `Show more tool calls (${integer(rest.length)})` }
  label()
  more.addEventListener('click', () => {
    list.append(...items(rest.splice(0, 200)))
    if (rest.length === 0) more.remove()
    else label()
  })
  return [list, more]
}

/** @param {Call} call */
function callItem({ name, values, result, isFailed }) {
  return h('li', { class: isFailed ? 'tool-call failed' : 'tool-call' },
    h('div', { class: 'tool-name' }, h('span', { class: 'visually-hidden' }, 'Tool: '), h('code', null, name || '(no name)'), isFailed && h('strong', { class: 'bad' }, ' Failed')),
    values && longText(values),
    result === null ? h('p', { class: 'dim' }, 'No result yet.')
      : [h('div', { class: 'tool-arrow dim' }, isFailed ? 'Error' : 'Result'), result === '' ? h('p', { class: 'dim' }, 'Empty.') : longText(result)])
}

/** @param {string} text */
function longText(text) {
  const [first] = pieces(text, FIRST_CHARS)
  const code = h('pre', null, textNodes(first))
  if (first.length >= text.length) return code
  const more = h('button', { type: 'button', class: 'button small' }, `Show all (${integer(text.length)} characters)`)
  more.addEventListener('click', () => { replace(code, textNodes(text)); more.remove() })
  return [code, more]
}

/** @param {string} title @param {() => Node} make */
function lazyDetails(title, make) {
  const details = h('details', { class: 'message-note' }, h('summary', null, title))
  details.addEventListener('toggle', () => details.append(make()), { once: true })
  return details
}
