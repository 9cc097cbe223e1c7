/** ZIP files: just enough to change a member of an archive. */

import zlib from 'node:zlib'
import { checksum } from './checksum.js'

/**
 * Reads all members.
 *
 * @param {Buffer} zip
 * @returns {Map<string, Buffer>}
 */
export function readZip(zip) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  const members = new Map()
  let at = zip.readUInt32LE(end + 16)
  for (let i = 0; i < zip.readUInt16LE(end + 10); i += 1) {
    const [method, size] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)]
    const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset))
    const local = zip.readUInt32LE(at + 42)
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
    const data = zip.subarray(start, start + size)
    members.set(zip.toString('utf8', at + 46, at + 46 + name), method === 8 ? zlib.inflateRawSync(data) : Buffer.from(data))
    at += 46 + name + extra + comment
  }
  return members
}

/**
 * Writes members without compression.
 *
 * @param {Map<string, Buffer>} members
 */
export function writeZip(members) {
  const parts = []
  const directory = []
  let offset = 0
  for (const [name, data] of members) {
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(0x21, 8)
    fields.writeUInt32LE(checksum(data), 10)
    fields.writeUInt32LE(data.length, 14)
    fields.writeUInt32LE(data.length, 18)
    fields.writeUInt16LE(Buffer.byteLength(name), 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, tail, Buffer.from(name))
    parts.push(Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), data)
    offset += 30 + Buffer.byteLength(name) + data.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(members.size, 8)
  end.writeUInt16LE(members.size, 10)
  end.writeUInt32LE(list.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, list, end])
}
