/** One turn of an agent: what it was told, what it thought, what it did, and what that cost. */

import { h, replace } from '../../core/dom.js'
import { duration, integer, number, usd } from '../../core/format.js'
import { renderAnswer, renderPlain } from '../../text/answer.js'
import { pieces, textNodes } from '../../text/safe.js'

/** @typedef {import('./trajectory.js').Turn} Turn */
/** @typedef {import('./trajectory.js').Command} Command */

/** Characters of a text that are shown at first. */
const FIRST_CHARS = 2_000
/** Commands of one turn that are shown at first. */
const FIRST_COMMANDS = 20

/** @type {Record<string, string>} */
const SAID_BY = { user: 'Message to the agent', system: 'Note' }

/**
 * Makes the line of figures of a turn.
 *
 * @param {Turn} turn
 */
export function turnFigures({ input, cached, output, cost, ms, isAnswered }) {
  const parts = [
    !isAnswered && 'the model wasn’t asked', input !== null && `${integer(input)} → ${integer(output)} tokens`, cached !== null && `${integer(cached)} cached`, cost !== null && usd(cost), ms !== null && duration(ms / 1000),
  ].filter(Boolean)
  return h('p', { class: 'turn-figures' }, parts.join(' · '))
}

/**
 * Makes the conversation of a turn.
 *
 * @param {Turn} turn
 * @param {import('./trajectory.js').Note[]} after what the agent was told at the end of the episode
 */
export function turnBody(turn, after) {
  return h('div', { class: 'turn-body' },
    turn.before.map((note, at) => noteOf(note, turn.number === 1 && at === 0 ? 'Task' : SAID_BY[note.source] ?? note.source)),
    turn.others.length > 0 && h('p', { class: 'hint' }, 'Calls beside the conversation, in logs: ', turn.others.flatMap((name, at) => [at > 0 && ', ', h('code', null, name)])),
    turn.reasoning && lazyDetails('Reasoning', () => renderAnswer(turn.reasoning, { firstChars: FIRST_CHARS, labelOf: labelIn(turn) })),
    turn.message ? renderAnswer(turn.message, { firstChars: FIRST_CHARS, labelOf: labelIn(turn) }) : h('p', { class: 'dim' }, 'No message.'),
    // The message of some agents has the command already.
    commandList(turn.commands.filter(({ kind, text }) => kind !== 'command' || !turn.message.includes(text))),
    after.map((note) => noteOf(note, SAID_BY[note.source] ?? note.source)))
}

/**
 * Returns the labels of code in a reply: `bash` alone could be taken for the agent.
 *
 * @param {Turn} turn
 * @returns {import('../../text/blocks.js').LabelOf}
 */
function labelIn({ commands }) {
  return (language, code) => {
    if (commands.some(({ kind, text }) => kind === 'command' && text.trim() === code.trim())) return 'Command'
    // What it means is said below.
    if (language === 'done' && commands.some(({ kind }) => kind === 'end')) return code.trim() && 'End'
    return language && `Language: ${language}`
  }
}

/**
 * @param {import('./trajectory.js').Note} note
 * @param {string} title
 */
function noteOf({ text }, title) {
  return lazyDetails(`${title}, ${integer(text.length)} characters`, () => renderPlain(text))
}

/** @param {string} title @param {() => Node} make */
function lazyDetails(title, make) {
  const details = h('details', { class: 'turn-note' }, h('summary', null, title))
  details.addEventListener('toggle', () => details.append(make()), { once: true })
  return details
}

/** @param {Command[]} commands */
function commandList(commands) {
  if (commands.length === 0) return null
  const list = h('ol', { class: 'turn-commands', 'aria-label': 'Commands' }, commands.slice(0, FIRST_COMMANDS).map(commandItem))
  const rest = commands.slice(FIRST_COMMANDS)
  if (rest.length === 0) return list
  const more = h('button', { type: 'button', class: 'button small' }, `Show ${integer(rest.length)} more commands`)
  more.addEventListener('click', () => { list.append(...rest.map(commandItem)); more.remove() })
  return [list, more]
}

/** @param {Command} command */
function commandItem({ kind, text, seconds }) {
  if (kind === 'end') return h('li', { class: 'end' }, 'Says that the task is complete.')
  const shown = kind === 'keys' ? keysInWords(text) : text
  const [first] = pieces(shown, FIRST_CHARS)
  const code = h('pre', null, textNodes(first))
  const more = first.length < shown.length && h('button', { type: 'button', class: 'button small' }, `Show more (${integer(shown.length)} characters)`)
  if (more) more.addEventListener('click', () => { replace(code, textNodes(shown)); more.remove() })
  return h('li', null, code, more, seconds !== null && h('span', { class: 'dim wait' }, `waits ${number(seconds)} s`))
}

/** Makes the Enter key visible. @param {string} keys */
function keysInWords(keys) {
  return keys === '' ? '(no keys)' : keys.replaceAll(/\r\n|\n|\r/g, '⏎\n').replace(/\n$/, '')
}
