/** State of the connection to the server, as the latest requests showed it. */

/** @typedef {'online' | 'offline' | 'reconnecting'} ConnectionState */

class Connection extends EventTarget {
  /** @type {ConnectionState} */
  state = navigator.onLine ? 'online' : 'offline'
  /** Time of the latest change. */
  since = new Date()

  constructor() {
    super()
    addEventListener('offline', () => this.#set('offline'))
    addEventListener('online', () => { if (this.state === 'offline') this.#set('reconnecting') })
  }

  /** Records that a request found no server. */
  lost() { this.#set(navigator.onLine ? 'reconnecting' : 'offline') }

  /** Records that the server answered. */
  restored() { this.#set('online') }

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
