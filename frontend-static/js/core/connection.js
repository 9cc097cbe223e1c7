/**
 * The connection to the server: its state, as the latest requests showed it, and repeated requests: one in flight, none in
 * hidden tabs, fewer when nothing changes or the server is away.
 */

/** @typedef {'online' | 'offline' | 'reconnecting'} ConnectionState */

class Connection extends EventTarget {
  /** @type {ConnectionState} */
  state = navigator.onLine ? 'online' : 'offline'
  /** Time of the latest change. */
  since = new Date()
  /** Time of the latest loss of the network. */
  #offline = this.since

  constructor() {
    super()
    addEventListener('offline', () => { this.#offline = new Date(); this.#set('offline') })
    addEventListener('online', () => { if (this.state === 'offline') this.#set('reconnecting') })
  }

  /** Records that a request found no server. */
  lost() { this.#set(navigator.onLine ? 'reconnecting' : 'offline') }

  /**
   * Records that the server answered. An answer to a request that is older than the loss of the network says nothing of now.
   *
   * @param {Date} asked time of the request
   */
  restored(asked) { if (this.state !== 'offline' || asked >= this.#offline) this.#set('online') }

  /** @param {ConnectionState} state */
  #set(state) {
    if (state === this.state) return
    if (this.state === 'online' || state === 'online') this.since = new Date()
    this.state = state
    this.dispatchEvent(new Event('change'))
  }
}

/** Sends the event `change`. */
export const connection = new Connection()

/** The server could not be reached. */
export class OfflineError extends Error {
  constructor() {
    super('The server can\'t be reached.')
    this.name = 'OfflineError'
    this.hint = 'The page keeps trying, and continues by itself.'
  }
}

/**
 * @template T
 * @typedef {object} PollOptions
 * @property {AbortSignal} signal ends the polling
 * @property {number | ((value: T) => number)} [interval] milliseconds between an answer and the next request; default 5,000
 * @property {number | ((value: T) => number)} [max] longest interval in milliseconds after doublings; default 60,000
 * @property {(value: T) => boolean} [isOver] true ends the polling
 * @property {(error: Error) => void} [onError] gets errors other than a lost connection; by default they are only retried
 */

/** Longest interval while the server can't be reached, in milliseconds. */
const OFFLINE_MAX = 10_000

/**
 * Loads a value repeatedly and shows it. An unchanged value (the same JSON) and an error double the interval, up to `max`.
 * A change brings it back. Becoming visible or online polls immediately.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {(value: T) => void} show called for changed values only
 * @param {PollOptions<T>} options
 * @returns {{now: () => void}} `now` polls immediately
 */
export function poll(load, show, { signal, interval = 5000, max = 60_000, isOver, onError }) {
  const base = (/** @type {T | undefined} */ value) =>
    typeof interval === 'number' ? interval : value === undefined ? 2000 : interval(value)
  const longest = (/** @type {T | undefined} */ value) =>
    typeof max === 'number' ? max : value === undefined ? 60_000 : max(value)
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let factor = 1
  let last = ''
  let busy = false
  let again = false
  let over = false
  /** @type {T | undefined} */
  let value

  const schedule = (/** @type {number} */ delay) => {
    clearTimeout(timer)
    if (!over && !signal.aborted && !document.hidden) timer = setTimeout(turn, delay)
  }
  const turn = async () => {
    if (busy || over || signal.aborted) { again = busy; return }
    busy = true
    let delay
    try {
      value = await load(signal)
      if (signal.aborted) return
      const text = JSON.stringify(value)
      factor = text === last ? factor * 2 : 1
      if (text !== last) { last = text; show(value) }
      over = isOver?.(value) ?? false
      delay = Math.min(longest(value), base(value) * factor)
    } catch (error) {
      if (signal.aborted) return
      const isOffline = error instanceof OfflineError
      factor *= 2
      delay = Math.min(isOffline ? OFFLINE_MAX : longest(value), base(value) * factor)
      if (!isOffline) onError ? onError(/** @type {Error} */ (error)) : console.warn(error)
    } finally {
      busy = false
    }
    schedule(again ? 0 : delay)
    again = false
  }
  const now = () => {
    factor = 1
    if (busy) again = true
    else schedule(0)
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : now()), { signal })
  addEventListener('online', now, { signal })
  signal.addEventListener('abort', () => clearTimeout(timer))
  void turn()
  return { now: () => { over = false; now() } }
}
