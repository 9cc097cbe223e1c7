/** Numbers, times and words in the reader's locale and time zone. Null and undefined become `none`. */

/** Text for a value that doesn't exist. */
export const none = '–'

/** @typedef {number | null | undefined} MaybeNumber */
/** @typedef {string | Date | null | undefined} MaybeTime */

/**
 * Makes a value when it is first needed: an `Intl` object takes milliseconds, and no view needs all of them.
 *
 * @template T
 * @param {() => T} make
 */
const lazy = (make) => {
  /** @type {T | undefined} */
  let value
  return () => (value ??= make())
}

/** @param {Intl.NumberFormatOptions} options */
const numbers = (options) => {
  const format = lazy(() => new Intl.NumberFormat(undefined, options))
  return (/** @type {number} */ value) => format().format(value)
}
const whole = numbers({ maximumFractionDigits: 0 })
const oneDigit = numbers({ minimumFractionDigits: 1, maximumFractionDigits: 1 })
const compact = numbers({ notation: 'compact', minimumFractionDigits: 1, maximumFractionDigits: 1 })
const decimal = numbers({ minimumFractionDigits: 2, maximumFractionDigits: 2 })
const upTo4 = numbers({ maximumFractionDigits: 4 })
const fourDigits = numbers({ minimumFractionDigits: 4, maximumFractionDigits: 4 })

/**
 * Formats a share with one digit: 0.519 is `51.9%`.
 *
 * @param {MaybeNumber} value
 * @param {number} [digits]
 */
export function percent(value, digits = 1) {
  if (value === null || value === undefined) return none
  return `${digits === 1 ? oneDigit(value * 100) : numbers({ minimumFractionDigits: digits, maximumFractionDigits: digits })(value * 100)}%`
}

/**
 * Formats a difference of shares in percentage points, with its sign: 0.031 is `+3.1 pp`.
 *
 * @param {MaybeNumber} value
 */
export function points(value) {
  if (value === null || value === undefined) return none
  const text = oneDigit(Math.abs(value) * 100)
  return `${value < 0 ? '−' : '+'}${text} pp`
}

/**
 * Formats an interval of shares: `[48.3%, 55.6%]` as `48.3–55.6%`.
 *
 * @param {[number, number] | {low: number, high: number} | null | undefined} value
 */
export function interval(value) {
  if (!value) return none
  const [low, high] = Array.isArray(value) ? value : [value.low, value.high]
  return `${oneDigit(low * 100).replace('-', '−')}${low < 0 ? ' to ' : '–'}${oneDigit(high * 100).replace('-', '−')}%`
}

/** @param {MaybeNumber} value */
export function integer(value) {
  return value === null || value === undefined ? none : whole(value)
}

/**
 * Formats a number with at most four digits after the point.
 *
 * @param {MaybeNumber} value
 */
export function number(value) {
  return value === null || value === undefined ? none : upTo4(value)
}

/**
 * Formats a number of tokens, above 10,000 shortened: `4,096`, `12.3K`, `1.8M`.
 *
 * @param {MaybeNumber} value
 */
export function tokens(value) {
  if (value === null || value === undefined) return none
  return value < 10_000 ? whole(value) : compact(value)
}

/**
 * Formats US dollars, with four digits below one cent.
 *
 * @param {MaybeNumber} value
 */
export function usd(value) {
  if (value === null || value === undefined) return none
  if (value !== 0 && Math.abs(value) < 0.01) return `$${fourDigits(value)}`
  return `$${decimal(value)}`
}

/**
 * Formats seconds: `450 ms`, `8.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
 *
 * @param {MaybeNumber} seconds
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return none
  if (seconds < 0) seconds = 0
  if (seconds < 1) return `${whole(seconds * 1000)} ms`
  if (seconds < 10) return `${oneDigit(seconds)} s`
  const s = Math.floor(seconds)
  if (s < 60) return `${s} s`
  if (s < 3600) return pair(Math.floor(s / 60), 'min', s % 60, 's')
  if (s < 86_400) return pair(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min')
  return pair(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3600), 'h')
}

/**
 * @param {number} first
 * @param {string} firstUnit
 * @param {number} second
 * @param {string} secondUnit
 */
function pair(first, firstUnit, second, secondUnit) {
  return second ? `${first} ${firstUnit} ${second} ${secondUnit}` : `${first} ${firstUnit}`
}

const relative = lazy(() => new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' }))
/** @type {[number, Intl.RelativeTimeFormatUnit][]} */
const UNITS = [[60, 'second'], [3600, 'minute'], [86_400, 'hour'], [30 * 86_400, 'day'], [365 * 86_400, 'month'], [Infinity, 'year']]

/**
 * Formats a time relative to now: `5 min ago`.
 *
 * @param {MaybeTime} time
 */
export function ago(time) {
  if (!time) return none
  const seconds = (new Date(time).getTime() - Date.now()) / 1000
  let before = 1
  for (const [limit, unit] of UNITS) {
    if (Math.abs(seconds) < limit) return relative().format(Math.trunc(seconds / before), unit)
    before = limit
  }
  return none
}

const full = lazy(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }))
const clock = lazy(() => new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' }))
const day = lazy(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }))

/** @param {MaybeTime} time */
export function dateTime(time) {
  return time ? full().format(new Date(time)) : none
}

/** @param {MaybeTime} time */
export function timeOfDay(time) {
  return time ? clock().format(new Date(time)) : none
}

/** @param {MaybeTime} time */
export function date(time) {
  return time ? day().format(new Date(time)) : none
}

/** Name of the reader's time zone, such as `Europe/Berlin`. */
export const timeZone = lazy(() => Intl.DateTimeFormat().resolvedOptions().timeZone)

/**
 * Formats a size in bytes with binary units.
 *
 * @param {MaybeNumber} value
 */
export function bytes(value) {
  if (value === null || value === undefined) return none
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1 }
  return `${unit === 0 ? whole(value) : oneDigit(value)} ${unit === 0 && value === 1 ? 'byte' : units[unit]}`
}

/**
 * Formats a count with its word: `1 run`, `12 runs`.
 *
 * @param {number} n
 * @param {string} word singular
 * @param {string} [words] plural, if it isn't the singular with an s
 */
export function plural(n, word, words = `${word}s`) {
  return `${whole(n)} ${n === 1 ? word : words}`
}

/**
 * Shortens an id to its first eight digits.
 *
 * @param {string} id
 */
export function shortId(id) {
  return id.slice(0, 8)
}

/** Digits of the hash of a question in an index. */
const HASH_DIGITS = 12

/**
 * Returns the digits of the hash of a question that an index has.
 *
 * @param {string | null | undefined} hash whole hash
 */
export function shortHash(hash) {
  return hash?.slice(0, HASH_DIGITS) ?? null
}
