/** An episode without a result: what happens now, and the agent's turns so far. */

import { api } from '../../core/api.js'
import { poll } from '../../core/connection.js'
import { h, replace, setText } from '../../core/dom.js'
import { path } from '../../core/router.js'
import { hasEpisodes } from '../../core/run-facts.js'
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
  const section = h('section', { class: 'turns', 'aria-label': 'Turn by turn' }, h('h2', null, 'Turn by turn'), phase, box)
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
    setText(phase, [(!hasEpisodes(benchmark) && TASK_PHASES[view.phase]) || (PHASES[view.phase] ?? ''), (view.task_step ?? 0) > 0 && `This is step ${Number(view.task_step) + 1} of the task.`, isLater && `An earlier sandbox was lost: this is number ${view.round}.`].filter(Boolean).join(' '))
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
