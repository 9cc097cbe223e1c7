/** What a verification says about each part of an archive, for people. */

import { MEMBERS } from './zip.js'

/** @typedef {import('./verify.js').Verification} Verification */
/** @typedef {{part: string, state: 'good' | 'bad' | 'unknown', text: string}} PartReport */

/**
 * Describes the parts of an archive: which are proven, which differ, and which nobody vouches for.
 *
 * @param {Verification} verification
 * @returns {PartReport[]}
 */
export function partsOf(verification) {
  if (verification.resultsSha256 === null) return unread(verification)
  return [results(verification), manifest(verification), signature(verification), publicKey(verification)]
}

/** Describes an archive that was refused before its signature was checked. @param {Verification} verification @returns {PartReport[]} */
function unread({ errors }) {
  const about = MEMBERS.map((part) => {
    const own = errors.filter((error) => error.part === part)
    return own.length > 0 ? report(part, 'bad', texts(own)) : report(part, 'unknown', 'Not checked.')
  })
  const whole = errors.filter(({ part }) => part === 'archive')
  return whole.length > 0 ? [report('ZIP file', 'bad', texts(whole)), ...about] : about
}

/** @param {Verification} verification */
function results({ isIntact, isSigned, errors }) {
  const own = errors.filter(({ part, code }) => part === 'results.json' && code !== 'results_hash_mismatch')
  if (!isIntact) {
    return report('results.json', 'bad', isSigned ? 'It was changed after it was signed: its SHA-256 isn’t the signed one.'
      : 'Its SHA-256 isn’t the one in manifest.json: one of the two was changed.')
  }
  if (own.length > 0) return report('results.json', 'bad', texts(own))
  return isSigned ? report('results.json', 'good', 'Its SHA-256 is the signed one.')
    : report('results.json', 'unknown', 'Its SHA-256 is the one in manifest.json, which no key here signed.')
}

/** @param {Verification} verification */
function manifest({ isSigned, errors, claimed, manifest: fields }) {
  const own = errors.filter(({ part, code }) => part === 'manifest.json' && code !== 'fingerprint_mismatch')
  if (own.length > 0) return report('manifest.json', 'bad', texts(own))
  if (isSigned) return report('manifest.json', 'good', 'A key that is trusted here signed it.')
  const named = claimed ? `It names the key ${claimed.slice(0, 12)}…` : 'It names no key'
  const isKnown = errors.every(({ code }) => code !== 'fingerprint_mismatch' && code !== 'unknown_key' && code !== 'keys_unavailable')
  if (isKnown && fields) {
    return report('manifest.json', 'bad', `${named}, but signature.txt isn’t that key’s signature of it: one of the two was changed.`)
  }
  return report('manifest.json', 'unknown', `${named}, which isn’t among the keys here.`)
}

/** @param {Verification} verification */
function signature({ isSigned, errors, ownKey, claimed }) {
  if (isSigned) return report('signature.txt', 'good', 'It is valid for manifest.json.')
  const encoding = errors.filter(({ code }) => code === 'signature_encoding')
  if (encoding.length > 0) return report('signature.txt', 'bad', texts(encoding))
  if (ownKey && ownKey.fingerprint === claimed) {
    return report('signature.txt', 'unknown', 'It is valid for manifest.json, by the key in public_key.txt. Anyone can make such a pair.')
  }
  if (ownKey) return report('signature.txt', 'bad', 'It was made with the key in public_key.txt, not with the key that manifest.json names.')
  return report('signature.txt', 'bad', 'It isn’t a signature of manifest.json by any key here, nor by the one in public_key.txt.')
}

/** @param {Verification} verification */
function publicKey({ members, errors, isSigned }) {
  if (!members.includes('public_key.txt')) return report('public_key.txt', 'unknown', 'Not in the archive. It isn’t needed.')
  const own = errors.filter(({ part }) => part === 'public_key.txt')
  if (own.length > 0) return report('public_key.txt', 'bad', `${texts(own)} It was replaced.`)
  return isSigned ? report('public_key.txt', 'good', 'It is the key that signed.')
    : report('public_key.txt', 'unknown', 'A hint for people, which proves nothing.')
}

/** @param {string} part @param {'good' | 'bad' | 'unknown'} state @param {string} text @returns {PartReport} */
function report(part, state, text) {
  return { part, state, text }
}

/** @param {Error[]} errors */
function texts(errors) {
  return errors.map(({ message }) => `${message}.`).join(' ')
}
