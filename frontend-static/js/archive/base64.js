/** Base64 and hexadecimal texts of keys, signatures and digests. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/**
 * Decodes a signature as compatible verifiers do: characters outside the alphabet are skipped, the text ends at padding
 * that completes a group, and unused bits are ignored. Returns null if a group is incomplete.
 *
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer> | null}
 */
export function decodeLenient(text) {
  const decoded = []
  let bits = 0
  let group = 0
  let padding = 0
  for (const character of text) {
    if (character === '=') {
      if (group >= 2) padding += 1
      if (padding > 0 && group + padding >= 4) return Uint8Array.from(decoded)
      continue
    }
    const value = ALPHABET.indexOf(character)
    if (value < 0) continue
    padding = 0
    bits = (bits << 6 | value) & 0xffffff
    group = (group + 1) % 4
    // The first character yields no complete byte; each later one completes one.
    if (group === 2) decoded.push(bits >> 4 & 0xff)
    else if (group === 3) decoded.push(bits >> 2 & 0xff)
    else if (group === 0) decoded.push(bits & 0xff)
  }
  return group === 0 ? Uint8Array.from(decoded) : null
}

/**
 * Decodes a key: the standard alphabet with or without padding. Returns null for anything else.
 *
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer> | null}
 */
export function decodeStrict(text) {
  const body = text.replace(/={0,2}$/, '')
  if (!/^[A-Za-z0-9+/]*$/.test(body) || body.length % 4 === 1) return null
  const bytes = decodeLenient(body.padEnd(Math.ceil(body.length / 4) * 4, '='))
  // Unused bits must be zero: a key has one text.
  return bytes && encode(bytes).replaceAll('=', '') === body ? bytes : null
}

/** @param {Uint8Array} bytes */
export function encode(bytes) {
  return btoa(String.fromCharCode(...bytes))
}

/** @param {ArrayBuffer | Uint8Array} bytes */
export function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Returns the lowercase hexadecimal SHA-256.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export async function sha256(bytes) {
  return hex(await crypto.subtle.digest('SHA-256', bytes))
}
