/** A conversation that is over: its end, its reward with all parts, and the thread. Models and the evaluator wrote it, so it is only text. */

import { h, replace, withCode } from '../../core/dom.js'
import { integer, none, number, plural, usd } from '../../core/format.js'
import { failure, loading } from '../../core/states.js'
import { messagesOf, messagesOfSteps } from './conversation.js'
import { logDetails } from './episode.js'
import { wholeLog } from './logs.js'
import { thread } from './thread.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {{turns?: number, calls?: number, input_tokens?: number, output_tokens?: number, cost_usd?: number}} Used */
/**
 * @typedef {{termination: string, messages: unknown[], steps: number, errors: number, trial: number, seed: number, user_model: string, package: string,
 *   reward?: number | null, reward_info?: any, agent?: Used, user?: Used}} Dialogue
 */

/** Ends of conversations in words, by their official names. @type {Record<string, string>} */
const ENDS = {
  user_stop: 'the user ended it', agent_stop: 'the agent ended it', max_steps: 'the limit of steps was reached', too_many_errors: 'too many tool calls failed',
  agent_error: 'a message of the agent broke the rules', user_error: 'a message of the user broke the rules', timeout: 'its time was over',
}
/** Parts of rewards in words, by their official names. @type {Record<string, string>} */
const BASES = { DB: 'Database', ENV_ASSERTION: 'Environment assertions', ACTION: 'Actions', COMMUNICATE: 'Communicated facts', NL_ASSERTION: 'Assertions in words' }
/** Checks of a part that are shown at first. */
const FIRST_CHECKS = 50

/**
 * Returns the conversation of a sample; null for samples of other kinds.
 *
 * @param {Sample} item
 * @returns {Dialogue | null}
 */
export function dialogueOf(item) {
  const found = /** @type {{dialogue?: Partial<Dialogue>} | null} */ (item.judge_output)?.dialogue
  return found && Array.isArray(found.messages) ? /** @type {Dialogue} */ (found) : null
}

/**
 * Makes the sections of a conversation.
 *
 * @param {Dialogue} dialogue
 * @param {import('./logs.js').Place} place
 * @param {(text: string) => void} announce
 */
export function dialogueSections(dialogue, place, announce) {
  const { item, signal } = place
  const logs = /** @type {{logs?: import('./logs.js').Log[]} | null} */ (item.judge_output)?.logs ?? []
  const { termination, reward, user_model: model } = dialogue
  const exception = /** @type {{exception?: {name: string, message: string} | null} | null} */ (item.judge_output)?.exception
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Reward', typeof reward === 'number' ? number(reward) : none, typeof reward === 'number' ? '' : 'the conversation has none'],
    ['End', h('code', null, termination || none), termination ? ENDS[termination] ?? '' : 'it was not ended'],
    ['Steps', integer(dialogue.steps), `trial ${integer((dialogue.trial ?? 0) + 1)}, seed ${dialogue.seed}`],
    ['Failed tool calls', integer(dialogue.errors)],
    ['Agent', usedText(dialogue.agent), usedNote(dialogue.agent)],
    ['User simulator', model && model !== 'none' ? model : 'no model', [usedText(dialogue.user), usedNote(dialogue.user)].filter((text) => text && text !== none).join(', ')],
  ]
  const { messages, omitted } = messagesOf(dialogue.messages)
  const shown = thread({ signal, announce })
  shown.show(messages)
  const said = `${item.reason ?? ''} ${item.error ?? ''}`
  return [
    h('section', { class: 'episode-result', 'aria-label': 'Result of the conversation' },
      h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))),
      exception && !said.includes(exception.message) && h('p', { class: 'note bad' }, withCode(exception.message)),
      dialogue.package && h('p', { class: 'dim' }, `Environment and evaluator: ${dialogue.package}.`)),
    rewardSection(dialogue.reward_info),
    h('section', { class: 'conversation', 'aria-labelledby': 'conversation' }, h('h2', { id: 'conversation' }, 'Conversation'),
      messages.length === 0 ? h('p', { class: 'dim' }, 'It has no messages.') : shown.element,
      omitted > 0 && h('p', { class: 'dim' }, `${plural(omitted, 'more message')} ${omitted === 1 ? 'was' : 'were'} left out: the conversation is too long.`)),
    logs.length > 0 && h('section', { class: 'text episode-logs', 'aria-labelledby': 'logs' }, h('h2', { id: 'logs' }, 'Logs'), logs.map((log) => logDetails(log, place))),
  ]
}

/**
 * Makes the section of a conversation that is too long for the response of its sample: the thread from its trajectory.
 *
 * @param {import('./logs.js').Place} place
 * @param {(text: string) => void} announce
 */
export function cutDialogueSections(place, announce) {
  const { signal } = place
  const box = h('div', null)
  const load = async () => {
    replace(box, loading('Loading the conversation'))
    try {
      const { steps } = JSON.parse(await wholeLog(place, { name: 'agent/trajectory.json', bytes: 0, end: '', cut: true }))
      if (signal.aborted) return
      const shown = thread({ signal, announce })
      shown.show(messagesOfSteps(Array.isArray(steps) ? steps : []))
      replace(box, shown.element)
    } catch (error) {
      if (!signal.aborted) replace(box, failure(/** @type {Error} */ (error), load))
    }
  }
  void load()
  return [h('section', { class: 'conversation', 'aria-labelledby': 'conversation' }, h('h2', { id: 'conversation' }, 'Conversation'), box)]
}

/** @param {Used | undefined} used */
function usedText(used) {
  return used?.input_tokens || used?.output_tokens ? `${integer(used.input_tokens ?? 0)} → ${integer(used.output_tokens ?? 0)}` : none
}

/** @param {Used | undefined} used */
function usedNote(used) {
  return used?.input_tokens || used?.output_tokens ? ['tokens in → out', used.cost_usd && usd(used.cost_usd)].filter(Boolean).join(', ') : ''
}

/** @typedef {{name: string, values: string, isMet: boolean, note: string}} Check */

/** Makes the section with the parts of the reward; null without one. @param {any} info */
function rewardSection(info) {
  if (!info || typeof info !== 'object') return null
  const basis = Array.isArray(info.reward_basis) ? info.reward_basis.map(String) : []
  const checks = checksOf(info)
  const names = [...new Set([...basis, ...checks.keys()])]
  const note = typeof info.info?.note === 'string' ? info.info.note : ''
  if (names.length === 0 && !note) return null
  return h('section', { class: 'reward-parts', 'aria-labelledby': 'reward-parts' }, h('h2', { id: 'reward-parts' }, 'Parts of the reward'),
    note && h('p', { class: 'dim' }, note),
    names.map((name) => {
      const value = info.reward_breakdown?.[name]
      return h('section', { class: 'reward-part', 'aria-label': BASES[name] ?? name },
        h('h3', null, BASES[name] ?? name, ' ', basis.includes(name) ? typeof value === 'number' && h('span', { class: value >= 1 ? 'met' : 'missed' }, value >= 1 ? '✓ ' : '✗ ', number(value)) : h('small', { class: 'dim' }, 'not part of this reward')),
        checkList(checks.get(name) ?? []))
    }))
}

/** @param {any} info @returns {Map<string, Check[]>} */
function checksOf(info) {
  const list = (/** @type {unknown} */ value) => /** @type {any[]} */ (Array.isArray(value) ? value : []).filter((one) => one && typeof one === 'object')
  const by = (/** @type {unknown} */ party) => (party === 'user' ? 'by the user' : party === 'assistant' ? 'by the agent' : '')
  /** @type {[string, Check[]][]} */
  const all = [
    ['ENV_ASSERTION', list(info.env_assertions).map(({ env_assertion: one = {}, met }) => ({
      name: String(one.func_name ?? ''), values: valuesOf(one.arguments), isMet: met === true,
      note: [one.assert_value === false && 'must be false', by(one.env_type).replace('by', 'of'), one.message].filter(Boolean).join(', '),
    }))],
    ['ACTION', list(info.action_checks).map(({ action: one = {}, action_match: met }) => ({ name: String(one.name ?? one.action_id ?? ''), values: valuesOf(one.arguments), isMet: met === true, note: by(one.requestor) }))],
    ['DB', info.db_check ? [{ name: 'state of the database', values: '', isMet: info.db_check.db_match === true, note: '' }] : []],
    ['COMMUNICATE', list(info.communicate_checks).map((one) => ({ name: String(one.info ?? ''), values: '', isMet: one.met === true, note: String(one.justification ?? '') }))],
    ['NL_ASSERTION', list(info.nl_assertions).map((one) => ({ name: String(one.nl_assertion ?? ''), values: '', isMet: one.met === true, note: String(one.justification ?? '') }))],
  ]
  return new Map(all.filter(([, checks]) => checks.length > 0))
}

/** @param {unknown} values */
function valuesOf(values) {
  return values && typeof values === 'object' && Object.keys(values).length > 0 ? JSON.stringify(values) : ''
}

/** Lists checks, those that failed first. @param {Check[]} checks */
function checkList(checks) {
  if (checks.length === 0) return h('p', { class: 'dim' }, 'No checks are listed.')
  const sorted = [...checks.filter(({ isMet }) => !isMet), ...checks.filter(({ isMet }) => isMet)]
  const itemOf = (/** @type {Check} */ { name, values, isMet, note }) => h('li', { class: isMet ? 'met' : 'missed' },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, isMet ? '✓' : '✗'), h('div', null, h('span', { class: 'visually-hidden' }, isMet ? 'Met: ' : 'Missed: '), h('code', null, name), values && [' ', h('code', { class: 'dim' }, values)], note && h('small', { class: 'dim' }, ` ${note}`)))
  const list = h('ul', { class: 'checks' }, sorted.slice(0, FIRST_CHECKS).map(itemOf))
  const rest = sorted.slice(FIRST_CHECKS)
  if (rest.length === 0) return list
  const more = h('button', { type: 'button', class: 'button small' }, `Show ${integer(rest.length)} more`)
  more.addEventListener('click', () => { list.append(...rest.map(itemOf)); more.remove() })
  return [list, more]
}
