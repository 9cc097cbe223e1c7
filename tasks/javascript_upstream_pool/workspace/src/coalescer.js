/**
 * Merges requests for the same key.
 *
 * The first caller of a key starts a flight: a call of `load`. Callers that come while it lasts get its outcome.
 */
export class Coalescer {
  #load;
  #flights = new Map();

  constructor({ load, clock }) {
    if (typeof load !== "function") throw new TypeError("`load` must be a function");
    if (clock === undefined) throw new TypeError("`clock` is missing");
    this.#load = load;
  }

  /** Number of flights. */
  get size() {
    return this.#flights.size;
  }

  get(key, { tenant = "default" } = {}) {
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      flight = this.#load(key, { tenant, signal: new AbortController().signal }).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    return flight;
  }
}
