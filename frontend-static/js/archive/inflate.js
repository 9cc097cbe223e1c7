/** Decompression of one member with a fixed bound, and its checksum. */

import { Refusal } from './reasons.js'
import { STORED } from './zip-records.js'

/**
 * Decompresses a member into a buffer of the size that its header declares. Stops as soon as there is more.
 *
 * @param {Blob} data Compressed data.
 * @param {import('./zip.js').Entry} entry
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function inflate(data, entry) {
  const damaged = (/** @type {string} */ what) => new Refusal('damaged', `${entry.name} is damaged: ${what}`, entry.name)
  const output = new Uint8Array(entry.bytes)
  let length = 0
  const reader = (entry.method === STORED ? data.stream() : decompressed(data)).getReader()
  for (;;) {
    let step
    try {
      step = await reader.read()
    } catch (problem) {
      if (problem instanceof DOMException && problem.name === 'NotReadableError') {
        throw new Refusal('read_failed', 'The file could not be read; choose it again')
      }
      // Browsers report data after the end of the compressed data in the same way.
      throw damaged('its compressed data is damaged')
    }
    if (step.done) break
    if (length + step.value.length > output.length) {
      await reader.cancel().catch(() => {})
      throw damaged('it is larger than declared')
    }
    output.set(step.value, length)
    length += step.value.length
  }
  if (length < output.length) throw damaged('it is smaller than declared')
  if (crc32(output) !== entry.crc) throw damaged('its checksum is wrong')
  return output
}

/** @param {Blob} data @returns {ReadableStream<Uint8Array>} */
function decompressed(data) {
  return data.stream().pipeThrough(new DecompressionStream('deflate-raw'))
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ value >>> 1 : value >>> 1
  return value
})

/**
 * Returns the CRC-32 of the bytes, as ZIP uses it.
 *
 * @param {Uint8Array} bytes
 */
export function crc32(bytes) {
  let crc = 0xffffffff
  for (let at = 0; at < bytes.length; at += 1) crc = TABLE[(crc ^ bytes[at]) & 0xff] ^ crc >>> 8
  return (crc ^ 0xffffffff) >>> 0
}
