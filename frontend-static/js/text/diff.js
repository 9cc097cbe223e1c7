/** Unified diffs, side by side. */

import { h } from '../core/dom.js'

/** @typedef {{kind: 'same' | 'changed', old: number | null, before: string | null, now: number | null, after: string | null}} Row lines of both sides; a side without a line is null */
/** @typedef {{path: string, note: string, hunks: Row[][], added: number, removed: number}} FileDiff */

/**
 * Reads a unified diff.
 *
 * @param {string} text
 * @returns {FileDiff[]}
 */
export function readDiff(text) {
  /** @type {FileDiff[]} */
  const files = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const binary = /^Binary files (.+) and (.+) differ$/.exec(lines[i])
    if (binary) {
      files.push({ path: pathOf(binary[1], binary[2]), note: 'not a text', hunks: [], added: 0, removed: 0 })
    } else if (lines[i].startsWith('--- ') && lines[i + 1]?.startsWith('+++ ')) {
      const [before, after] = [lines[i].slice(4), lines[i + 1].slice(4)]
      const note = before === '/dev/null' ? 'new' : after === '/dev/null' ? 'removed' : ''
      files.push({ path: pathOf(before, after), note, hunks: [], added: 0, removed: 0 })
      i++
    } else if (lines[i].startsWith('@@ ')) {
      const file = files.at(-1)
      const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(lines[i])
      if (file && header) i = readHunk(lines, i + 1, file, header)
    }
  }
  return files
}

/**
 * @param {string} before
 * @param {string} after
 */
function pathOf(before, after) {
  return (after === '/dev/null' ? before : after).replace(/^[ab]\//, '')
}

/**
 * Reads the lines of a hunk, as many as its header says. Returns the index of its last line.
 *
 * @param {string[]} lines
 * @param {number} from
 * @param {FileDiff} file
 * @param {RegExpExecArray} header
 */
function readHunk(lines, from, file, header) {
  let [old, now] = [Number(header[1]), Number(header[3])]
  let [oldLeft, nowLeft] = [Number(header[2] ?? 1), Number(header[4] ?? 1)]
  /** @type {Row[]} */
  const rows = []
  /** @type {string[]} */
  let removed = []
  /** @type {string[]} */
  let added = []
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      rows.push({ kind: 'changed', old: i < removed.length ? old++ : null, before: removed[i] ?? null, now: i < added.length ? now++ : null, after: added[i] ?? null })
    }
    file.removed += removed.length
    file.added += added.length
    removed = []
    added = []
  }
  let i = from
  for (; i < lines.length && (oldLeft > 0 || nowLeft > 0); i++) {
    const [mark, text] = [lines[i][0], lines[i].slice(1)]
    if (mark === '-') {
      if (added.length > 0) flush()
      removed.push(text)
      oldLeft--
    } else if (mark === '+') {
      added.push(text)
      nowLeft--
    } else if (mark === '\\') {
      continue
    } else {
      flush()
      rows.push({ kind: 'same', old: old++, before: text, now: now++, after: text })
      oldLeft--
      nowLeft--
    }
  }
  flush()
  file.hunks.push(rows)
  return i - 1
}

/**
 * Shows a file's changes side by side.
 *
 * @param {FileDiff} file
 */
export function diffTable(file) {
  const side = (/** @type {number | null} */ number, /** @type {string | null} */ text, /** @type {string} */ mark, /** @type {boolean} */ isChanged) => [
    h('td', { class: number === null ? 'line-number no-line' : 'line-number' }, number === null ? '' : String(number)),
    h('td', { class: text === null ? 'no-line' : isChanged ? mark : null }, text !== null && isChanged && h('span', { class: 'visually-hidden' }, mark === 'removed' ? 'removed: ' : 'added: '), text ?? ''),
  ]
  const row = (/** @type {Row} */ { kind, old, before, now, after }) =>
    h('tr', { class: kind === 'same' ? 'same' : null }, side(old, before, 'removed', kind === 'changed'), side(now, after, 'added', kind === 'changed'))
  return h('div', { class: 'diff-scroll', tabindex: '0', role: 'region', 'aria-label': `Changes of ${file.path}` },
    h('table', { class: 'diff' },
      h('colgroup', null, h('col', { class: 'number' }), h('col', null), h('col', { class: 'number' }), h('col', null)),
      h('thead', { class: 'visually-hidden' }, h('tr', null, ['Line before', 'Before', 'Line after', 'After'].map((name) => h('th', { scope: 'col' }, name)))),
      file.hunks.map((rows) => h('tbody', null, rows.map(row)))))
}
