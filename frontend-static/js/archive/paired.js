/** Paired comparison of two runs on the items that both have graded, as the server computes it (shared/domain, `statistics`). */

import { outcomeOf } from '../core/outcomes.js'

/** @typedef {import('../core/source.js').IndexRow} Row */

/** 0.975 quantiles of Student's t for 1 to 30 degrees of freedom. */
const QUANTILES = [
  12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818, 2.4469119, 2.3646243, 2.3060041, 2.2621572, 2.2281389,
  2.2009852, 2.1788128, 2.1603687, 2.1447867, 2.1314495, 2.1199053, 2.1098156, 2.1009220, 2.0930241, 2.0859634,
  2.0796138, 2.0738731, 2.0686576, 2.0638986, 2.0595386, 2.0555294, 2.0518305, 2.0484071, 2.0452296, 2.0422725,
]
/** 0.975 quantile of the normal distribution. */
const NORMAL = 1.959963984540054

/**
 * Compares run B with run A. Every item has the same weight, whatever the number of its samples.
 *
 * @param {Map<string, Row[]>} a graded samples by item
 * @param {Map<string, Row[]>} b
 * @returns {Api.PairedView}
 */
export function comparePaired(a, b) {
  const pairs = [...a].flatMap(([item, rows]) => {
    const others = b.get(item)
    return others ? [[resultOf(rows), resultOf(others)]] : []
  })
  const items = pairs.length
  const count = (/** @type {boolean} */ rightInA, /** @type {boolean} */ rightInB) => pairs.filter(([one, other]) => one.isRight === rightInA && other.isRight === rightInB).length
  const [onlyA, onlyB] = [count(true, false), count(false, true)]
  const differences = pairs.map(([one, other]) => other.mean - one.mean)
  const difference = mean(differences)
  const error = difference === null || items < 2 ? null : Math.sqrt(sum(differences.map((each) => (each - difference) ** 2)) / (items * (items - 1)))
  return {
    items, only_in_a: a.size - items, only_in_b: b.size - items,
    mean_a: mean(pairs.map(([one]) => one.mean)), mean_b: mean(pairs.map(([, other]) => other.mean)),
    difference, standard_error: error,
    // Equal differences say nothing about the spread, and rounding makes them differ a little.
    interval: difference === null || error === null || error < 1e-12 ? null : { low: difference - quantile(items - 1) * error, high: difference + quantile(items - 1) * error },
    both_right: count(true, true), only_a_right: onlyA, only_b_right: onlyB, both_wrong: count(false, false),
    mcnemar_p: items === 0 ? null : mcnemarP(onlyA, onlyB),
  }
}

/**
 * Returns the score of a sample; null if it isn't graded. Archives of other programs have no scores.
 *
 * @param {Row} row
 */
export function scoreOf({ score, outcome }) {
  if (outcome === null || !outcomeOf(outcome).graded) return null
  return score ?? (outcome === 'correct' ? 1 : 0)
}

/** @param {Row[]} rows graded samples of one item, at least one */
function resultOf(rows) {
  const correct = rows.filter(({ outcome }) => outcome === 'correct').length
  return { mean: sum(rows.map((row) => scoreOf(row) ?? 0)) / rows.length, isRight: correct * 2 > rows.length }
}

/** @param {number[]} values */
function sum(values) {
  return values.reduce((total, value) => total + value, 0)
}

/** @param {number[]} values */
function mean(values) {
  return values.length > 0 ? sum(values) / values.length : null
}

/**
 * Exact two-sided p-value of McNemar's test: if neither run is better, each of these items is a fair coin toss.
 *
 * @param {number} onlyA items that only the first run got right
 * @param {number} onlyB
 */
function mcnemarP(onlyA, onlyB) {
  if (onlyA === onlyB) return 1
  const [fewer, tosses] = [Math.min(onlyA, onlyB), onlyA + onlyB]
  // Logarithms, because the probability of a single series of tosses is too small for a number.
  let log = -tosses * Math.LN2
  let tail = 0
  for (let heads = 0; heads <= fewer; heads += 1) {
    tail += Math.exp(log)
    log += Math.log((tosses - heads) / (heads + 1))
  }
  return Math.min(1, 2 * tail)
}

/**
 * Returns the 0.975 quantile of Student's t: from a table, or by the expansion of Abramowitz and Stegun 26.7.5.
 *
 * @param {number} freedom degrees of freedom, at least 1
 */
function quantile(freedom) {
  if (freedom <= QUANTILES.length) return QUANTILES[freedom - 1]
  const square = NORMAL * NORMAL
  const first = NORMAL * (square + 1) / 4
  const second = NORMAL * ((5 * square + 16) * square + 3) / 96
  const third = NORMAL * (((3 * square + 19) * square + 17) * square - 15) / 384
  return NORMAL + (first + (second + third / freedom) / freedom) / freedom
}
