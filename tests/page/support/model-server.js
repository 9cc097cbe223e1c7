/** A model server on this machine: OpenAI's chat completions, with the answers, delays and failures that a test wants. */

import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {{model: string, stream?: boolean, messages: {role: string, content: unknown}[], [setting: string]: unknown}} ChatRequest */

/**
 * @typedef {object} Question
 * @property {string} model
 * @property {string} text the last message
 * @property {number} before number of earlier questions with the same model and text
 * @property {ChatRequest} body the whole request
 */

/**
 * @typedef {object} Reply
 * @property {string} [text] the answer
 * @property {string} [reasoning]
 * @property {string} [finish] finish reason, by default `stop`
 * @property {number} [cached] tokens of the request that were read from a cache
 * @property {number} [status] HTTP status of an error
 * @property {string} [body] body of the error instead of the usual one
 * @property {number} [delay] milliseconds before the reply
 */

/** Answers the first option. @returns {Reply} */
const FIRST_OPTION = () => ({ text: 'The answer is (A).' })

export class ModelServer {
  /** @type {Map<string, number>} */
  #asked = new Map()
  #server = http.createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy())
  })

  /** Chooses the reply to a question. Tests may replace it at any time. @type {(question: Question) => Reply | Promise<Reply>} */
  answer = FIRST_OPTION
  /** Number of questions so far. */
  total = 0

  async start() {
    await new Promise((resolve) => { this.#server.listen(0, '127.0.0.1', () => resolve(null)) })
    return this
  }

  /** Value for `OPENAI_COMPATIBLE_BASE_URL`. */
  get url() {
    return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#server.address()).port}/v1`
  }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /**
   * Holds every answer back until the returned function is called.
   *
   * @param {(question: Question) => Reply} [answer] the replies after that
   */
  hold(answer = FIRST_OPTION) {
    /** @type {() => void} */
    let release = () => {}
    const released = new Promise((resolve) => { release = () => resolve(null) })
    this.answer = async (question) => {
      await released
      return answer(question)
    }
    return release
  }

  /**
   * @param {http.IncomingMessage} request
   * @param {http.ServerResponse} response
   */
  async #serve(request, response) {
    if (request.method !== 'POST') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}')
      return
    }
    let text = ''
    for await (const chunk of request) text += chunk
    /** @type {ChatRequest} */
    const body = JSON.parse(text)
    const question = String(body.messages.at(-1)?.content ?? '')
    const key = `${body.model}\n${question}`
    const before = this.#asked.get(key) ?? 0
    this.#asked.set(key, before + 1)
    this.total += 1
    const reply = await this.answer({ model: body.model, text: question, before, body })
    if (reply.delay) await sleep(reply.delay)
    if (response.destroyed) return
    if (reply.status) {
      response.writeHead(reply.status, { 'content-type': 'application/json' })
        .end(reply.body ?? JSON.stringify({ error: { message: `the model server answers ${reply.status}`, type: 'server_error' } }))
      return
    }
    send(response, body, reply, question)
  }
}

/**
 * @param {http.ServerResponse} response
 * @param {ChatRequest} body
 * @param {Reply} reply
 * @param {string} question
 */
function send(response, body, { text = '', reasoning, finish = 'stop', cached }, question) {
  const usage = {
    prompt_tokens: Math.ceil(question.length / 4), completion_tokens: Math.ceil((text.length + (reasoning?.length ?? 0)) / 4), total_tokens: 0,
  }
  if (cached !== undefined) Object.assign(usage, { prompt_tokens_details: { cached_tokens: cached } })
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens
  const message = { role: 'assistant', content: text, ...(reasoning ? { reasoning_content: reasoning } : {}) }
  const head = { id: 'answer', model: body.model, created: 0 }
  if (!body.stream) {
    response.writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], usage }))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const part = (/** @type {object} */ value) => response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...value })}\n\n`)
  part({ choices: [{ index: 0, delta: message, finish_reason: null }] })
  part({ choices: [{ index: 0, delta: {}, finish_reason: finish }] })
  part({ choices: [], usage })
  response.end('data: [DONE]\n\n')
}
