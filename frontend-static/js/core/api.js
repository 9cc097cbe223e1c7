/** Requests to the HTTP API of the server that served the page. */

import { connection, OfflineError } from './connection.js'

/** @typedef {{code: string, file: string | null, line: number | null}} Refusal place and code of a problem in an uploaded task */

/** An error that the server answered with. */
export class ApiError extends Error {
  /**
   * @param {number} status HTTP status
   * @param {string | null} code stable code, see docs/codes.md
   * @param {string} message sentence for people
   * @param {{field: string, message: string}[]} fields problems of single fields
   * @param {Refusal | null} [refusal] where an uploaded task was refused
   */
  constructor(status, code, message, fields, refusal = null) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.fields = fields
    this.refusal = refusal
    /** Sentence that says what to do; empty if there is nothing to add. */
    this.hint = hintOf(code)
  }
}

/**
 * @typedef {object} RequestOptions
 * @property {Record<string, string | number | boolean | null | undefined>} [query] null, undefined and '' are left out
 * @property {AbortSignal} [signal]
 * @property {Record<string, string | null | undefined>} [headers] further headers; null leaves one out
 * @property {boolean} [withoutKey] doesn't send the reader's key
 */

const KEY = 'bench-key'
const SECRET = 'bench-admin-secret'

/** Milliseconds before a reading request that found no server is sent once more. */
const RETRY_PAUSE = 400
/** Codes of answers to a request with a key or secret that the server doesn't accept. */
const REFUSED = new Set(['invalid_access_token', 'invalid_admin_secret', 'invalid_credentials'])

class Api extends EventTarget {
  #key = localStorage.getItem(KEY) ?? ''
  #secret = localStorage.getItem(SECRET) ?? ''
  #remembered = Boolean(this.#key || this.#secret)
  #refused = false

  constructor() {
    super()
    // A key that another window of this browser stores or removes counts here, too.
    addEventListener('storage', ({ key: name }) => {
      if (name !== null && name !== KEY && name !== SECRET) return
      const [key, secret] = [KEY, SECRET].map((name) => localStorage.getItem(name) ?? '')
      const isStored = Boolean(key || secret)
      if (!isStored && !this.#remembered) return
      this.#key = key
      this.#secret = secret
      this.#remembered = isStored
      this.#changed()
    })
  }

  /** Key or access token of the reader, sent as a bearer token. Empty for none. */
  get key() { return this.#key }
  set key(value) {
    this.#key = value.trim()
    this.#store()
  }

  /** Admin secret of the operator. Empty for none. */
  get adminSecret() { return this.#secret }
  set adminSecret(value) {
    this.#secret = value.trim()
    this.#store()
  }

  /** True if the server has refused the key or the secret since it was set: it is wrong, was revoked or has expired. */
  get isRefused() { return this.#refused }

  /** True if this browser keeps the key after the page is closed. */
  get isRemembered() { return this.#remembered }

  /**
   * Stores the key in this browser, or removes it from there. Without a call it stays in memory only.
   *
   * @param {boolean} remember
   */
  rememberKey(remember) {
    this.#remembered = remember
    this.#store()
  }

  #store() {
    for (const [name, value] of [[KEY, this.#key], [SECRET, this.#secret]]) {
      if (this.#remembered && value) localStorage.setItem(name, value)
      else localStorage.removeItem(name)
    }
    this.#changed()
  }

  #changed() {
    pageStart.answers.clear()
    this.#refused = false
    this.dispatchEvent(new Event('key'))
  }

  /**
   * @template [T=unknown] type of the answer, from the API's description
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<T>}
   */
  get(path, options) { return this.#json('GET', path, undefined, options) }

  /**
   * @template [T=unknown] type of the answer, from the API's description
   * @param {string} path
   * @param {unknown} [body] sent as JSON, a FormData or a Blob as it is; undefined sends none
   * @param {RequestOptions} [options]
   * @returns {Promise<T>}
   */
  post(path, body, options) { return this.#json('POST', path, body, options) }

  /**
   * @template [T=unknown] type of the answer, from the API's description
   * @param {string} path
   * @param {unknown} body
   * @param {RequestOptions} [options]
   * @returns {Promise<T>}
   */
  patch(path, body, options) { return this.#json('PATCH', path, body, options) }

  /**
   * @template [T=unknown] type of the answer, from the API's description
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<T>}
   */
  delete(path, options) { return this.#json('DELETE', path, undefined, options) }

  /**
   * Fetches a file.
   *
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<Blob>}
   */
  async blob(path, options) { return (await this.#send('GET', path, undefined, options)).blob() }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} body
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async #json(method, path, body, options) {
    const response = await this.#send(method, path, body, options)
    if (response.status === 204) return null
    try {
      return await response.json()
    } catch (error) {
      if (options?.signal?.aborted) throw error
      throw new ApiError(response.status, null, 'The server\'s answer isn\'t JSON.', [])
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} body
   * @param {RequestOptions} [options]
   */
  async #send(method, path, body, options = {}) {
    const headers = new Headers({ accept: 'application/json' })
    if (!options.withoutKey) {
      if (this.#key) headers.set('authorization', `Bearer ${this.#key}`)
      if (this.#secret) headers.set('x-admin-secret', this.#secret)
    }
    const isRaw = body instanceof FormData || body instanceof Blob
    if (body !== undefined && !isRaw) headers.set('content-type', 'application/json')
    for (const [name, value] of Object.entries(options.headers ?? {})) { if (value) headers.set(name, value) }
    let asked = new Date()
    let response
    const target = address(path, options.query)
    const send = () => fetch(target, {
      method, headers, signal: options.signal, credentials: 'same-origin',
      body: body === undefined || isRaw ? body : JSON.stringify(body),
    })
    try {
      response = await ((method === 'GET' && pageStart.take(target)) || send()).catch(async (error) => {
        // Browsers end all requests when a network interface comes or goes, as with each network of containers on this machine.
        if (method !== 'GET' || options.signal?.aborted || !navigator.onLine) throw error
        await new Promise((resolve) => { setTimeout(resolve, RETRY_PAUSE) })
        asked = new Date()
        return send()
      })
    } catch (error) {
      if (options.signal?.aborted) throw error
      connection.lost()
      throw new OfflineError()
    }
    connection.restored(asked)
    if (response.ok) return response
    const error = await errorOf(response)
    const isOwn = !options.withoutKey && !options.headers?.authorization
    if (isOwn && !this.#refused && REFUSED.has(error.code ?? '')) {
      this.#refused = true
      this.dispatchEvent(new Event('refused'))
    }
    throw error
  }
}

/** The API, with the reader's key. Sends the event `key` when the key changes, and `refused` when the server refuses it. */
export const api = new Api()

/**
 * Adds a query to a path.
 *
 * @param {string} path
 * @param {RequestOptions['query']} [query]
 */
export function address(path, query) {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text ? `${path}?${text}` : path
}

/**
 * Writes the `curl` command of a request. Keys appear as variables, never as values.
 *
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {{key?: boolean, headers?: string[]}} [options] `key` adds the header with a bearer token; default: if one is set
 */
export function curl(method, path, body, options = {}) {
  const lines = [`curl -fsS${method === 'GET' ? '' : ` -X ${method}`} '${location.origin}${path.replaceAll('\'', '%27')}'`]
  if (options.key ?? Boolean(api.key)) lines.push('-H "authorization: Bearer $BENCH_API_KEY"')
  for (const header of options.headers ?? []) lines.push(`-H "${header}"`)
  if (body !== undefined && body !== null) {
    lines.push('-H \'content-type: application/json\'', `-d '${JSON.stringify(body).replaceAll('\'', '\'\\\'\'')}'`)
  }
  return lines.join(' \\\n  ')
}

/**
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
async function errorOf(response) {
  /** @type {Partial<Api.ErrorBody> | null} */
  let body = null
  try { body = await response.json() } catch { /* a proxy's error without JSON */ }
  const detail = body?.detail
  if (Array.isArray(detail)) {
    const fields = detail.map((entry) => ({
      field: entry.loc.filter((part) => part !== 'body' && part !== 'query').join('.'),
      message: entry.msg,
    }))
    const message = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message)).join('; ')
    return new ApiError(response.status, body?.code ?? null, message || `HTTP ${response.status}`, fields)
  }
  const { refusal = null } = /** @type {{refusal?: Refusal | null}} */ (body ?? {})
  const message = typeof detail !== 'string' || !detail ? `The server answered with HTTP ${response.status}.`
    // The sentence begins with a file's name, which stays as it is.
    : refusal?.file && detail.startsWith(refusal.file) ? detail : sentence(detail)
  return new ApiError(response.status, body?.code ?? null, message, [], refusal)
}

/** Makes a sentence, since a hint may follow. @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')
}

/** @type {Record<string, string>} */
const HINTS = {
  missing_credentials: 'Enter your key or access token: the button “Key” in the header.',
  invalid_credentials: 'Enter your key again: the button “Key” in the header.',
  invalid_access_token: 'Ask the operator for a new access token, then enter it with the button “Key” in the header.',
  invalid_admin_secret: 'Enter the operator’s secret again: the button “Key” in the header.',
  not_owner: 'Enter the key that the run or schedule was made with: the button “Key” in the header.',
  invalid_key: 'Enter a key that the provider accepts.',
  key_required: 'Enter the provider’s key again; it was deleted when the run ended.',
  judge_key_required: 'Enter the key of the judge’s provider.',
  user_key_required: 'Enter the key of the user model’s provider.',
  too_many_attempts: 'Wait a minute, then try again.',
  server_busy: 'Wait a few seconds, then try again.',
  order_rate_limit: 'Wait a minute, then try again.',
  open_runs_limit: 'Wait until a run is over, or cancel one.',
  concurrent_change: 'Look at the present state, then try again.',
  maintenance: 'Try again later.',
  run_not_found: 'It may have been deleted. The list of runs has those that exist.',
  route_not_found: 'This server may be older than the page.',
  budget_too_small: 'The budget counts everything that the run ever spent: give a larger one.',
  price_unknown: 'Give a budget in tokens instead.',
}

/**
 * Returns what to do about an error; empty if there is nothing to add.
 *
 * @param {string | null | undefined} code
 */
export function hintOf(code) {
  return (code && HINTS[code]) || ''
}
