/**
 * Verification of a signed archive in the browser. The steps, their order and their codes are those of `bench verify`.
 *
 * The signature covers `manifest.json`, which contains the SHA-256 of `results.json`. The key in an archive is a hint
 * for people and never trusted.
 */

import { decodeLenient, sha256 } from './base64.js'
import { checkManifestDate, checkResultsDate } from './dates.js'
import { decodeUtf8, parseStrict, repeatedKeys } from './json.js'
import { parseKey, verifies } from './keys.js'
import { notZip, quote, Refusal } from './reasons.js'
import { Results } from './results.js'
import { readLayout, readMember } from './zip.js'

/** @typedef {import('./keys.js').Key} Key */
/** @typedef {{generated_at?: string, software?: {name?: string, version?: string}, [field: string]: unknown}} Manifest */

/**
 * @typedef {object} Verification
 * @property {'valid' | 'unknown-key' | 'invalid'} state `unknown-key`: intact, and signed by the key in it
 * @property {boolean} isSigned a trusted key signed the manifest, and the manifest names that key
 * @property {boolean} isIntact the manifest has the hash of the results
 * @property {Refusal[]} errors empty only if the state is `valid`
 * @property {Key | null} signer the trusted key that signed
 * @property {Key | null} ownKey the key in the archive, if it signed the manifest; it proves nothing
 * @property {string | null} claimed fingerprint that the manifest names
 * @property {Manifest | null} manifest signed facts; proven only if `isSigned`
 * @property {Results | null} results proven only if the state is `valid`
 * @property {string | null} resultsSha256
 * @property {string[]} members names of the members; empty if the structure is refused
 */

const SCHEMA_VERSION = '1.0'
const ALGORITHM = 'ed25519'

/** Codes of an archive that is intact but signed by a key that the verifier doesn't know. */
const KEY_CODES = new Set(['signature_invalid', 'fingerprint_mismatch', 'keys_unavailable'])

/**
 * Verifies an archive against keys that are already trusted. Never throws for what is in the archive.
 *
 * @param {Blob} archive
 * @param {Key[]} trusted
 * @param {number} [now] Milliseconds.
 * @returns {Promise<Verification>}
 */
export async function verifyArchive(archive, trusted, now = Date.now()) {
  const verification = await verifyAgainst(archive, trusted, now)
  const { errors, isIntact, ownKey } = verification
  const isAboutKeys = errors.length > 0 && errors.every(({ code }) => KEY_CODES.has(code))
  if (!ownKey || !isIntact || !isAboutKeys) return verification
  // Everything else is checked as if the archive's own key were trusted.
  const alone = await verifyAgainst(archive, [ownKey], now)
  if (alone.state !== 'valid') return verification
  const text = 'The archive is intact, but none of the keys here signed it'
  return { ...verification, state: 'unknown-key', errors: [new Refusal('unknown_key', text)], results: alone.results }
}

/**
 * @param {Blob} archive
 * @param {Key[]} trusted
 * @param {number} now Milliseconds.
 * @returns {Promise<Verification>}
 */
async function verifyAgainst(archive, trusted, now) {
  /** @type {Verification} */
  const verification = {
    state: 'invalid', isSigned: false, isIntact: false, errors: [], signer: null, ownKey: null, claimed: null,
    manifest: null, results: null, resultsSha256: null, members: [],
  }
  try {
    await check(archive, trusted, now, verification)
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem
    verification.errors.push(problem)
  }
  const { errors, isSigned, isIntact } = verification
  if (errors.length === 0 && isSigned && isIntact) verification.state = 'valid'
  return verification
}

/** @param {Blob} archive @param {Key[]} trusted @param {number} now @param {Verification} verification */
async function check(archive, trusted, now, verification) {
  const layout = await readLayout(archive)
  verification.members = [...layout.keys()]
  const read = async (/** @type {string} */ name) => {
    const entry = layout.get(name)
    return entry ? readMember(archive, entry) : null
  }
  const manifestBytes = await read('manifest.json')
  const signatureBytes = await read('signature.txt')
  const hintBytes = await read('public_key.txt')
  if (!manifestBytes || !signatureBytes) throw notZip()
  const ownKey = hintBytes ? await parseKey(decodeUtf8(hintBytes) ?? '', { from: 'in the archive' }) : null
  const signature = decodeLenient(String.fromCharCode(...signatureBytes))
  if (ownKey && signature && await verifies(ownKey, manifestBytes, signature)) verification.ownKey = ownKey

  const manifest = await checkSignature(verification, manifestBytes, signature, trusted, now)
  if (verification.isSigned && hintBytes && ownKey?.base64 !== verification.signer?.base64) {
    const text = 'The key in public_key.txt is not the trusted key that signed the archive'
    verification.errors.push(new Refusal('key_hint_differs', text, 'public_key.txt'))
  }
  const resultsBytes = await read('results.json')
  if (!resultsBytes) throw notZip()
  await checkResults(verification, resultsBytes, manifest, now)
}

/**
 * Checks the signature of the manifest, and its fields.
 *
 * @param {Verification} verification
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Uint8Array<ArrayBuffer> | null} signature
 * @param {Key[]} trusted
 * @param {number} now
 */
async function checkSignature(verification, bytes, signature, trusted, now) {
  const { errors } = verification
  if (!signature) errors.push(new Refusal('signature_encoding', 'The signature is not valid base64', 'signature.txt'))
  const manifest = readManifest(bytes, errors)
  const claimed = typeof manifest?.public_key_fingerprint === 'string' ? manifest.public_key_fingerprint : null
  const named = trusted.find((key) => key.fingerprint === claimed)
  // The manifest names the key to try. If it names none of these, any of them may still have signed.
  let signer = null
  for (const key of named ? [named] : trusted) {
    if (!signer && signature && await verifies(key, bytes, signature)) signer = key
  }
  verification.claimed = claimed
  verification.manifest = manifest
  if (trusted.length === 0) {
    errors.push(new Refusal('keys_unavailable', 'There is no key to check the signature with', 'signature.txt'))
  } else if (!signer) {
    errors.push(new Refusal('signature_invalid', 'None of the keys here signed this manifest', 'signature.txt'))
  }
  if (manifest && !named) {
    if (trusted.length > 0) {
      errors.push(new Refusal('fingerprint_mismatch', 'The manifest names a key that is not among the keys here', 'manifest.json'))
    }
    return manifest
  }
  if (!manifest || !signer) return manifest
  verification.isSigned = true
  verification.signer = signer
  checkFields(manifest, errors)
  const date = manifest.generated_at
  const wrong = typeof date === 'string' ? checkManifestDate(date, signer, now) : null
  if (wrong) errors.push(wrong)
  return manifest
}

/** @param {Uint8Array} bytes @param {Refusal[]} errors @returns {Manifest | null} */
function readManifest(bytes, errors) {
  const text = decodeUtf8(bytes)
  const value = text === null ? undefined : parseStrict(text)
  const refuse = (/** @type {string} */ code, /** @type {string} */ what) => {
    errors.push(new Refusal(code, what, 'manifest.json'))
    return null
  }
  if (text === null || value === undefined) return refuse('manifest_not_json', 'Manifest JSON is invalid')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('manifest_wrong_types', 'Manifest JSON is not an object')
  }
  const [repeated] = repeatedKeys(text)
  if (repeated) return refuse('manifest_wrong_types', `Manifest JSON repeats the key ${quote(repeated.key)}`)
  return /** @type {Manifest} */ (value)
}

/** @param {Manifest} manifest @param {Refusal[]} errors */
function checkFields(manifest, errors) {
  for (const field of ['run_id', 'generated_at']) {
    if (typeof manifest[field] === 'string') continue
    errors.push(new Refusal('manifest_wrong_types', `Manifest field ${field} is not a string`, 'manifest.json'))
  }
  for (const [field, known, code] of [
    ['schema_version', SCHEMA_VERSION, 'unsupported_schema'],
    ['signature_algorithm', ALGORITHM, 'unsupported_algorithm'],
  ]) {
    if (manifest[field] === known) continue
    const found = manifest[field] === undefined ? 'nothing' : quote(JSON.stringify(manifest[field]))
    errors.push(new Refusal(code, `Manifest ${field} must be "${known}" but is ${found}`, 'manifest.json'))
  }
}

/**
 * @param {Verification} verification
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Manifest | null} manifest
 * @param {number} now
 */
async function checkResults(verification, bytes, manifest, now) {
  const { errors, signer } = verification
  verification.resultsSha256 = await sha256(bytes)
  verification.isIntact = manifest?.results_sha256 === verification.resultsSha256
  if (!verification.isIntact) {
    errors.push(new Refusal('results_hash_mismatch', 'The results differ from the signed ones', 'results.json'))
  }
  let results
  try {
    results = await new Results(bytes).load()
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem
    // The results of an archive without a trusted signature are only hashed.
    if (verification.isSigned) errors.push(problem)
    return
  }
  verification.results = results
  if (!verification.isSigned || !verification.isIntact || !signer) return
  const { run, schemaVersion, exportedAt } = results
  const refuse = (/** @type {string} */ code, /** @type {string} */ text) => errors.push(new Refusal(code, text, 'results.json'))
  if (schemaVersion !== SCHEMA_VERSION) {
    const found = schemaVersion === null ? 'nothing' : quote(schemaVersion)
    refuse('unsupported_schema', `Results schema_version must be "${SCHEMA_VERSION}" but is ${found}`)
  } else if (typeof run.id !== 'string') refuse('results_wrong_types', 'Results do not name their run')
  else if (typeof manifest?.run_id === 'string' && manifest.run_id !== run.id) {
    refuse('run_mismatch', 'Manifest and results name different runs')
  }
  // A date that equals the manifest's has been checked already.
  if (exportedAt === null || exportedAt === manifest?.generated_at) return
  const wrong = checkResultsDate(exportedAt, signer, now)
  if (wrong) errors.push(wrong)
}
