/** Strict reading of JSON whose text was signed: what two programs could read differently is refused. */

/** Deepest nesting, and most digits of an integer, as in canonical JSON. */
export const DEPTH_MAX = 128
const INTEGER_DIGITS_MAX = 4300

/**
 * Decodes UTF-8. Returns null if the bytes aren't UTF-8. A byte order mark stays, and JSON doesn't allow it.
 *
 * @param {Uint8Array} bytes
 */
export function decodeUtf8(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/**
 * Parses JSON. Returns undefined if the text isn't JSON, is nested too deeply, or has numbers or characters that some
 * readers change.
 *
 * @param {string} text
 * @returns {unknown}
 */
export function parseStrict(text) {
  try {
    const value = JSON.parse(text)
    return hasDoubtfulTokens(text) ? undefined : value
  } catch {
    return undefined
  }
}

/** A key that occurs twice in one object. @typedef {{path: string[], key: string}} Repeated */

/**
 * Returns keys that occur twice in one object. `path` has the keys of the objects around it; arrays add nothing.
 *
 * @param {string} text Text that `JSON.parse` has accepted.
 * @returns {Repeated[]}
 */
export function repeatedKeys(text) {
  /** @type {Repeated[]} */
  const found = []
  /** @type {{keys: Set<string> | null, key: string}[]} */
  const open = []
  for (const [token] of text.matchAll(TOKENS)) {
    const inner = open.at(-1)
    if (token === '{') open.push({ keys: new Set(), key: '' })
    else if (token === '[') open.push({ keys: null, key: '' })
    else if (token === '}' || token === ']') open.pop()
    else if (token.startsWith('"') && inner?.keys && isKey(token)) {
      const key = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1))
      if (inner.keys.has(key)) found.push({ path: open.slice(0, -1).filter(({ keys }) => keys).map((level) => level.key), key })
      inner.keys.add(key)
      inner.key = key
    }
  }
  return found
}

/** Structure of a JSON text: texts, with the colon behind keys, and brackets. */
const TOKENS = /"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/gs

/** @param {string} token */
const isKey = (token) => token.endsWith(':') && !token.endsWith('"')

/** @param {string} text */
function hasDoubtfulTokens(text) {
  let depth = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\]]/gs)) {
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    else if (token.startsWith('"')) {
      if (token.includes('\\u') && !JSON.parse(token).isWellFormed()) return true
    } else if (/[.eE]/.test(token) ? !Number.isFinite(Number(token)) : token.length > INTEGER_DIGITS_MAX) return true
    if (depth > DEPTH_MAX) return true
  }
  return false
}
