/** Records of a ZIP file (PKWARE's APPNOTE 4.3), little-endian. */

import { damaged, encrypted, notRegular, Refusal, zip64 } from './reasons.js'

export const LOCAL_SIGNATURE = 0x04034b50
export const CENTRAL_SIGNATURE = 0x02014b50
export const DESCRIPTOR_SIGNATURE = 0x08074b50
export const END_SIGNATURE = 0x06054b50
export const ZIP64_LOCATOR_SIGNATURE = 0x07064b50

export const LOCAL_BYTES = 30
export const CENTRAL_BYTES = 46
export const END_BYTES = 22
export const ZIP64_LOCATOR_BYTES = 20

export const STORED = 0
export const DEFLATED = 8

/** Sizes and checksum follow the data instead of being in the local header. */
export const FLAG_DESCRIPTOR = 1 << 3
/** Encrypted; strongly encrypted; local header masked. */
const FLAGS_ENCRYPTED = 1 | 1 << 6 | 1 << 13
/** Compression level hints and the UTF-8 mark for names, which have no effect here. */
const FLAGS_HARMLESS = 1 << 1 | 1 << 2 | 1 << 11

const UNIX_TYPE = 0xf000
const UNIX_REGULAR = 0x8000
const DOS_LABEL_OR_FOLDER = 0x18

/** Length of PKWARE's Unix field without the target of a link, in bytes. */
const PKWARE_UNIX_BYTES = 12

/**
 * Metadata of an entry in the central directory.
 *
 * @typedef {{name: Uint8Array, flags: number, method: number, crc: number, compressedBytes: number, bytes: number, offset: number}} Header
 */

/** Reads the fields of records one after the other. Throws at the end of the bytes. */
export class Fields {
  /**
   * @param {Uint8Array} bytes
   * @param {() => Error} short Makes the error for missing bytes.
   */
  constructor(bytes, short) {
    this.rest = bytes
    this.short = short
  }

  /** @param {number} count */
  bytes(count) {
    if (count > this.rest.length) throw this.short()
    const head = this.rest.subarray(0, count)
    this.rest = this.rest.subarray(count)
    return head
  }

  u16() {
    const [a, b] = this.bytes(2)
    return a | b << 8
  }

  u32() {
    return this.u16() + this.u16() * 0x10000
  }
}

/**
 * Reads one entry of the central directory, and refuses what a signed archive doesn't need.
 *
 * @param {Fields} fields
 * @returns {Header}
 */
export function readCentralHeader(fields) {
  const fixed = new Fields(fields.bytes(CENTRAL_BYTES), fields.short)
  if (fixed.u32() !== CENTRAL_SIGNATURE) throw damaged('its directory has something other than entries')
  fixed.bytes(4)
  const [flags, method] = [fixed.u16(), fixed.u16()]
  fixed.bytes(4)
  const [crc, compressedBytes, bytes] = [fixed.u32(), fixed.u32(), fixed.u32()]
  const [nameBytes, extraBytes, commentBytes, disk] = [fixed.u16(), fixed.u16(), fixed.u16(), fixed.u16()]
  fixed.bytes(2)
  const dosAttributes = fixed.u16()
  const unixMode = fixed.u16()
  const offset = fixed.u32()
  const name = fields.bytes(nameBytes)
  const extra = fields.bytes(extraBytes)
  if (commentBytes > 0) throw new Refusal('archive_comment', 'An entry has a comment, which no signature covers')
  const isRegular = [0, UNIX_REGULAR].includes(unixMode & UNIX_TYPE) && (dosAttributes & DOS_LABEL_OR_FOLDER) === 0
  if (!isRegular) throw notRegular()
  if ((flags & FLAGS_ENCRYPTED) !== 0) throw encrypted()
  checkExtra(extra)
  if ([compressedBytes, bytes, offset].includes(0xffffffff)) throw zip64()
  if ((flags & ~(FLAG_DESCRIPTOR | FLAGS_HARMLESS)) !== 0 || disk !== 0) {
    throw new Refusal('unsupported_feature', 'An entry uses a ZIP feature that is not supported')
  }
  return { name, flags, method, crc, compressedBytes, bytes, offset }
}

/**
 * Refuses extra fields that change the meaning of a header: 64-bit sizes, encryption, another name, a link.
 *
 * @param {Uint8Array} extra
 */
export function checkExtra(extra) {
  const fields = new Fields(extra, () => damaged('an extra field is cut off'))
  while (fields.rest.length > 0) {
    const id = fields.u16()
    const length = fields.bytes(fields.u16()).length
    switch (id) {
      case 0x0001: throw zip64()
      case 0x0017: case 0x9901: throw encrypted()
      case 0x7075: throw new Refusal('headers_disagree', 'An entry has two names')
      case 0x756e: throw notRegular()
      case 0x000d: if (length > PKWARE_UNIX_BYTES) throw notRegular()
    }
  }
}
