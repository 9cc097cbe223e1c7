/** Filters and order of samples: the same for the table and for going from item to item. */

import { shortHash } from '../../core/format.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {import('../../core/source.js').IndexRow} IndexRow */
/** @typedef {{outcome: string, group: string, q: string, sort: string}} ItemFilter `sort` is a column, with `-` in front for descending */

/** Names in the address. */
const NAMES = /** @type {const} */ (['outcome', 'group', 'q', 'sort'])

/**
 * Reads the filter from the address.
 *
 * @param {{get: (name: string) => string | null}} query
 * @returns {ItemFilter}
 */
export function filterFrom(query) {
  return { outcome: query.get('outcome') ?? '', group: query.get('group') ?? '', q: query.get('q') ?? '', sort: query.get('sort') ?? '' }
}

/**
 * Writes the filter as a query, to be added to an item's address: items are then gone through in the same order.
 *
 * @param {ItemFilter} filter
 */
export function filterQuery(filter) {
  const search = new URLSearchParams()
  for (const name of NAMES) if (filter[name]) search.set(name, filter[name])
  return search.toString().replaceAll('%2C', ',')
}

/** Outcome of samples that never ended, in filters. */
export const NOT_ENDED = 'none'

/**
 * Returns the rows that match, in order.
 *
 * @param {IndexRow[]} rows
 * @param {ItemFilter} filter
 * @returns {IndexRow[]}
 */
export function listOf(rows, { outcome, group, q, sort }) {
  const outcomes = outcome ? new Set(outcome.split(',')) : null
  const text = q.trim().toLowerCase()
  const found = rows.filter((row) =>
    (!outcomes || outcomes.has(row.outcome ?? NOT_ENDED)) && (!group || row.group === group) && (!text || hasText(row, text)))
  const descending = sort.startsWith('-')
  const key = valueOf[descending ? sort.slice(1) : sort]
  if (!key) return found
  const sign = descending ? -1 : 1
  return found.map((row) => ({ row, value: key(row) })).sort((a, b) => compare(a.value, b.value, sign)).map(({ row }) => row)
}

/** Values to sort by. @type {Record<string, (row: IndexRow) => string | number | null>} */
const valueOf = {
  item: (row) => Number(row.item_id),
  outcome: (row) => row.outcome,
  group: (row) => row.group,
  answer: (row) => row.extracted,
  score: (row) => row.score,
  time: (row) => row.latency_ms,
  input: (row) => row.input_tokens,
  output: (row) => row.output_tokens,
  attempts: (row) => row.attempts,
}

/**
 * Compares; what has no value comes last in both directions.
 *
 * @param {string | number | null} a
 * @param {string | number | null} b
 * @param {number} sign
 */
function compare(a, b, sign) {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return a < b ? -sign : sign
}

/**
 * @param {IndexRow} row
 * @param {string} text in lower case
 */
function hasText(row, text) {
  return `#${row.item_id}`.startsWith(text) || row.item_id === text || Boolean(row.source_id?.toLowerCase().includes(text)) ||
    Boolean(row.group?.toLowerCase().includes(text)) || Boolean(row.extracted?.toLowerCase().includes(text))
}

/**
 * Key of a sample within its benchmark.
 *
 * @param {{item_id: string, sample: number}} row
 */
export function keyOf(row) {
  return `${row.item_id}/${row.sample}`
}

/**
 * Turns a sample of the API into a row of an index.
 *
 * @param {Sample} item
 * @returns {IndexRow}
 */
export function rowOf(item) {
  return {
    position: item.position, sample: item.sample, item_id: String(item.item_id), source_id: item.source_id, group: item.group, outcome: item.outcome,
    score: item.score, extracted: item.extracted, latency_ms: item.latency_ms, input_tokens: item.input_tokens, output_tokens: item.output_tokens,
    attempts: item.attempts, item_hash: shortHash(item.item_hash),
  }
}
