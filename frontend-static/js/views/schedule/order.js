/** Orders of schedules: reading them into the form, and the changes that the form makes. */

import { PLAIN } from '../new-run/fields.js'
import { relevant, setAt, valueAt } from '../new-run/order.js'
import { needsModel } from '../../core/agents.js'
import { TERMINAL_TASKS } from '../tasks/variables.js'

/** Fields that only schedules have. */
const OWN = ['name', 'cron', 'time_zone', 'webhook_url', 'enabled']
/** Fields of an order of tasks that are replaced together: the options of the benchmark name the agent, too. */
const OF_AGENT = ['agent', 'agent_options', 'benchmark_options']
/** Beginning of the names of the benchmark's options that are the agent's. */
const AGENT_OPTION = 'agent.'

/**
 * Returns the order of a schedule, with the fields that are set.
 *
 * @param {Api.ScheduleView} schedule
 * @returns {import('../new-run/order.js').Order}
 */
export function orderOfSchedule(schedule) {
  /** @type {import('../new-run/order.js').Order} */
  const order = { model_id: schedule.model, selected_benchmarks: schedule.benchmarks }
  const put = (/** @type {string} */ path, /** @type {unknown} */ value) => {
    const isEmpty = value === null || value === undefined || value === false || (typeof value === 'object' && Object.keys(value).length === 0)
    if (!isEmpty) setAt(order, path, value)
  }
  for (const { name } of PLAIN) if (!/^(?:judge|user_model)\./.test(name)) put(name, valueAt(schedule, name))
  if (order.items || order.subset_count !== undefined) delete order.subset_pct
  for (const name of ['protocols', 'benchmark_options', ...OWN]) put(name, valueAt(schedule, name))
  if (schedule.tasks.length > 0) {
    order.tasks = schedule.tasks
    const { agent, ...options } = schedule.benchmark_options[TERMINAL_TASKS] ?? {}
    order.agent = agent ?? schedule.model
    if (!needsModel(order.agent)) delete order.model_id
    const [ofAgent, others] = [true, false].map((isWanted) => Object.entries(options).filter(([name]) => name.startsWith(AGENT_OPTION) === isWanted))
    delete order.benchmark_options
    put('agent_options', Object.fromEntries(ofAgent.map(([name, value]) => [name.slice(AGENT_OPTION.length), value])))
    if (others.length > 0) order.benchmark_options = { [TERMINAL_TASKS]: Object.fromEntries(others) }
  }
  put('judge.model_id', schedule.judge?.model)
  const user = /** @type {{user_model?: Api.JudgeOrderView | null}} */ (schedule).user_model
  put('user_model.model_id', user?.model)
  for (const name of /** @type {const} */ (['temperature', 'seed', 'max_tokens'])) {
    put(`judge.${name}`, schedule.judge?.[name])
    put(`user_model.${name}`, user?.[name])
  }
  return order
}

/**
 * Returns true if options of a benchmark choose the agent, or are the agent's.
 *
 * @param {import('../new-run/order.js').Order} order
 */
function hasAgentOption(order) {
  return Object.values(order.benchmark_options ?? {}).some((options) => Object.keys(options).some((name) => name === 'agent' || name.startsWith(AGENT_OPTION)))
}

/**
 * Returns the body of `PATCH` that turns one order into another: changed fields, and null for those that were removed.
 *
 * @param {import('../new-run/order.js').Order} before
 * @param {import('../new-run/order.js').Order} after
 */
export function changes(before, after) {
  const [from, to] = /** @type {Record<string, unknown>[]} */ ([relevant(before), relevant(after)])
  /** @type {Record<string, unknown>} */
  const body = {}
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (JSON.stringify(from[name]) !== JSON.stringify(to[name])) body[name] = to[name] ?? null
  }
  // Other options of a benchmark keep the agent that is stored among them, unless the agent is reset.
  if (!to.tasks && 'benchmark_options' in body && hasAgentOption(before)) body.agent = null
  if (to.tasks && OF_AGENT.some((name) => name in body)) for (const name of OF_AGENT) body[name] = to[name] ?? null
  return body
}
