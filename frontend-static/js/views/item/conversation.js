/** Conversations of an agent, a simulated user and their tools: messages of a report, or steps of a trajectory. Models wrote them. */

/**
 * @typedef {object} Call
 * @property {string} id
 * @property {string} name
 * @property {string} values arguments as JSON
 * @property {string | null} result null before there is one
 * @property {boolean} isFailed
 */
/**
 * @typedef {object} Message
 * @property {number} number from 1
 * @property {'agent' | 'user'} by
 * @property {string} text
 * @property {string} reasoning
 * @property {Call[]} calls
 * @property {number} omittedCalls calls that were left out, because there are too many
 * @property {number} omittedBytes bytes of the texts that were left out
 * @property {string} model
 * @property {number | null} clock time of day, in milliseconds since 1970
 * @property {number | null} input tokens of the request, cached ones included
 * @property {number | null} output
 * @property {number | null} cost dollars
 * @property {number | null} ms time of the model call
 */

/**
 * Reads messages in the form of the official package. Results of tools join the calls that they answer.
 *
 * @param {unknown[]} list
 * @returns {{messages: Message[], omitted: number}} `omitted` is the number of messages that were left out at the end
 */
export function messagesOf(list) {
  /** @type {Message[]} */
  const messages = []
  let omitted = 0
  for (const one of list) {
    const given = /** @type {any} */ (one ?? {})
    if (typeof given.omitted_messages === 'number') { omitted += given.omitted_messages; continue }
    if (given.role === 'tool') {
      answer(messages.at(-1), string(given.id), string(given.content), given.error === true)
      continue
    }
    if (given.role !== 'assistant' && given.role !== 'user') continue
    const usage = given.usage ?? {}
    messages.push({
      number: messages.length + 1, by: given.role === 'user' ? 'user' : 'agent', text: string(given.content), reasoning: string(given.reasoning),
      calls: array(given.tool_calls).map((call) => callOf(string(call?.id), call?.name, call?.arguments)),
      omittedCalls: number(given.omitted_tool_calls) ?? 0, omittedBytes: number(given.omitted_bytes) ?? 0, model: string(given.model), clock: timeOf(given.timestamp),
      input: number(usage.input_tokens), output: number(usage.output_tokens), cost: number(usage.cost_usd) || null, ms: number(given.latency_ms),
    })
  }
  return { messages, omitted }
}

/**
 * Reads steps of a trajectory in the format ATIF, which has calls of the user in the field `extra`.
 *
 * @param {unknown[]} steps
 * @returns {Message[]}
 */
export function messagesOfSteps(steps) {
  /** @type {Message[]} */
  const messages = []
  for (const one of steps) {
    const step = /** @type {any} */ (one ?? {})
    if (step.source !== 'agent' && step.source !== 'user') continue
    const isUser = step.source === 'user'
    const extra = step.extra ?? {}
    const metrics = step.metrics ?? extra.metrics ?? {}
    const failed = new Set(array(extra.failed_calls))
    /** @type {Message} */
    const message = {
      number: messages.length + 1, by: isUser ? 'user' : 'agent', text: string(step.message), reasoning: string(step.reasoning_content ?? extra.reasoning_content),
      calls: array(isUser ? extra.tool_calls : step.tool_calls).map((call) => callOf(string(call?.tool_call_id), call?.function_name, call?.arguments)),
      omittedCalls: 0, omittedBytes: 0, model: string(step.model_name), clock: timeOf(step.timestamp),
      input: number(metrics.prompt_tokens), output: number(metrics.completion_tokens), cost: number(metrics.cost_usd) || null, ms: number(metrics.extra?.latency_ms),
    }
    for (const result of array(isUser ? extra.results : step.observation?.results)) {
      answer(message, string(result?.source_call_id), string(result?.content), failed.has(result?.source_call_id))
    }
    messages.push(message)
  }
  return messages
}

/**
 * Adds a result to the call with its id, or to the first one without a result.
 *
 * @param {Message | undefined} message
 * @param {string} id
 * @param {string} text
 * @param {boolean} isFailed
 */
function answer(message, id, text, isFailed) {
  const open = message?.calls.filter(({ result }) => result === null) ?? []
  const call = open.find((one) => one.id === id) ?? (message?.omittedCalls ? undefined : open[0])
  if (call) Object.assign(call, { result: text, isFailed })
}

/** @param {string} id @param {unknown} name @param {unknown} values @returns {Call} */
function callOf(id, name, values) {
  const text = typeof values === 'string' ? values : values && Object.keys(values).length > 0 ? JSON.stringify(values) : ''
  return { id, name: string(name), values: text === '{}' ? '' : text, result: null, isFailed: false }
}

/** @param {unknown} value */
function timeOf(value) {
  const time = Date.parse(string(value))
  return Number.isNaN(time) ? null : time
}

/** @param {unknown} value @returns {any[]} */
function array(value) { return Array.isArray(value) ? value : [] }

/** @param {unknown} value */
function string(value) { return typeof value === 'string' ? value : '' }

/** @param {unknown} value */
function number(value) { return typeof value === 'number' && Number.isFinite(value) ? value : null }
