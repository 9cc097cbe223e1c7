import { Coalescer } from "./coalescer.js";
import { Pool } from "./pool.js";

/** Fetches values from the upstream service for many tenants. */
export class Gateway {
  #pool;
  #coalescer;

  /** Takes the options of `Pool`. */
  constructor(options) {
    this.#pool = new Pool(options);
    this.#coalescer = new Coalescer({ load: (key, flight) => this.#load(key, flight), clock: options.clock });
  }

  /** Returns a promise of the value for a key. */
  fetch(key, { tenant = "default" } = {}) {
    return this.#coalescer.get(key, { tenant });
  }

  stats() {
    return { ...this.#pool.stats(), flights: this.#coalescer.size };
  }

  /** Stops the gateway. */
  close() {
    return this.#pool.drain();
  }

  async #load(key) {
    const lease = await this.#pool.acquire();
    const value = await lease.connection.request(key, { signal: new AbortController().signal });
    lease.release();
    return value;
  }
}
