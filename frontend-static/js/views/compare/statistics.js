/** Pairing of items, agreement of runs, and correction of p-values. Means, intervals and p-values come from the API. */

import { outcomeOf } from '../../core/outcomes.js'

/** @typedef {import('./load.js').Row} Row */

/**
 * An item in one run.
 *
 * @typedef {object} Side
 * @property {Row[]} rows samples in order
 * @property {number} graded number of graded samples
 * @property {number} correct
 * @property {boolean} isRight more than half of the graded samples are right
 */

/**
 * An item in all compared runs. A side is null if the run doesn't have the item. `isChanged` is true if one id has
 * different questions, as in two revisions of a dataset: such items aren't compared.
 *
 * @typedef {{key: string, group: string | null, sides: (Side | null)[], isChanged: boolean}} PairedItem
 */

/**
 * Adjusts p-values for their number by Holm's method, as `bench compare` does.
 *
 * @param {number[]} values
 * @returns {number[]}
 */
export function holm(values) {
  const order = values.map((_, index) => index).sort((one, other) => values[one] - values[other])
  /** @type {number[]} */
  const adjusted = Array(values.length).fill(1)
  let highest = 0
  for (const [rank, index] of order.entries()) {
    highest = Math.max(highest, Math.min(values[index] * (values.length - rank), 1))
    adjusted[index] = highest
  }
  return adjusted
}

/**
 * Pairs the items of several runs.
 *
 * @param {Row[][]} indexes One per run.
 * @param {{bySourceId: boolean, isSameDataset: boolean}} options `bySourceId` matches items by the dataset's own ids, as for two
 *   revisions of a dataset. In the same dataset, an id always has the same question.
 * @returns {PairedItem[]} in the order of the dataset
 */
export function pairItems(indexes, { bySourceId, isSameDataset }) {
  /** @type {Map<string, PairedItem>} */
  const items = new Map()
  for (const [run, rows] of indexes.entries()) {
    for (const row of rows) {
      const key = bySourceId ? row.source_id : row.item_id
      if (key === null) continue
      let item = items.get(key)
      if (!item) items.set(key, item = { key, group: row.group, sides: indexes.map(() => null), isChanged: false })
      const side = item.sides[run] ??= { rows: [], graded: 0, correct: 0, isRight: false }
      side.rows.push(row)
    }
  }
  for (const item of items.values()) {
    const { sides } = item
    const hashes = new Set(sides.flatMap((side) => side?.rows.flatMap(({ item_hash: hash }) => hash ?? []).slice(0, 1) ?? []))
    item.isChanged = !isSameDataset && hashes.size > 1
    for (const side of sides) {
      if (!side) continue
      side.rows.sort((one, other) => one.sample - other.sample)
      side.graded = side.rows.filter(({ outcome }) => outcome !== null && outcomeOf(outcome).graded).length
      side.correct = side.rows.filter(({ outcome }) => outcome === 'correct').length
      side.isRight = side.correct * 2 > side.graded
    }
  }
  const order = new Intl.Collator(undefined, { numeric: true })
  return [...items.values()].sort((one, other) => order.compare(one.key, other.key))
}

/** Returns true if all runs have graded the item, and it is the same in all. @param {PairedItem} item */
export function isCommon({ sides, isChanged }) {
  return !isChanged && sides.every(isGraded)
}

/** Returns true if a run has a grade for the item. @param {Side | null} side @returns {side is Side} */
export function isGraded(side) {
  return side !== null && side.graded > 0
}

/**
 * Counts how two runs agree on the items that both have graded.
 *
 * @param {PairedItem[]} items
 * @param {number} a Index of a run.
 * @param {number} b
 */
export function agreement(items, a, b) {
  const counts = { bothRight: 0, onlyA: 0, onlyB: 0, bothWrong: 0 }
  for (const { sides, isChanged } of items) {
    if (isChanged) continue
    const [one, other] = [sides[a], sides[b]]
    if (!isGraded(one) || !isGraded(other)) continue
    if (one.isRight) counts[other.isRight ? 'bothRight' : 'onlyA'] += 1
    else counts[other.isRight ? 'onlyB' : 'bothWrong'] += 1
  }
  return counts
}

/**
 * Says what a paired comparison shows, and no more. An interval and a test look at different things, so that a sentence
 * about one never speaks for the other.
 *
 * @param {Api.PairedView} paired
 * @param {number | null} p P-value after correction, if there are several comparisons.
 * @param {{format: (value: number) => string, a: string, b: string, test: string}} names Names of the runs, the format of
 *   differences, and the p-value as text.
 */
export function conclusion(paired, p, { format, a, b, test }) {
  const { items, difference, interval, only_a_right: onlyA, only_b_right: onlyB } = paired
  if (items === 0 || difference === null) return 'The runs have no graded item in common.'
  if (onlyA === 0 && onlyB === 0 && difference === 0) return `${a} and ${b} have the same result on every item.`
  if (!interval || p === null) return `There are too few items to say whether ${a} and ${b} differ.`
  const excludesZero = interval.low > 0 || interval.high < 0
  const size = format(Math.abs(difference)).replace('+', '')
  const seen = difference === 0 ? `${a} and ${b} have the same mean score on these items`
    : `${b} scored ${size} ${difference > 0 ? 'more' : 'less'} than ${a} on these items`
  const counts = `only ${a} is right on ${onlyA}, only ${b} on ${onlyB}, ${test}`
  if (excludesZero && p < 0.05) return `${seen}. Chance alone rarely gives this: the interval excludes 0, and McNemar’s test agrees (${counts}).`
  if (excludesZero) return `${seen}. The interval of the mean scores excludes 0, but by the items that only one got right it may be chance (${counts}). Don’t rely on one of the two alone.`
  if (p < 0.05) return `${seen}. The items that only one got right are more uneven than chance makes them (${counts}), but the interval of the mean scores includes 0. Don’t rely on one of the two alone.`
  return `${seen}. Chance alone can explain that: the interval includes 0 (${counts}).`
}
