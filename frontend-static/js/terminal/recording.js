/** Recordings of terminals in the format asciicast, versions 2 and 3. */

import { COLUMNS_MAX, ROWS_MAX } from './screen.js'

/**
 * @typedef {object} Event
 * @property {number} time seconds since the beginning
 * @property {'o' | 'r'} kind output, or a new size
 * @property {string} data output, or `80x24`
 */
/**
 * @typedef {object} Recording
 * @property {number} columns
 * @property {number} rows
 * @property {number | null} start time of day in seconds since 1970; null if it isn't known
 * @property {Event[]} events in the order of time
 * @property {number} duration seconds
 * @property {number} damaged lines that couldn't be read, such as the place where a long recording was cut
 */

/** Events that are read at most. */
const EVENTS_MAX = 1_000_000
/** Longest time of a recording, in seconds. */
const DURATION_MAX = 30 * 24 * 3600

/**
 * Reads a recording.
 *
 * @param {string} text
 * @returns {Recording}
 * @throws {Error} with a sentence for readers, if the text is no recording
 */
export function readRecording(text) {
  const end = text.indexOf('\n')
  const header = parse(end < 0 ? text : text.slice(0, end))
  if (header === null || typeof header !== 'object' || (header.version !== 2 && header.version !== 3)) {
    throw new Error('The file isn’t a recording in the format asciicast 2 or 3.')
  }
  const size = header.version === 3 ? [header.term?.cols, header.term?.rows] : [header.width, header.height]
  /** @type {Recording} */
  const recording = {
    columns: within(size[0], COLUMNS_MAX, 80), rows: within(size[1], ROWS_MAX, 24), start: typeof header.timestamp === 'number' ? header.timestamp : null,
    events: [], duration: 0, damaged: 0,
  }
  let time = 0
  for (let from = end + 1; end >= 0 && from < text.length && recording.events.length < EVENTS_MAX;) {
    const to = text.indexOf('\n', from)
    const line = text.slice(from, to < 0 ? text.length : to)
    from = to < 0 ? text.length : to + 1
    if (line.trim() === '' || line.startsWith('#')) continue
    const entry = parse(line)
    if (!Array.isArray(entry) || typeof entry[0] !== 'number' || !Number.isFinite(entry[0]) || typeof entry[2] !== 'string') { recording.damaged += 1; continue }
    // Version 3 has the time since the event before. No time goes back.
    time = Math.min(Math.max(time, header.version === 3 ? time + entry[0] : entry[0]), DURATION_MAX)
    if (entry[1] === 'o' || entry[1] === 'r') recording.events.push({ time, kind: entry[1], data: entry[2] })
    recording.duration = time
  }
  return recording
}

/**
 * Returns the times of events with pauses of at most `limit` seconds.
 *
 * @param {Event[]} events
 * @param {number} limit `Infinity` keeps all pauses
 */
export function withoutPauses(events, limit) {
  let [last, time] = [0, 0]
  return events.map((event) => {
    time += Math.min(event.time - last, limit)
    last = event.time
    return time
  })
}

/**
 * Returns the number of entries that are at most `value`.
 *
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 */
export function countUpTo(sorted, value) {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle] <= value) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Reads the size in an event.
 *
 * @param {string} data
 * @returns {[number, number] | null}
 */
export function sizeOf(data) {
  const [, columns, rows] = /^(\d{1,5})x(\d{1,5})$/.exec(data) ?? []
  return columns ? [within(Number(columns), COLUMNS_MAX, 80), within(Number(rows), ROWS_MAX, 24)] : null
}

/** @param {string} line @returns {any} null if it isn't JSON */
function parse(line) {
  try { return JSON.parse(line) } catch { return null }
}

/** @param {unknown} value @param {number} max @param {number} usual */
function within(value, max, usual) {
  return typeof value === 'number' && value >= 1 ? Math.min(Math.trunc(value), max) : usual
}
