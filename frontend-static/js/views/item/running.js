/** An episode without a result: what happens now, and the agent's turns so far. */

import { api } from '../../core/api.js'
import { poll } from '../../core/connection.js'
import { h, replace, setText } from '../../core/dom.js'
import { path } from '../../core/router.js'
import { hasConversations, hasEpisodes } from '../../core/agents.js'
import { failure } from '../../core/states.js'
import { course } from './turns.js'
import { trajectoryOf } from './trajectory.js'

/** @typedef {import('./logs.js').Place} Place */

/** Milliseconds between two requests at first, and at most, while nothing happens. */
const INTERVAL = 2_000
const INTERVAL_MAX = 15_000

/** What happens in an episode, by its phase. @type {Record<string, string>} */
const PHASES = {
  waiting: 'The episode waits for a sandbox.',
  setup: 'The environment is being set up: its image is built, and its containers are started.',
  agent: 'The agent is at work.',
  verifier: 'The agent has ended, and the tests verify its work.',
  running: 'The episode is running.',
  interrupted: 'The run is interrupted: no process works on it until it is resumed.',
  over: 'The run ended before the episode was over.',
}

/** The same where an agent changes the files of a programming task. @type {Record<string, string>} */
const TASK_PHASES = { setup: 'The project is being laid out in a sandbox.', verifier: 'The agent has ended, and its change is built and tested.' }

/** The same of a change of a repository. @type {Record<string, string>} */
const REPOSITORY_PHASES = {
  waiting: 'The sample waits for a sandbox.', setup: 'The image is being fetched, and the repository is being prepared in a container.',
  verifier: 'Verification: the tests run on the change in a second container.', running: 'The sample is running.',
}

/** The same of a conversation. @type {Record<string, string>} */
const DIALOGUE_PHASES = {
  waiting: 'The conversation waits for a sandbox.', setup: 'The environment is being set up.', agent: 'Agent and user simulator are talking.',
  verifier: 'The conversation has ended, and its reward is being computed.', running: 'The actions of a right conversation are being played.',
  over: 'The run ended before the conversation was over.',
}

/** Returns the phases that mean something else in a benchmark. @param {string} benchmark @returns {Record<string, string>} */
function phasesOf(benchmark) {
  if (hasEpisodes(benchmark)) return {}
  if (hasConversations(benchmark)) return DIALOGUE_PHASES
  return benchmark === 'swe_bench_pro' ? REPOSITORY_PHASES : TASK_PHASES
}

/**
 * Makes the section of an episode without a result. It follows the episode until that ends.
 *
 * @param {Place} place
 * @param {(text: string) => void} announce
 * @param {() => void} onOver is called once, when the episode is over
 */
export function runningSection(place, announce, onOver) {
  const { run, benchmark, item, signal } = place
  const phase = h('p', { role: 'status' })
  const box = h('div', { class: 'view' })
  const phases = phasesOf(benchmark)
  const title = hasConversations(benchmark) ? 'Conversation' : 'Turn by turn'
  const wait = /** @type {{waits_for?: unknown} | null} */ (item.item_metadata)?.waits_for
  const section = h('section', { class: 'turns', 'aria-label': title }, h('h2', null, title), phase, typeof wait === 'string' && h('p', { class: 'note warn' }, wait), box)
  const address = `/api${path('runs', run)}/items/turns`
  /** @type {unknown[]} */
  let steps = []
  // Which attempt of the agent the steps are of.
  let known = ''
  /** @type {ReturnType<typeof course> | null} */
  let shown = null

  /** @returns {Promise<Api.ItemTurns>} */
  const ask = (/** @type {number} */ from) => api.get(address, { query: { benchmark, position: item.position, sample: item.sample, from }, signal })
  const load = async () => {
    for (;;) {
      // The last step may have got its observation since.
      const from = Math.max(steps.length - 1, 0)
      const view = await ask(from)
      const current = `${view.round} ${view.task_step}`
      if (current !== known && steps.length > 0) {
        steps = []
        known = current
        continue
      }
      known = current
      steps.splice(view.from, steps.length, ...view.steps)
      if (view.steps.length === 0 || steps.length >= view.total) return view
    }
  }
  let wasOpen = false
  /** Steps of what is shown, as `known`. */
  let shownOf = ''
  const show = (/** @type {Api.ItemTurns} */ view) => {
    if (view.phase === 'over' && wasOpen) return
    const isLater = view.round > 1 && view.phase !== 'waiting'
    setText(phase, [phases[view.phase] ?? PHASES[view.phase] ?? '', (view.task_step ?? 0) > 0 && `This is step ${Number(view.task_step) + 1} of the task.`, isLater && `An earlier sandbox was lost: this is number ${view.round}.`].filter(Boolean).join(' '))
    if (hasConversations(benchmark)) return void talk(view)
    const sums = view.totals
    const trajectory = trajectoryOf({
      agent: { name: view.agent }, steps,
      final_metrics: sums && { total_prompt_tokens: sums.input_tokens, total_cached_tokens: sums.cached_tokens, total_completion_tokens: sums.output_tokens, total_cost_usd: sums.cost_usd },
    })
    // The files of other calls are written when the episode ends.
    for (const turn of trajectory.turns) turn.others = []
    if (shown && shownOf === known) shown.update(trajectory)
    else if (trajectory.turns.length > 0) {
      shown = course(trajectory, { recording: null, isFirst: true, place, announce, name: '', isRunning: view.phase !== 'over' })
      shownOf = known
      replace(box, shown.parts)
    } else {
      shown = null
      replace(box, view.phase === 'agent' && h('p', { class: 'dim' }, 'The model hasn’t answered yet.'))
    }
  }
  /** @type {Promise<{show: (steps: unknown[]) => void}> | null} */
  let talking = null
  const talk = async (/** @type {Api.ItemTurns} */ view) => {
    if (view.steps.length + steps.length === 0) { if (!talking) replace(box, view.phase === 'agent' && h('p', { class: 'dim' }, 'Nothing was said yet.')); return }
    talking ??= Promise.all([import('./thread.js'), import('./conversation.js')]).then(([{ thread }, { messagesOfSteps }]) => {
      const made = thread({ signal, announce })
      replace(box, made.element)
      return { show: (/** @type {unknown[]} */ list) => made.show(messagesOfSteps(list)) }
    })
    const shown = [...steps]
    try {
      (await talking).show(shown)
    } catch (error) {
      talking = null
      if (!signal.aborted) replace(box, failure(/** @type {Error} */ (error)))
    }
  }
  poll(load, show, {
    signal, interval: INTERVAL, max: INTERVAL_MAX,
    isOver: ({ phase: now }) => {
      if (now !== 'over') { wasOpen = true; return false }
      if (wasOpen) onOver()
      return true
    },
  })
  return section
}
