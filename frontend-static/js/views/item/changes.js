/** Changes of files side by side. Each file is drawn when it is opened, and long ones in parts, so that a patch of a megabyte costs no more than a short one. */

import { h } from '../../core/dom.js'
import { integer, plural } from '../../core/format.js'
import { diffTable, readDiff } from '../../text/diff.js'

/** @typedef {import('../../text/diff.js').FileDiff} FileDiff */

/** Number of changed lines up to which a file's changes are open at first, and of those of all open files. */
const OPEN_LINES = 400
const OPEN_LINES_ALL = 2_000
/** Lines of a file that are shown at first, and that one more press adds. */
const PART_LINES = 1_000
/** Files that are shown at first, and that one more press adds. */
const PART_FILES = 200

/**
 * Makes the changes of all files of a unified diff.
 *
 * @param {string} text
 * @returns {HTMLElement[]} none if no file is changed
 */
export function changedFiles(text) {
  const files = readDiff(text)
  let open = 0
  const detailsOf = (/** @type {FileDiff} */ file) => {
    const lines = file.added + file.removed
    const isOpen = lines <= OPEN_LINES && open + lines <= OPEN_LINES_ALL
    if (isOpen) open += lines
    const details = h('details', { open: isOpen },
      h('summary', null, h('code', null, file.path), ' ', h('span', { class: 'dim' }, [file.note, `+${integer(file.added)} −${integer(file.removed)}`].filter(Boolean).join(', '))))
    const draw = () => { if (file.hunks.length > 0) details.append(...tablesOf(file)) }
    if (isOpen) draw()
    else details.addEventListener('toggle', draw, { once: true })
    return details
  }
  const shown = files.slice(0, PART_FILES).map(detailsOf)
  const rest = files.slice(PART_FILES)
  if (rest.length === 0) return shown
  const more = h('button', { type: 'button', class: 'button small' })
  const label = () => { more.textContent = `Show more files (${integer(rest.length)})` }
  label()
  more.addEventListener('click', () => {
    more.before(...rest.splice(0, PART_FILES).map(detailsOf))
    if (rest.length === 0) more.remove()
    else label()
  })
  return [...shown, more]
}

/**
 * Makes the table of a file, in parts if it is long.
 *
 * @param {FileDiff} file
 * @returns {HTMLElement[]}
 */
function tablesOf(file) {
  const parts = partsOf(file)
  const [first, ...rest] = parts
  const tables = [diffTable(first)]
  if (rest.length === 0) return tables
  const more = h('button', { type: 'button', class: 'button small' })
  const label = () => { more.textContent = `Show more (${plural(rest.reduce((sum, part) => sum + lengthOf(part), 0), 'line')})` }
  label()
  more.addEventListener('click', () => {
    const next = rest.shift()
    if (next) more.before(diffTable(next))
    if (rest.length === 0) more.remove()
    else label()
  })
  return [...tables, more]
}

/** Divides the hunks of a file. @param {FileDiff} file @returns {FileDiff[]} */
function partsOf(file) {
  /** @type {FileDiff[]} */
  const parts = []
  let left = 0
  for (const hunk of file.hunks) {
    for (let at = 0; at < hunk.length; at += PART_LINES) {
      const rows = hunk.slice(at, at + PART_LINES)
      const last = parts.at(-1)
      if (last && rows.length <= left) last.hunks.push(rows)
      else {
        parts.push({ ...file, hunks: [rows] })
        left = PART_LINES
      }
      left -= rows.length
    }
  }
  return parts
}

/** @param {FileDiff} file */
function lengthOf({ hunks }) {
  return hunks.reduce((sum, rows) => sum + rows.length, 0)
}
