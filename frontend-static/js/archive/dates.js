/** Checks of an archive's dates against the period of its key, and against the present. */

import { quote, Refusal } from './reasons.js'

/** Difference that two clocks may have, in milliseconds. */
const CLOCK_SKEW_MS = 5 * 60_000

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

/**
 * Checks the manifest's date. Returns null if nothing is wrong.
 *
 * @param {string} date
 * @param {import('./keys.js').Key} signer
 * @param {number} now Milliseconds.
 */
export function checkManifestDate(date, signer, now) {
  const time = parse(date)
  if (time === null) {
    return new Refusal('manifest_wrong_types', `Manifest field generated_at is not a time: ${quote(date)}`, 'manifest.json')
  }
  // Archives have whole seconds, keys may have fractions.
  const from = signer.validFrom === null ? null : Date.parse(signer.validFrom)
  if (from !== null && Math.floor(time / 1000) < Math.floor(from / 1000)) {
    const text = `The archive is dated ${seconds(time)}, but its key signs only since ${seconds(from)}`
    return new Refusal('date_outside_validity', text, 'manifest.json')
  }
  return checkUpperBounds(time, signer, now, 'manifest.json')
}

/**
 * Checks the results' date. It may be earlier than the key's period, since the run was completed before.
 *
 * @param {string} date
 * @param {import('./keys.js').Key} signer
 * @param {number} now Milliseconds.
 */
export function checkResultsDate(date, signer, now) {
  const time = parse(date)
  if (time === null) {
    return new Refusal('results_wrong_types', `Results field exported_at is not a time: ${quote(date)}`, 'results.json')
  }
  return checkUpperBounds(time, signer, now, 'results.json')
}

/**
 * @param {number} time
 * @param {import('./keys.js').Key} signer
 * @param {number} now
 * @param {import('./reasons.js').Part} part
 */
function checkUpperBounds(time, signer, now, part) {
  const until = signer.validUntil === null ? null : Date.parse(signer.validUntil)
  if (until !== null && time > until) {
    const text = `The archive is dated ${seconds(time)}, but its key was retired on ${seconds(until)}`
    return new Refusal('date_outside_validity', text, part)
  }
  if (time <= now + CLOCK_SKEW_MS) return null
  return new Refusal('date_in_future', `The archive is dated ${seconds(time)}, which is in the future`, part)
}

/** @param {string} text */
function parse(text) {
  const time = RFC_3339.test(text) ? Date.parse(text) : NaN
  return Number.isNaN(time) ? null : time
}

/** @param {number} time */
function seconds(time) {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}
