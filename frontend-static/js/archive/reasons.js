/**
 * Reasons for which an archive isn't valid: codes and sentences are those of `bench verify`, so that both say the same.
 */

/** Part of an archive. @typedef {'archive' | 'results.json' | 'manifest.json' | 'signature.txt' | 'public_key.txt'} Part */

/** Longest text from an archive that a sentence quotes, in characters. */
const QUOTED_CHARS_MAX = 60

/** A reason, with the part of the archive that it is about. */
export class Refusal extends Error {
  /**
   * @param {string} code
   * @param {string} text Sentence for people.
   * @param {Part} [part]
   */
  constructor(code, text, part = 'archive') {
    super(text)
    this.name = 'Refusal'
    this.code = code
    this.part = part
  }
}

export const notZip = () => new Refusal('not_zip', 'The file isn’t a ZIP archive, or it is cut off')

/** @param {string} what */
export const damaged = (what) => new Refusal('damaged', `The archive is damaged: ${what}`)

export const zip64 = () => new Refusal('unsupported_feature', 'The archive uses ZIP64, which is not supported')

export const encrypted = () => new Refusal('encrypted', 'The archive is encrypted')

export const notRegular = () =>
  new Refusal('not_a_regular_file', 'An entry is a symbolic link or something else than a regular file')

export const dataBefore = () => new Refusal('data_before_archive', 'There is data before the archive')

export const dataBetween = () =>
  new Refusal('data_between_entries', 'The archive contains data that belongs to no entry')

/**
 * Quotes a text from an archive: escaped and shortened.
 *
 * @param {string} text
 */
export function quote(text) {
  const characters = [...text.slice(0, QUOTED_CHARS_MAX * 2)]
  const isCut = characters.length > QUOTED_CHARS_MAX || text.length > QUOTED_CHARS_MAX * 2
  return JSON.stringify(characters.slice(0, QUOTED_CHARS_MAX).join('')) + (isCut ? '…' : '')
}
