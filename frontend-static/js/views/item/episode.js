/** An episode of a terminal task: rewards, steps, exception, test output and logs. Containers wrote all of it, so it is only text. */

import { h, replace, setText, withCode } from '../../core/dom.js'
import { bytes, duration, integer, none, number, plural } from '../../core/format.js'
import { failure, loading, problem } from '../../core/states.js'
import { renderPlain } from '../../text/answer.js'
import { logPage } from './logs.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {{name: string, message: string}} Exception */
/** @typedef {{name: string | null, rewards: Record<string, number> | null, exception: Exception | null, agent_ms: number | null, verifier_ms: number | null, tests: {total: number, passed: number, failed: number} | null}} Step */
/** @typedef {import('./logs.js').Log} Log */
/** @typedef {import('./logs.js').Place} Place */
/**
 * @typedef {{agent: string, engine: string, round: number, rewards: Record<string, number> | null, setup_ms: number | null, exception: Exception | null,
 *   episode_steps: Step[], test_output: string, logs: Log[]}} Episode
 */

/**
 * Returns the episode of a sample; null if it is another kind of sample, or isn't over.
 *
 * @param {Sample} item
 * @returns {Episode | null}
 */
export function episodeOf(item) {
  const output = /** @type {Partial<Episode> | null} */ (item.judge_output)
  return output && Array.isArray(output.episode_steps) ? /** @type {Episode} */ (output) : null
}

/** Ends of agents that ask a model, by their names in the report. @type {Record<string, string>} */
const ENDS = {
  completed: 'it said that the task is complete',
  turn_limit: 'it reached its limit of turns',
  token_limit: 'its budget of tokens was spent',
  cost_limit: 'its budget of dollars was spent',
  time_limit: 'its time was over',
  context_exceeded: 'the conversation no longer fit into the model’s context',
  output_exceeded: 'too many replies in a row were cut by the length limit',
  format_errors: 'too many replies in a row had no valid form',
  terminal_ended: 'its terminal session had ended',
  model_failed: 'the model couldn’t be asked',
}

/**
 * Says why an agent ended; null for agents that ask no model. If the task has several steps, it is the end of the last one.
 *
 * @param {Pick<Episode, 'episode_steps'>} episode
 * @param {Sample} item
 */
export function endOf({ episode_steps: steps }, item) {
  const { agent_end: end, turns } = /** @type {{agent_end?: string, turns?: number}} */ (item.detail ?? {})
  if (typeof end !== 'string') return null
  return h('p', { class: 'agent-end' }, h('strong', null, 'End of the agent: '), Object.hasOwn(ENDS, end) ? ENDS[end] : end, steps.length > 1 ? ', in the last step' : '', typeof turns === 'number' && `, after ${plural(turns, 'turn')}`, '.')
}

/**
 * Makes the sections of an episode.
 *
 * @param {Episode} episode
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
export function episodeSections(episode, place, announce) {
  const { item } = place
  const tests = sumOf(episode.episode_steps)
  const passed = item.outcome === 'correct'
  // What the head of the view says isn't repeated.
  const said = `${item.reason ?? ''} ${item.error ?? ''}`
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Agent', episode.agent || none], ['Tests', tests ? `${integer(tests.passed)} of ${integer(tests.total)}` : none, tests ? `${integer(tests.failed)} failed` : 'not counted'],
    ['Time', ms(timeOf(episode)), 'setup, agent and verifier'], ['Setup', ms(episode.setup_ms)], ['Agent’s time', ms(total(episode, 'agent_ms'))], ['Verifier’s time', ms(total(episode, 'verifier_ms'))],
    ['Engine', episode.engine || none, episode.round > 1 ? `sandbox ${episode.round}` : ''],
  ]
  return [
    h('section', { class: 'episode-result', 'aria-label': 'Result of the episode' },
      h('dl', { class: 'rewards' }, rewards(episode.rewards, passed)),
      h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))),
      endOf(episode, item)),
    episode.exception && exceptionNote(episode.exception, said),
    stepsTable(episode.episode_steps, `${said} ${episode.exception?.message ?? ''}`),
    turnsOf(episode, place, announce),
    h('section', { class: 'text' }, h('h2', null, 'Test output'),
      episode.test_output ? h('div', { class: 'box' }, renderPlain(episode.test_output)) : h('p', { class: 'dim' }, 'The tests wrote no output.')),
    episode.logs.length > 0 && h('section', { class: 'text episode-logs', 'aria-labelledby': 'logs' }, h('h2', { id: 'logs' }, 'Logs'),
      episode.logs.map((log) => logDetails(log, place))),
  ].filter((element) => element instanceof HTMLElement)
}

/**
 * @param {Record<string, number> | null} values
 * @param {boolean} passed
 */
function rewards(values, passed) {
  const entries = Object.entries(values ?? {})
  if (entries.length === 0) return h('div', null, h('dt', null, 'Reward'), h('dd', null, none, h('small', null, 'the verifier gave none')))
  return entries.map(([name, value]) => {
    const isPartial = !passed && value > 0 && value < 1
    return h('div', { class: isPartial ? 'partial' : null }, h('dt', null, entries.length === 1 && name === 'reward' ? 'Reward' : `Reward: ${name}`),
      h('dd', null, number(value), isPartial && h('small', null, 'partial: it doesn’t pass')))
  })
}

/**
 * @param {Exception} exception
 * @param {string} said what the reader has read already
 */
function exceptionNote({ name, message }, said) {
  const isSaid = said.includes(message)
  if (isSaid && said.includes(name)) return null
  return h('section', { class: 'note bad' }, h('p', null, h('strong', null, 'The episode ended by an exception: '), h('code', null, name)), !isSaid && message && h('p', { class: 'message' }, withCode(message)))
}

/**
 * @param {Step[]} steps
 * @param {string} said what the reader has read already
 */
function stepsTable(steps, said) {
  if (steps.length === 0) return null
  return h('section', { 'aria-labelledby': 'steps' }, h('h2', { id: 'steps' }, steps.length === 1 ? 'Step' : 'Steps'),
    h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Steps' }, h('table', { class: 'figures' },
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Step'), h('th', { scope: 'col', class: 'number' }, 'Reward'),
        h('th', { scope: 'col', class: 'number' }, 'Tests passed'), h('th', { scope: 'col', class: 'number' }, 'Failed'), h('th', { scope: 'col', class: 'number' }, 'Agent'),
        h('th', { scope: 'col', class: 'number' }, 'Verifier'))),
      h('tbody', null, steps.map((step, i) => [h('tr', null,
        h('th', { scope: 'row' }, step.name ?? `${i + 1}`), h('td', { class: 'number' }, rewardsText(step.rewards)),
        h('td', { class: 'number' }, step.tests ? `${integer(step.tests.passed)} of ${integer(step.tests.total)}` : none), h('td', { class: 'number' }, integer(step.tests?.failed)),
        h('td', { class: 'number' }, ms(step.agent_ms)), h('td', { class: 'number' }, ms(step.verifier_ms))),
      // In a line of its own, since it may be long.
      step.exception && h('tr', { class: 'exception' }, h('td', { class: 'message', colspan: '6' }, h('div', null, h('span', { class: 'visually-hidden' }, 'Exception: '), h('code', null, step.exception.name), step.exception.message && !said.includes(step.exception.message) && [' ', withCode(step.exception.message)])))])))))
}

/** @param {Record<string, number> | null} values */
function rewardsText(values) {
  const entries = Object.entries(values ?? {})
  if (entries.length === 0) return none
  return entries.map(([name, value]) => (entries.length === 1 ? number(value) : `${name} ${number(value)}`)).join(', ')
}

/**
 * Makes the place of the agent's turns; null for agents that ask no model. A task with steps has a trajectory for each.
 *
 * @param {Episode} episode
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
function turnsOf({ logs }, place, announce) {
  const found = logs.flatMap((log) => {
    const [, folder] = /^(.*)agent\/trajectory\.json$/.exec(log.name) ?? []
    return folder === undefined ? [] : [{ log, recording: logs.find(({ name }) => name === `${folder}agent/recording.cast`) ?? null, name: folder.split('/').at(-2) ?? '' }]
  })
  if (found.length === 0) return null
  const box = h('div', { class: 'view' }, loading('Loading the turns'))
  import('./turns.js').then(({ turnsSection }) => {
    if (!place.signal.aborted) replace(box, found.map((one, i) => turnsSection({ ...one, isFirst: i === 0, place, announce })))
  }, (error) => replace(box, failure(error)))
  return box
}

/**
 * Makes a log: its end at once, all of it page by page when the reader asks for it.
 *
 * @param {Log} log
 * @param {Place} place
 */
export function logDetails(log, place) {
  const box = h('div', { class: 'box log-text', tabindex: '0', role: 'region', 'aria-label': log.name })
  const state = h('span', { class: 'dim', role: 'status' })
  const more = h('button', { type: 'button', class: 'button small', hidden: !log.cut || !place.isLive }, 'Read it from the beginning')
  const errors = h('div', null)
  const details = h('details', null, h('summary', null, h('code', null, log.name), h('span', { class: 'dim' }, ` ${bytes(log.bytes)}${log.cut ? ', the end' : ''}`)),
    h('p', { class: 'actions' }, more, state), errors, box)
  details.addEventListener('toggle', () => replace(box, log.end ? renderPlain(log.end) : h('p', { class: 'dim' }, 'Empty.')), { once: true })
  /** Next page; null before the first one. @type {number | null} */
  let offset = null
  more.addEventListener('click', async () => {
    more.disabled = true
    replace(errors)
    try {
      const page = await logPage(place, log.name, offset ?? 0)
      if (offset === null) replace(box)
      box.append(renderPlain(page.text))
      offset = page.next_offset ?? 0
      more.hidden = page.next_offset === null
      setText(more, 'Next page')
      setText(state, page.next_offset === null ? 'All of it is shown.' : `${bytes(page.next_offset)} of it are shown.`)
    } catch (error) {
      if (!place.signal.aborted) replace(errors, problem(/** @type {Error} */ (error)))
    } finally { more.disabled = false }
  })
  return details
}

/** @param {Step[]} steps */
function sumOf(steps) {
  const counted = steps.flatMap(({ tests }) => tests ?? [])
  if (counted.length === 0) return null
  return counted.reduce((sum, tests) => ({ total: sum.total + tests.total, passed: sum.passed + tests.passed, failed: sum.failed + tests.failed }), { total: 0, passed: 0, failed: 0 })
}

/**
 * @param {Episode} episode
 * @param {'agent_ms' | 'verifier_ms'} name
 */
function total(episode, name) {
  const values = episode.episode_steps.flatMap((step) => step[name] ?? [])
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) : null
}

/**
 * Time of an episode in milliseconds; null if no part of it was measured.
 *
 * @param {Episode} episode
 */
function timeOf(episode) {
  const parts = [episode.setup_ms, total(episode, 'agent_ms'), total(episode, 'verifier_ms')].flatMap((part) => part ?? [])
  return parts.length > 0 ? parts.reduce((sum, part) => sum + part, 0) : null
}

/** @param {number | null | undefined} value milliseconds */
function ms(value) {
  return value === null || value === undefined ? none : duration(value / 1000)
}
