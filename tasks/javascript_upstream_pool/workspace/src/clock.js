/** Clock of the machine. */
export class SystemClock {
  now() {
    return Date.now();
  }

  setTimeout(callback, delayMs) {
    return setTimeout(callback, delayMs);
  }

  clearTimeout(timer) {
    clearTimeout(timer);
  }
}

/** Clock that only moves when `advance` is called. */
export class VirtualClock {
  #nowMs = 0;
  #sequence = 0;
  #timers = new Set();

  now() {
    return this.#nowMs;
  }

  /** Number of timers that are set and haven't fired. */
  get timerCount() {
    return this.#timers.size;
  }

  setTimeout(callback, delayMs) {
    const timer = { callback, dueMs: this.#nowMs + Math.max(0, delayMs), sequence: this.#sequence++ };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer) {
    this.#timers.delete(timer);
  }

  /** Time at which the next timer fires; `undefined` without timers. */
  nextDueMs() {
    return this.#next()?.dueMs;
  }

  /** Moves the clock and fires timers in order. Promise jobs run to their end after each timer. */
  async advance(deltaMs) {
    const targetMs = this.#nowMs + deltaMs;
    await settle();
    for (;;) {
      const timer = this.#next();
      if (timer === undefined || timer.dueMs > targetMs) break;
      this.#timers.delete(timer);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.callback();
      await settle();
    }
    this.#nowMs = targetMs;
  }

  #next() {
    let first;
    for (const timer of this.#timers) {
      if (
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.sequence < first.sequence)
      ) {
        first = timer;
      }
    }
    return first;
  }
}

/** Resolves after all promise jobs that are queued have run. */
export function settle() {
  return new Promise((resolve) => setImmediate(resolve));
}
