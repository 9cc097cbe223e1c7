/** Kinds of benchmarks and agents by their names, and names of models with what belongs to them. */

/**
 * True for the benchmark whose samples are episodes of terminal tasks.
 *
 * @param {string} benchmark
 */
export function hasEpisodes(benchmark) {
  return benchmark === 'terminal_tasks' || benchmark === 'terminal_bench_hard'
}

/** True for the benchmark whose samples are conversations with a simulated user. @param {string} benchmark */
export function hasConversations(benchmark) {
  return benchmark === 'tau_bench_telecom'
}

/** Name of the agent whose files users upload. */
export const CUSTOM = 'custom'

/** Agents that ask no model. They stand in the place of one; custom agents with their names: `custom/NAME@VERSION`. */
const WITHOUT_MODEL = new Set(['oracle', 'nop', CUSTOM])

/** @param {string} agent */
export function needsModel(agent) {
  return !WITHOUT_MODEL.has(agent) && !agent.startsWith(`${CUSTOM}/`)
}

/**
 * Adds an agent that asks a model to the name of what it works on, or works with: `terminal_tasks with bash`.
 *
 * @param {string} name
 * @param {string | undefined} agent
 */
export function withAgent(name, agent) {
  return agent && needsModel(agent) ? `${name} with ${agent}` : name
}

/**
 * Adds the model that simulates users to the name of a model.
 *
 * @param {string} model
 * @param {string | null | undefined} user
 */
export function withUser(model, user) {
  return user ? `${model} with user ${user}` : model
}

/**
 * Adds a thinking level to the name of a model.
 *
 * @param {string} model
 * @param {string | null | undefined} level
 */
export function leveled(model, level) {
  return level ? `${model} (thinking ${level})` : model
}
