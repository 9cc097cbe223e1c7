/** Logs of an episode: pages from the server, or what an archive has of them. */

import { api } from '../../core/api.js'
import { path } from '../../core/router.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {{name: string, bytes: number, end: string, cut: boolean}} Log a log with its end */
/** @typedef {{run: string, benchmark: string, item: Sample, isLive: boolean, signal: AbortSignal}} Place of an episode's logs; `run` is the run's id */

/** Size of one page when a whole log is read, in bytes. */
const PAGE_BYTES = 512 * 1024

/**
 * Reads a page of a log. Without a name, lists the logs.
 *
 * @param {Place} place
 * @param {string} log
 * @param {number} offset
 * @param {number} [limit] bytes
 * @returns {Promise<Api.ItemLog>}
 */
export function logPage({ run, benchmark, item, signal }, log, offset, limit) {
  return api.get(`/api${path('runs', run)}/items/log`, { query: { benchmark, position: item.position, sample: item.sample, log: log || undefined, offset, limit }, signal })
}

/**
 * Reads a whole log.
 *
 * @param {Place} place
 * @param {Log} log
 * @param {(bytes: number) => void} [progress] is told how much was read
 * @throws {Error} with a sentence for readers, if only the end of the log is there
 */
export async function wholeLog(place, log, progress = () => {}) {
  if (!place.isLive) {
    if (log.cut) throw new Error(`The archive has only the end of ${log.name}.`)
    return log.end
  }
  const parts = []
  for (let offset = /** @type {number | null} */ (0); offset !== null;) {
    const page = await logPage(place, log.name, offset, PAGE_BYTES)
    parts.push(page.text)
    offset = page.next_offset
    progress(offset ?? log.bytes)
  }
  return parts.join('')
}
