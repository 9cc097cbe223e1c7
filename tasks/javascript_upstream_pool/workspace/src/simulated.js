/** An upstream service that takes the same time for each operation and answers `<key>@<connection>`. */
export class SimulatedUpstream {
  #clock;
  #connectMs;
  #requestMs;
  #connections = 0;

  constructor({ clock, connectMs = 5, requestMs = 20 }) {
    this.#clock = clock;
    this.#connectMs = connectMs;
    this.#requestMs = requestMs;
  }

  /** Function to hand to a pool. */
  connector() {
    return async () => {
      const id = `c${++this.#connections}`;
      await this.#sleep(this.#connectMs);
      return {
        id,
        request: async (key) => {
          await this.#sleep(this.#requestMs);
          return `${key}@${id}`;
        },
        close: async () => {},
      };
    };
  }

  #sleep(delayMs) {
    return new Promise((resolve) => this.#clock.setTimeout(resolve, delayMs));
  }
}
