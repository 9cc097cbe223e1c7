/**
 * Reader for signed archives, which rejects archives that two programs could read differently.
 *
 * The members, the directory and the end record must cover the file without gap or overlap, local and central headers
 * must agree, and the archive must not contain anything that a signed archive doesn't need. ZIP64 is refused like that:
 * signed archives are below 4 GiB, and programs disagree on which of the two sizes applies.
 */

import { inflate } from './inflate.js'
import { damaged, dataBefore, dataBetween, notZip, quote, Refusal, zip64 } from './reasons.js'

import {
  CENTRAL_SIGNATURE, checkExtra, DEFLATED, DESCRIPTOR_SIGNATURE, END_BYTES, END_SIGNATURE, Fields, FLAG_DESCRIPTOR,
  LOCAL_BYTES, LOCAL_SIGNATURE, readCentralHeader, STORED, ZIP64_LOCATOR_BYTES, ZIP64_LOCATOR_SIGNATURE,
} from './zip-records.js'

/** @typedef {import('./zip-records.js').Header} Header */
/** @typedef {import('./reasons.js').Part} Part */
/** @typedef {{name: Part, method: number, crc: number, compressedBytes: number, bytes: number, dataOffset: number}} Entry */

/** Members of a signed archive. Only the last one may be missing. */
export const MEMBERS = /** @type {const} */ (['results.json', 'manifest.json', 'signature.txt', 'public_key.txt'])

/** Total size of all members after decompression, in bytes. A browser holds them in memory. */
export const TOTAL_BYTES_MAX = 256 * 1024 * 1024

/** Size of the manifest, and of the two short texts, in bytes. */
const MANIFEST_BYTES_MAX = 1 << 20
const TEXT_BYTES_MAX = 4 << 10

const ENTRIES_MAX = 8
const DIRECTORY_BYTES_MAX = 64 * 1024
const COMMENT_BYTES_MAX = 0xffff

/** Maximum ratio of the decompressed to the compressed size of a member above `RATIO_FREE_BYTES`. */
const RATIO_MAX = 1000
const RATIO_FREE_BYTES = 1 << 20

/**
 * Reads and checks the structure of an archive, without the data of its members.
 *
 * @param {Blob} archive
 * @returns {Promise<Map<string, Entry>>}
 */
export async function readLayout(archive) {
  const end = await findEnd(archive)
  const fields = new Fields(await readAt(archive, end.offset, end.bytes), () => damaged('its directory is cut off'))
  const headers = []
  for (let count = 0; count < end.entries; count += 1) headers.push(readCentralHeader(fields))
  if (fields.rest.length > 0) throw damaged('its directory is longer than its entries')
  checkMembers(headers)
  checkSizes(headers)
  return checkCoverage(archive, headers, end.offset)
}

/**
 * Reads one member. Its size, its checksum and the end of its compressed data are checked.
 *
 * @param {Blob} archive
 * @param {Entry} entry
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function readMember(archive, entry) {
  const max = entry.name === 'results.json' ? TOTAL_BYTES_MAX
    : entry.name === 'manifest.json' ? MANIFEST_BYTES_MAX : TEXT_BYTES_MAX
  if (entry.bytes > max) throw new Refusal('too_large', `${entry.name} is larger than ${max} bytes`, entry.name)
  const data = archive.slice(entry.dataOffset, entry.dataOffset + entry.compressedBytes)
  return inflate(data, entry)
}

/** @param {Blob} archive */
async function findEnd(archive) {
  const at = archive.size - END_BYTES
  if (at < 0) throw notZip()
  const record = await readAt(archive, at, END_BYTES)
  const fields = new Fields(record, notZip)
  if (fields.u32() !== END_SIGNATURE || record[END_BYTES - 1] !== 0 || record[END_BYTES - 2] !== 0) {
    throw await explainMissingEnd(archive)
  }
  const [disk, directoryDisk, here, entries] = [fields.u16(), fields.u16(), fields.u16(), fields.u16()]
  const [bytes, offset] = [fields.u32(), fields.u32()]
  const before = at - ZIP64_LOCATOR_BYTES
  const hasLocator = before >= 0 && await u32At(archive, before) === ZIP64_LOCATOR_SIGNATURE
  if (hasLocator || entries === 0xffff || bytes === 0xffffffff || offset === 0xffffffff) throw zip64()
  if (disk !== 0 || directoryDisk !== 0 || here !== entries) {
    throw new Refusal('unsupported_feature', 'The archive is split over several files')
  }
  if (entries > ENTRIES_MAX) {
    throw new Refusal('too_many_entries', `The archive has ${entries} entries, more than the ${ENTRIES_MAX} allowed`)
  }
  if (bytes > DIRECTORY_BYTES_MAX) throw new Refusal('too_large', 'The directory of the archive is too large')
  const directoryAt = at - bytes
  if (directoryAt < 0) throw damaged('its directory is larger than the file')
  if (directoryAt < offset) throw damaged('its directory overlaps its end')
  if (directoryAt > offset) {
    // Data was inserted: before the archive if the directory is still directly in front of the end record.
    const isMoved = entries > 0 && await u32At(archive, directoryAt) === CENTRAL_SIGNATURE
    throw isMoved ? dataBefore() : dataBetween()
  }
  return { entries, bytes, offset }
}

/** Returns the reason why a file doesn't end with an end record: a comment, data after it, or no archive at all. @param {Blob} archive */
async function explainMissingEnd(archive) {
  const count = Math.min(archive.size, COMMENT_BYTES_MAX + END_BYTES)
  const tail = await readAt(archive, archive.size - count, count)
  for (let at = tail.length - END_BYTES; at >= 0; at -= 1) {
    if (tail[at] !== 0x50 || new Fields(tail.subarray(at), notZip).u32() !== END_SIGNATURE) continue
    const comment = tail[at + END_BYTES - 2] | tail[at + END_BYTES - 1] << 8
    const stop = at + END_BYTES + comment
    if (stop === tail.length) return new Refusal('archive_comment', 'The archive has a comment, which no signature covers')
    return stop < tail.length ? new Refusal('data_after_archive', 'Data follows after the archive') : notZip()
  }
  return notZip()
}

/** @param {Header[]} headers */
function checkMembers(headers) {
  const names = headers.map(({ name }) => new TextDecoder().decode(name))
  for (const required of MEMBERS.slice(0, 3)) {
    if (!names.includes(required)) throw new Refusal('missing_file', `The archive has no ${required}`, required)
  }
  for (const [index, name] of names.entries()) {
    if (/[/\\:\0]|^\./.test(name)) throw new Refusal('unsafe_name', `The entry name ${quote(name)} is a path`)
    if (!MEMBERS.some((member) => member === name)) {
      throw new Refusal('extra_entry', `The archive has an entry that does not belong there: ${quote(name)}`)
    }
    if (names.indexOf(name) < index) {
      throw new Refusal('duplicate_entry', `The archive has the entry ${quote(name)} twice`, /** @type {Part} */ (name))
    }
  }
}

/** Checks the sizes that headers declare. Readers never return more than that. @param {Header[]} headers */
function checkSizes(headers) {
  let total = 0
  for (const { bytes, compressedBytes } of headers) {
    if (bytes > RATIO_FREE_BYTES && bytes > compressedBytes * RATIO_MAX) {
      throw new Refusal('ratio_too_high', `An entry grows more than ${RATIO_MAX} times when decompressed`)
    }
    total += bytes
  }
  if (total > TOTAL_BYTES_MAX) {
    throw new Refusal('too_large', `The archive holds ${total} bytes, more than the ${TOTAL_BYTES_MAX} that this page reads; verify it with \`bench verify\``)
  }
}

/**
 * Checks from the start of the file that every byte belongs to exactly one entry. The entries may be in any order.
 *
 * @param {Blob} archive
 * @param {Header[]} headers
 * @param {number} directoryOffset
 */
async function checkCoverage(archive, headers, directoryOffset) {
  const inOrder = headers.toSorted((one, other) => one.offset - other.offset)
  if (inOrder[0].offset > 0) throw dataBefore()
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  for (const [index, header] of inOrder.entries()) {
    const entry = await checkLocal(archive, header, inOrder[index + 1]?.offset ?? directoryOffset)
    entries.set(entry.name, entry)
  }
  return entries
}

/**
 * @param {Blob} archive
 * @param {Header} header
 * @param {number} end Offset at which the next entry or the directory begins.
 * @returns {Promise<Entry>}
 */
async function checkLocal(archive, header, end) {
  const overlap = () => damaged('its entries overlap')
  const name = /** @type {Part} */ (new TextDecoder().decode(header.name))
  const disagree = () => new Refusal('headers_disagree', `The two headers of ${quote(name)} say different things`, name)
  if (end - header.offset < LOCAL_BYTES) throw overlap()
  const fields = new Fields(await readAt(archive, header.offset, LOCAL_BYTES), overlap)
  if (fields.u32() !== LOCAL_SIGNATURE) throw damaged('an entry does not start where the directory says')
  fields.bytes(2)
  const [flags, method] = [fields.u16(), fields.u16()]
  fields.bytes(4)
  const local = [fields.u32(), fields.u32(), fields.u32()]
  const [nameBytes, extraBytes] = [fields.u16(), fields.u16()]
  const dataOffset = header.offset + LOCAL_BYTES + nameBytes + extraBytes
  const dataEnd = dataOffset + header.compressedBytes
  if (dataEnd > end) throw overlap()
  const variable = await readAt(archive, header.offset + LOCAL_BYTES, nameBytes + extraBytes)
  checkExtra(variable.subarray(nameBytes))
  const hasSameName = nameBytes === header.name.length && header.name.every((byte, at) => byte === variable[at])
  if (!hasSameName || flags !== header.flags || method !== header.method) throw disagree()
  if (method !== STORED && method !== DEFLATED) {
    throw new Refusal('unsupported_compression', `The archive uses compression method ${method}; only deflate is supported`, name)
  }
  const central = [header.crc, header.compressedBytes, header.bytes]
  const isSame = (/** @type {number[]} */ sizes) => sizes.every((size, at) => size === central[at])
  const hasDescriptor = (flags & FLAG_DESCRIPTOR) !== 0
  if (!isSame(local) && !(hasDescriptor && local.every((size) => size === 0))) throw disagree()
  if (hasDescriptor) {
    // A program that reads from the front couldn't find the end of such data.
    if (method === STORED) throw new Refusal('unsupported_feature', 'An entry is stored without saying its size first', name)
    const room = end - dataEnd
    if (room < 12) throw overlap()
    if (room !== 12 && room !== 16) throw dataBetween()
    const descriptor = new Fields(await readAt(archive, dataEnd, room), overlap)
    const isSigned = room === 12 || descriptor.u32() === DESCRIPTOR_SIGNATURE
    if (!isSigned || !isSame([descriptor.u32(), descriptor.u32(), descriptor.u32()])) throw disagree()
  } else if (end !== dataEnd) throw dataBetween()
  return { name, method, crc: header.crc, compressedBytes: header.compressedBytes, bytes: header.bytes, dataOffset }
}

/** @param {Blob} archive @param {number} at @param {number} count */
async function readAt(archive, at, count) {
  const bytes = new Uint8Array(await archive.slice(at, at + count).arrayBuffer())
  if (bytes.length !== count) throw damaged('it ends early')
  return bytes
}

/** @param {Blob} archive @param {number} at */
async function u32At(archive, at) {
  return new Fields(await readAt(archive, at, 4), notZip).u32()
}
