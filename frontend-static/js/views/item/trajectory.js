/** Trajectories of agents in the format ATIF: what was said and done, turn by turn. Models and containers wrote them. */

/**
 * @typedef {object} Command
 * @property {'keys' | 'command' | 'end' | 'other'} kind
 * @property {string} text
 * @property {number | null} seconds time that the agent waits for keystrokes to have an effect
 */
/** @typedef {{source: string, text: string}} Note what the agent is told before it answers */
/**
 * @typedef {object} Turn
 * @property {number} number from 1
 * @property {Note[]} before
 * @property {string} message
 * @property {string} reasoning
 * @property {Command[]} commands
 * @property {string | null} observation what the agent saw afterwards; null without one
 * @property {string[]} others files with trajectories that this one refers to
 * @property {string} model
 * @property {number | null} clock time of day of the reply, in seconds since 1970
 * @property {boolean} isAnswered false if the model couldn't be asked
 * @property {number | null} input tokens of the request, cached ones included
 * @property {number | null} cached
 * @property {number | null} output
 * @property {number | null} cost dollars
 * @property {number | null} ms time of the model call
 */
/** @typedef {{agent: string, model: string, turns: Turn[], after: Note[], totals: {input: number | null, cached: number | null, output: number | null, cost: number | null, ms: number}}} Trajectory */

/**
 * Reads a trajectory.
 *
 * @param {string} text
 * @returns {Trajectory}
 * @throws {Error} with a sentence for readers, if the text is no trajectory
 */
export function readTrajectory(text) {
  /** @type {any} */
  let all
  try { all = JSON.parse(text) } catch { throw new Error('The trajectory isn’t valid JSON.') }
  if (!all || typeof all !== 'object' || !Array.isArray(all.steps)) throw new Error('The file isn’t a trajectory in the format ATIF.')
  return trajectoryOf(all)
}

/**
 * Divides the steps of a trajectory into turns.
 *
 * @param {any} all an object with an array `steps`
 * @returns {Trajectory}
 */
export function trajectoryOf(all) {
  /** @type {Turn[]} */
  const turns = []
  /** @type {Note[]} */
  let before = []
  /** @type {string[]} */
  let others = []
  for (const step of all.steps) {
    if (!step || typeof step !== 'object') continue
    if (step.source !== 'agent') {
      before.push({ source: string(step.source) || 'user', text: textOf(step.message) })
      others.push(...othersOf(step.observation))
      continue
    }
    turns.push({ ...turnOf(step, turns.length + 1, string(all.agent?.model_name)), before, others: [...others, ...othersOf(step.observation)] })
    before = []
    others = []
  }
  const { final_metrics: sums } = all
  return {
    agent: string(all.agent?.name), model: string(all.agent?.model_name), turns, after: before,
    totals: {
      input: number(sums?.total_prompt_tokens), cached: number(sums?.total_cached_tokens), output: number(sums?.total_completion_tokens), cost: number(sums?.total_cost_usd),
      ms: turns.reduce((sum, { ms }) => sum + (ms ?? 0), 0),
    },
  }
}

/** @param {any} step @param {number} at @param {string} model @returns {Turn} */
function turnOf(step, at, model) {
  const metrics = step.metrics ?? {}
  const calls = Array.isArray(step.tool_calls) ? step.tool_calls : []
  const time = Date.parse(string(step.timestamp))
  return {
    number: at, before: [], others: [], message: textOf(step.message), reasoning: string(step.reasoning_content), commands: calls.map(commandOf), observation: observationOf(step.observation),
    model: string(step.model_name) || model, clock: Number.isNaN(time) ? null : time / 1000, isAnswered: step.llm_call_count !== 0,
    input: number(metrics.prompt_tokens), cached: number(metrics.cached_tokens), output: number(metrics.completion_tokens), cost: number(metrics.cost_usd), ms: number(metrics.extra?.latency_ms),
  }
}

/** @param {any} call @returns {Command} */
function commandOf(call) {
  const values = call?.arguments ?? {}
  const name = string(call?.function_name)
  if (name === 'bash_command') return { kind: 'keys', text: string(values.keystrokes), seconds: number(values.duration) }
  if (name === 'bash' && typeof values.command === 'string') return { kind: 'command', text: values.command, seconds: null }
  if (name === 'mark_task_complete' || name === 'finish') return { kind: 'end', text: '', seconds: null }
  return { kind: 'other', text: `${name} ${JSON.stringify(values, null, 2)}`, seconds: null }
}

/** @param {any} observation */
function observationOf(observation) {
  const texts = resultsOf(observation).flatMap((result) => (result?.content === undefined || result.content === null ? [] : textOf(result.content)))
  return texts.length > 0 ? texts.join('\n') : null
}

/** @param {any} observation */
function othersOf(observation) {
  return resultsOf(observation).flatMap((result) => (Array.isArray(result?.subagent_trajectory_ref) ? result.subagent_trajectory_ref : []))
    .flatMap((/** @type {any} */ reference) => string(reference?.trajectory_path) || [])
}

/** @param {any} observation @returns {any[]} */
function resultsOf(observation) {
  return Array.isArray(observation?.results) ? observation.results : []
}

/** Returns a text, or the texts of a message with several parts. @param {any} value */
function textOf(value) {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map((part) => string(part?.text)).join('\n')
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** @param {unknown} value */
function string(value) { return typeof value === 'string' ? value : '' }

/** @param {unknown} value */
function number(value) { return typeof value === 'number' && Number.isFinite(value) ? value : null }
