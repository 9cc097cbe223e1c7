import { ConnectError, PoolClosedError } from "./errors.js";

/**
 * Lends connections, first come, first served.
 *
 * Opens up to `maxConnections` connections on demand and keeps them. Requests that find no free connection wait.
 */
export class Pool {
  #connect;
  #maxConnections;
  #open = 0;
  #connecting = 0;
  #idle = [];
  #leased = new Set();
  #waiting = [];
  #isClosed = false;

  constructor({ connect, clock, maxConnections = 4 }) {
    if (typeof connect !== "function") throw new TypeError("`connect` must be a function");
    if (clock === undefined) throw new TypeError("`clock` is missing");
    if (!Number.isInteger(maxConnections) || maxConnections < 1) {
      throw new RangeError("`maxConnections` must be a positive integer");
    }
    this.#connect = connect;
    this.#maxConnections = maxConnections;
  }

  /** Returns a promise of a lease. */
  acquire() {
    if (this.#isClosed) return Promise.reject(new PoolClosedError("the pool is closed"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#dispatch();
    });
  }

  stats() {
    return {
      connecting: this.#connecting,
      idle: this.#idle.length,
      leased: this.#leased.size,
      waiting: this.#waiting.length,
    };
  }

  /** Closes idle connections, and others when they come back. Requests that wait fail. */
  async drain() {
    this.#isClosed = true;
    for (const waiter of this.#waiting.splice(0)) waiter.reject(new PoolClosedError("the pool is closed"));
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()));
  }

  #dispatch() {
    while (this.#waiting.length > 0 && this.#idle.length > 0) {
      this.#grant(this.#waiting.shift(), this.#idle.pop());
    }
    if (this.#waiting.length > this.#connecting && this.#open < this.#maxConnections) this.#openOne();
  }

  #grant(waiter, connection) {
    const lease = new Lease(connection, (discard) => this.#takeBack(lease, discard));
    this.#leased.add(lease);
    waiter.resolve(lease);
  }

  #takeBack(lease, discard) {
    this.#leased.delete(lease);
    if (discard || this.#isClosed) {
      this.#open -= 1;
      lease.connection.close();
    } else {
      this.#idle.push(lease.connection);
    }
    this.#dispatch();
  }

  async #openOne() {
    this.#open += 1;
    this.#connecting += 1;
    try {
      const connection = await this.#connect({ signal: new AbortController().signal });
      this.#connecting -= 1;
      this.#idle.push(connection);
      this.#dispatch();
    } catch (error) {
      this.#open -= 1;
      this.#connecting -= 1;
      this.#waiting.shift()?.reject(new ConnectError("can't open a connection", { cause: error }));
    }
  }
}

/** A connection that a request may use until it calls `release`. */
class Lease {
  #giveBack;
  #isReleased = false;

  constructor(connection, giveBack) {
    this.connection = connection;
    this.#giveBack = giveBack;
  }

  /** Returns the connection to the pool. `discard` closes it, because it can't be used again. */
  release({ discard = false } = {}) {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#giveBack(discard);
  }
}
