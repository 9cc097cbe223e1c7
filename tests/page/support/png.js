/** PNG files with a palette, which are a third as large as those of browsers. */

import zlib from 'node:zlib'
import { checksum } from './checksum.js'

/** Colors of a palette. */
const COLORS_MAX = 256

/**
 * Reduces a picture of 8 bits per channel without interlacing to at most 256 colors. Pages have few colors besides the shades
 * at the edges of letters, so the most frequent colors are kept, and others become the nearest of them.
 *
 * @param {Buffer} png
 * @returns {Buffer}
 */
export function compressPng(png) {
  const { width, height, pixels } = decode(png)
  /** @type {Map<number, number>} */
  const counts = new Map()
  // The lowest two bits of a channel can't be seen.
  const colors = Uint32Array.from({ length: width * height }, (_, i) => (pixels[i * 3] & 0xfc) << 16 | (pixels[i * 3 + 1] & 0xfc) << 8 | pixels[i * 3 + 2] & 0xfc)
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1)
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, COLORS_MAX).map(([color]) => color)
  const nearest = new Map(palette.map((color, index) => [color, index]))
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const color = colors[y * width + x]
      let index = nearest.get(color)
      if (index === undefined) {
        index = indexOfNearest(palette, color)
        nearest.set(color, index)
      }
      rows[y * (width + 1) + x + 1] = index
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  const table = Buffer.from(palette.flatMap((color) => [color >> 16, color >> 8 & 255, color & 255].map((channel) => channel | channel >> 6)))
  return Buffer.concat([
    png.subarray(0, 8), chunk('IHDR', header), chunk('PLTE', table), chunk('IDAT', zlib.deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0)),
  ])
}

/**
 * @param {number[]} palette
 * @param {number} color
 */
function indexOfNearest(palette, color) {
  let best = 0
  let distance = Infinity
  palette.forEach((other, index) => {
    const d = ((other >> 16) - (color >> 16)) ** 2 + ((other >> 8 & 255) - (color >> 8 & 255)) ** 2 + ((other & 255) - (color & 255)) ** 2
    if (d < distance) [best, distance] = [index, d]
  })
  return best
}

/**
 * Returns the pixels of a picture as three bytes each.
 *
 * @param {Buffer} png
 */
function decode(png) {
  const [width, height, kind] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25]]
  const parts = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  const data = zlib.inflateSync(Buffer.concat(parts))
  const channels = kind === 6 ? 4 : 3
  const stride = width * channels
  const lines = Buffer.alloc(stride * height)
  const pixels = Buffer.alloc(width * height * 3)
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (stride + 1)]
    for (let x = 0; x < stride; x += 1) {
      const left = x >= channels ? lines[y * stride + x - channels] : 0
      const up = y > 0 ? lines[(y - 1) * stride + x] : 0
      const corner = y > 0 && x >= channels ? lines[(y - 1) * stride + x - channels] : 0
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]
      lines[y * stride + x] = data[y * (stride + 1) + 1 + x] + predicted
    }
  }
  for (let i = 0; i < width * height; i += 1) lines.copy(pixels, i * 3, i * channels, i * channels + 3)
  return { width, height, pixels }
}

/**
 * @param {number} left
 * @param {number} up
 * @param {number} corner
 */
function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)]
  return a <= b && a <= c ? left : b <= c ? up : corner
}

/**
 * @param {string} name
 * @param {Buffer} data
 */
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const frame = Buffer.alloc(body.length + 8)
  frame.writeUInt32BE(data.length, 0)
  body.copy(frame, 4)
  frame.writeUInt32BE(checksum(body), body.length + 4)
  return frame
}
