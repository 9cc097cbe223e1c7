/**
 * Places of the items in `results.json`, found in one pass over its bytes, so that texts of items are parsed only when
 * they are shown.
 */

import { DEPTH_MAX } from './json.js'

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Depth of an item: document, `benchmarks`, benchmark, `items`, item. */
const ITEM_DEPTH = 5

/**
 * @typedef {object} Scan
 * @property {string} frame the document with a 0 for each item
 * @property {{start: number, end: number}[][]} items places of the items, by benchmark
 */

/**
 * Finds the items. Returns null if the document is nested too deeply. The rest is left to the parser of the frame and
 * of the items: together they cover every byte.
 *
 * @param {Uint8Array} bytes JSON in UTF-8.
 * @returns {Scan | null}
 */
export function scanResults(bytes) {
  /** @type {Scan['items']} */
  const items = []
  /** @type {string[]} */
  const frame = []
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** Key in whose value the pass is, by depth. @type {string[]} */
  const keys = []
  let depth = 0
  /** Place up to which bytes are in the frame, and beginning of the item in which the pass is. */
  let copied = 0
  let itemStart = -1
  let text = { start: 0, end: 0 }
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case QUOTE: {
        const start = at + 1
        for (at = start; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === BACKSLASH) at += 1
        if (depth < ITEM_DEPTH) text = { start, end: at }
        break
      }
      case COLON:
        if (depth < ITEM_DEPTH) keys[depth] = textOf(bytes, text)
        break
      case OPEN_OBJECT: case OPEN_ARRAY:
        depth += 1
        if (depth > DEPTH_MAX) return null
        if (depth === 3 && keys[1] === 'benchmarks') items.push([])
        if (depth === ITEM_DEPTH && bytes[at] === OPEN_OBJECT && keys[1] === 'benchmarks' && keys[3] === 'items') {
          frame.push(decoder.decode(bytes.subarray(copied, at)), '0')
          itemStart = at
        }
        break
      case CLOSE_OBJECT: case CLOSE_ARRAY:
        if (depth === ITEM_DEPTH && itemStart >= 0) {
          items.at(-1)?.push({ start: itemStart, end: at + 1 })
          copied = at + 1
          itemStart = -1
        }
        depth -= 1
        break
    }
  }
  frame.push(decoder.decode(bytes.subarray(copied)))
  return { frame: frame.join(''), items }
}

/** @param {Uint8Array} bytes @param {{start: number, end: number}} text */
function textOf(bytes, { start, end }) {
  return end - start > 20 ? '' : String.fromCharCode(...bytes.subarray(start, end))
}
