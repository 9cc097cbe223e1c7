/** Scales from values to pixels, with round ticks. */

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} to pixels of a value
 * @property {number[]} ticks round values
 * @property {number} low
 * @property {number} high
 */

/**
 * Makes a linear scale. Its ends are round values around the data.
 *
 * @param {[number, number]} data Lowest and highest value.
 * @param {[number, number]} pixels Place of the lowest and of the highest value.
 * @param {{count?: number, isExact?: boolean}} [options] `count` is the number of ticks to aim at; `isExact` keeps the ends.
 * @returns {Scale}
 */
export function linear([first, last], [from, to], { count = 5, isExact = false } = {}) {
  if (!(last > first)) [first, last] = [first - Math.abs(first) * 0.1 - (first === 0 ? 0 : 1e-9), first + Math.abs(first) * 0.1 + (first === 0 ? 1 : 1e-9)]
  const step = roundStep((last - first) / Math.max(count, 1))
  const low = isExact ? first : Math.floor(first / step + 1e-9) * step
  const high = isExact ? last : Math.ceil(last / step - 1e-9) * step
  const ticks = []
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) ticks.push(clean(at * step))
  return { to: (value) => from + (value - low) / (high - low) * (to - from), ticks, low, high }
}

/**
 * Makes a logarithmic scale for positive values. Its ends are powers of ten, or 1, 2 or 5 times one.
 *
 * @param {[number, number]} data
 * @param {[number, number]} pixels
 * @returns {Scale}
 */
export function logarithmic([first, last], [from, to]) {
  const steps = [1, 2, 5]
  const all = []
  for (let power = Math.floor(Math.log10(first)) - 1; power <= Math.ceil(Math.log10(last)) + 1; power += 1) {
    for (const step of steps) all.push(clean(step * 10 ** power))
  }
  const low = all.findLast((value) => value <= first) ?? first
  const high = all.find((value) => value >= last && value > low) ?? last
  const inside = all.filter((value) => value >= low && value <= high)
  const ticks = inside.length <= 7 ? inside : inside.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9)
  const span = Math.log(high) - Math.log(low)
  return { to: (value) => from + (Math.log(value) - Math.log(low)) / span * (to - from), ticks, low, high }
}

/** Steps of a time axis, in milliseconds. */
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]
const TIME_STEPS = [
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY,
]

/**
 * Makes a time scale with ticks in the reader's zone.
 *
 * @param {[number, number]} data Milliseconds.
 * @param {[number, number]} pixels
 * @param {number} count Number of ticks to aim at.
 * @returns {Scale & {label: (time: number) => string}}
 */
export function timeScale([first, last], [from, to], count) {
  if (!(last > first)) [first, last] = [first - HOUR, first + HOUR]
  const step = TIME_STEPS.find((size) => size >= (last - first) / Math.max(count, 1)) ?? 365 * DAY
  const offset = new Date(first).getTimezoneOffset() * MINUTE
  const ticks = []
  for (let at = Math.ceil((first - offset) / step) * step + offset; at <= last; at += step) ticks.push(at)
  const format = new Intl.DateTimeFormat(undefined, step < DAY ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric' })
  return {
    to: (value) => from + (value - first) / (last - first) * (to - from),
    ticks, low: first, high: last, label: (time) => format.format(new Date(time)),
  }
}

/** Returns 1, 2 or 5 times a power of ten that is at least `size`. @param {number} size */
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size))
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= size * 0.999) ?? 10)
}

/** Removes the error of binary fractions. @param {number} value */
function clean(value) {
  return Number(value.toPrecision(12))
}
