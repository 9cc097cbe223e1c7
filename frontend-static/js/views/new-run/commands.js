/** Commands that do what the form does: `bench run` and `curl`. Keys appear as variables, never as values. */

import { curl } from '../../core/api.js'
import { format, PLAIN } from './fields.js'
import { relevant, valueAt } from './order.js'
import { modelsOf, REASONING } from './state.js'

/**
 * Quotes a word for POSIX shells.
 *
 * @param {string} word
 */
export function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/**
 * Joins an option with its value. A value that begins with a hyphen needs `=`.
 *
 * @param {string} flag
 * @param {string} value
 */
export function option(flag, value) {
  return value.startsWith('-') ? `${flag}=${quote(value)}` : `${flag} ${quote(value)}`
}

/**
 * Returns the options of `bench run` and `bench schedules add` for an order.
 *
 * @param {import('./order.js').Order} order
 * @param {import('./sweep.js').Sweep} [sweep]
 * @returns {string[]}
 */
export function optionsOf(order, sweep = { models: [], levels: [] }) {
  const kept = relevant(order)
  const parts = modelsOf(kept, sweep).map((model) => option('--model', model))
  if (sweep.levels.length > 0) parts.push(option('--thinking-level', sweep.levels.join(',')))
  if (kept.tasks) parts.push(...kept.tasks.map(() => '--task PATH'))
  else for (const name of kept.selected_benchmarks ?? []) parts.push(option('--benchmark', name))
  if (kept.agent) parts.push(option('--agent', kept.agent))
  for (const [name, value] of Object.entries(kept.agent_options ?? {})) parts.push(option('--agent-option', `${name}=${value}`))
  for (const [name, protocol] of Object.entries(kept.protocols ?? {})) parts.push(option('--protocol', `${name}=${protocol}`))
  for (const [name, options] of Object.entries(kept.benchmark_options ?? {})) {
    for (const [key, value] of Object.entries(options)) parts.push(option('--option', `${name}.${key}=${value}`))
  }
  for (const spec of PLAIN) {
    const value = valueAt(kept, spec.name)
    if (value === undefined || (sweep.levels.length > 0 && REASONING.includes(spec.name))) continue
    if (spec.kind === 'switch') parts.push(spec.flag)
    else if (Array.isArray(value)) parts.push(...value.map((entry) => option(spec.flag, entry)))
    else if (spec.name === 'system_prompt' && typeof value === 'string' && value.startsWith('@')) parts.push(promptFile(value))
    else parts.push(option(spec.flag, format(spec, value)))
  }
  if (kept.judge?.model_id) parts.push(option('--judge-model', kept.judge.model_id))
  const user = valueAt(kept, 'user_model.model_id')
  if (user) parts.push(option('--user-model', String(user)))
  return parts
}

/**
 * Returns the option for a prompt that begins with `@`, which the command would take for the name of a file.
 *
 * @param {string} prompt
 */
function promptFile(prompt) {
  return `--system-prompt @<(printf %s ${quote(prompt)})`
}

/**
 * Returns the command that orders the same runs at the server of this page. It reads keys from `BENCH_API_KEY`,
 * `BENCH_JUDGE_API_KEY` and `BENCH_USER_API_KEY`.
 *
 * @param {import('./order.js').Order} order
 * @param {import('./sweep.js').Sweep} [sweep]
 * @param {boolean} [needsKey] names the variable of the key, so that the command says if it isn't set
 */
export function benchCommand(order, sweep, needsKey = false) {
  return lines(['bench run', ...optionsOf(order, sweep), ...needsKey ? [option('--api-key-env', 'BENCH_API_KEY')] : [], option('--server', location.origin)])
}

/**
 * Returns the requests that order the same runs, one for each.
 *
 * @param {import('./order.js').Order[]} orders
 * @param {{path: string, hasKey: boolean, hasJudgeKey: boolean, hasUserKey: boolean}} context
 */
export function curlCommands(orders, { path, hasKey, hasJudgeKey, hasUserKey }) {
  const headers = [
    ...hasJudgeKey ? ['x-judge-authorization: Bearer $BENCH_JUDGE_API_KEY'] : [],
    ...hasUserKey ? ['x-user-authorization: Bearer $BENCH_USER_API_KEY'] : [],
  ]
  return orders.map((order) => curl('POST', path, relevant(order), { key: hasKey, headers })).join('\n')
}

/**
 * Puts the parts of a command on lines of their own.
 *
 * @param {string[]} parts
 */
export function lines(parts) {
  return parts.join(' \\\n  ')
}
