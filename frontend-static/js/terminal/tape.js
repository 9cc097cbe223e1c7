/** A recording's screen at any time: plays forward, and returns to a copy of an earlier screen to go back. */

import { countUpTo, sizeOf, withoutPauses } from './recording.js'
import { Screen } from './screen.js'

/** Characters of output between two copies of the screen, and number of copies at most. */
const COPY_CHARS = 200_000
const COPIES_MAX = 100
/** Characters that are shown between two looks at the clock. */
const PIECE = 4096

export class Tape {
  /** Copies by the number of events before them, in order. @type {{at: number, screen: Screen}[]} */
  #copies = []
  /** Events that the screen shows, and characters of the next one. */
  #at = 0
  #offset = 0
  #since = 0
  #apart
  /** Times of the events with all pauses. @type {number[]} */
  #clock
  /** Times of the events without long pauses. @type {number[]} */
  times = []

  /** @param {import('./recording.js').Recording} recording */
  constructor(recording) {
    this.recording = recording
    this.#clock = recording.events.map(({ time }) => time)
    this.screen = new Screen(recording.columns, recording.rows)
    const all = recording.events.reduce((sum, { data }) => sum + data.length, 0)
    this.#apart = Math.max(COPY_CHARS, all / COPIES_MAX)
    this.limitPauses(Infinity)
  }

  /** Seconds without long pauses. */
  get duration() { return this.times.at(-1) ?? 0 }

  /** @param {number} seconds longest pause */
  limitPauses(seconds) { this.times = withoutPauses(this.recording.events, seconds) }

  /**
   * Shows the screen at a time, in seconds without long pauses.
   *
   * @param {number} time
   * @param {number} [deadline] value of `performance.now()` at which to stop
   * @returns {boolean} false if it stopped before the end; the next call continues
   */
  seek(time, deadline = Infinity) {
    const wanted = countUpTo(this.times, time + 1e-6)
    if (wanted < this.#at || (wanted === this.#at && this.#offset > 0)) {
      const copy = this.#copies.findLast(({ at }) => at <= wanted)
      this.screen = copy ? copy.screen.clone() : new Screen(this.recording.columns, this.recording.rows)
      this.#at = copy?.at ?? 0
      this.#offset = this.#since = 0
    }
    while (this.#at < wanted) {
      this.#step()
      if (deadline < Infinity && performance.now() >= deadline) return this.#at >= wanted
    }
    return true
  }

  /** Shows a piece of an event. */
  #step() {
    const { kind, data } = this.recording.events[this.#at]
    const size = kind === 'r' ? sizeOf(data) : null
    if (size) this.screen.resize(...size)
    else if (kind === 'o') {
      let end = this.#offset + PIECE
      // Not between the halves of a character.
      if ((data.charCodeAt(end - 1) & 0xfc00) === 0xd800) end += 1
      this.screen.write(data.slice(this.#offset, end))
      if (end < data.length) { this.#offset = end; return }
    }
    this.#offset = 0
    this.#at += 1
    this.#since += data.length
    if (this.#since < this.#apart) return
    this.#since = 0
    if (this.#at > (this.#copies.at(-1)?.at ?? 0)) this.#copies.push({ at: this.#at, screen: this.screen.clone() })
  }

  /** Converts a time of day in seconds since 1970 into one without long pauses; null if the start isn't known. @param {number} clock */
  timeAt(clock) {
    const { start, events } = this.recording
    if (start === null) return null
    const real = clock - start
    const count = countUpTo(this.#clock, real)
    if (count === 0) return 0
    const after = this.times[count] ?? this.duration
    return Math.min(this.times[count - 1] + Math.max(0, real - events[count - 1].time), after)
  }
}
