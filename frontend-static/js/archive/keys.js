/** Public keys: their texts, their fingerprints, and the signatures that they verify. */

import { decodeStrict, encode, sha256 } from './base64.js'

/**
 * @typedef {object} Key
 * @property {string} base64 standard base64 of the 32 raw bytes
 * @property {string} fingerprint lowercase hexadecimal SHA-256 of the raw bytes
 * @property {'current' | 'retired' | 'given'} role
 * @property {string} from where the key comes from, for people
 * @property {string | null} validFrom RFC 3339; null if unknown
 * @property {string | null} validUntil RFC 3339; null while it signs, or if unknown
 */

const KEY_BYTES = 32
const SIGNATURE_BYTES = 64

/** Processes may sign with a key for this long after it was retired, in milliseconds. */
const ROLLOUT_MS = 3_600_000

/** `SubjectPublicKeyInfo` of Ed25519 up to the raw key. */
const SPKI_PREFIX = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]

/** Key, and its signature of an empty message: RFC 8032, section 7.1, test 1. */
const KNOWN_KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='
const KNOWN_SIGNATURE = '5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw=='

/** Points of small order, in hexadecimal without the sign bit: anyone can forge signatures for them. */
const SMALL_ORDER = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
])

/**
 * Parses one key: PEM (`SubjectPublicKeyInfo`), or 32 raw bytes in base64. Returns null for anything else.
 *
 * @param {string} text
 * @param {Partial<Key>} [about]
 * @returns {Promise<Key | null>}
 */
export async function parseKey(text, about = {}) {
  const bytes = rawBytes(text.trim())
  if (!bytes || bytes.length !== KEY_BYTES || isWeak(bytes)) return null
  return {
    base64: encode(bytes), fingerprint: await sha256(bytes), role: 'given', from: 'given here', validFrom: null,
    validUntil: null, ...about,
  }
}

/**
 * Parses keys from a list as `/.well-known/bench-runner-keys.json` has it, from `bench keys show --json`, or from a text
 * with one key per line or in PEM. Returns an empty list if there is none.
 *
 * @param {string} text
 * @param {Partial<Key>} [about]
 * @returns {Promise<Key[]>}
 */
export async function parseKeys(text, about = {}) {
  const found = text.trim().startsWith('{') || text.trim().startsWith('[') ? fromDocument(text) : fromLines(text)
  const keys = await Promise.all(found.map((entry) => parseKey(entry.text, { ...about, ...entry.about })))
  return keys.filter((key) => key !== null)
}

/**
 * Returns true if `signature` is the key's signature of `message`.
 *
 * @param {Key} key
 * @param {Uint8Array<ArrayBuffer>} message
 * @param {Uint8Array<ArrayBuffer>} signature
 */
export async function verifies(key, message, signature) {
  const bytes = decodeStrict(key.base64)
  if (signature.length !== SIGNATURE_BYTES || !bytes) return false
  try {
    const imported = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify'])
    return await crypto.subtle.verify('Ed25519', imported, signature, message)
  } catch (problem) {
    // Some browsers refuse bytes that are no point of the curve. A browser without Ed25519 fails in another way.
    if (problem instanceof DOMException && problem.name === 'DataError') return false
    throw problem
  }
}

/** Returns true if this browser can check Ed25519 signatures here: WebCrypto exists on HTTPS and on this machine only. */
export async function canVerify() {
  if (!globalThis.crypto?.subtle || typeof DecompressionStream === 'undefined') return false
  try {
    const key = await parseKey(KNOWN_KEY)
    return key !== null && await verifies(key, new Uint8Array(), /** @type {Uint8Array<ArrayBuffer>} */ (decodeStrict(KNOWN_SIGNATURE)))
  } catch {
    return false
  }
}

/** @param {string} text */
function rawBytes(text) {
  if (!text.startsWith('-----BEGIN')) return decodeStrict(text)
  const body = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----$/.exec(text.replaceAll('\\n', '\n'))
  const bytes = body && decodeStrict(body[1].replaceAll(/\s/g, ''))
  const isEd25519 = bytes && SPKI_PREFIX.every((byte, at) => bytes[at] === byte)
  return isEd25519 ? bytes.slice(SPKI_PREFIX.length) : null
}

/** @param {Uint8Array} bytes */
function isWeak(bytes) {
  const hex = Array.from(bytes, (byte, at) => (at === KEY_BYTES - 1 ? byte & 0x7f : byte).toString(16).padStart(2, '0'))
  return SMALL_ORDER.has(hex.join(''))
}

/** @param {string} text @returns {{text: string, about: Partial<Key>}[]} */
function fromDocument(text) {
  let parsed
  try {
    parsed = JSON.parse(text)
  } catch {
    return []
  }
  const entries = Array.isArray(parsed) ? parsed : Array.isArray(parsed?.keys) ? parsed.keys : [parsed]
  return entries.flatMap((/** @type {Partial<Api.KeyView> | null} */ entry) => {
    if (typeof entry?.public_key !== 'string') return []
    const until = time(entry.valid_until)
    const validUntil = until === null ? null : new Date(until + ROLLOUT_MS).toISOString()
    const validFrom = time(entry.valid_from) === null ? null : entry.valid_from
    return [{ text: entry.public_key, about: { role: entry.status === 'retired' ? 'retired' : 'current', validFrom, validUntil } }]
  })
}

/** @param {unknown} value Time as RFC 3339. @returns {number | null} */
function time(value) {
  const found = typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(found) ? null : found
}

/** @param {string} text @returns {{text: string, about: Partial<Key>}[]} */
function fromLines(text) {
  const pem = text.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g)
  return (pem ?? text.split(/[\s,]+/)).filter((entry) => entry.length >= 43).map((entry) => ({ text: entry, about: {} }))
}
