/** The terminal of recordings: what byte sequences leave on the screen. No browser is needed. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../support/bench.js'

const folder = path.join(ROOT, 'frontend-static/js/terminal')
/** @param {string} name @returns {Promise<any>} */
const module = (name) => import(`data:text/javascript;base64,${Buffer.from(bundle(name)).toString('base64')}`)

/** Puts a module and what it imports into one, since the page's folder isn't a package of modules for Node. @param {string} name */
function bundle(name, seen = new Set()) {
  if (seen.has(name)) return ''
  seen.add(name)
  /** @type {string} */
  const text = fs.readFileSync(path.join(folder, name), 'utf8')
  const before = [...text.matchAll(/^import .* from '\.\/(.+)'$/gm)].map(([, other]) => bundle(other, seen).replace(/^export /gm, '')).join('\n')
  return `${before}\n${text.replace(/^import .*$/gm, '')}`
}

const { Screen } = await module('screen.js')

/** @param {any} screen */
function linesOf(screen) {
  const lines = screen.lines.map(Screen.text)
  while (lines.at(-1) === '') lines.pop()
  return lines
}

/**
 * Output, expected lines, and cursor as column and row from 0.
 *
 * @type {[string, string, string[], [number, number]?][]}
 */
const VECTORS = [
  ['text with line ends', 'one\r\ntwo', ['one', 'two'], [3, 1]],
  ['a line feed alone keeps the column', 'ab\ncd', ['ab', '  cd']],
  ['carriage return overwrites', 'abcdef\rXY', ['XYcdef']],
  ['backspace and tab', 'ab\b\bX\tY', ['Xb      Y']],
  ['a full line wraps with the next character only', '0123456789', ['0123456789'], [9, 0]],
  ['a long line wraps', '0123456789ab', ['0123456789', 'ab'], [2, 1]],
  ['a line end after a full line leaves no empty line', '0123456789\r\nab', ['0123456789', 'ab']],
  ['no wrapping', '\x1b[?7l0123456789ab', ['012345678b']],
  ['the screen scrolls', '1\r\n2\r\n3\r\n4\r\n5\r\n6', ['2', '3', '4', '5', '6']],
  ['absolute positions', '\x1b[2;3Hx\x1b[Hy\x1b[9;99Hz', ['y', '  x', '', '', '         z'], [9, 4]],
  ['relative positions', 'abc\x1b[2D\x1b[1BX\x1b[AY\x1b[3CZ', ['abY   Z', ' X']],
  ['column and row', 'abc\x1b[5Gx\x1b[3dy', ['abc x', '', '     y']],
  ['next and previous line', 'ab\x1b[2Ecd\x1b[1Fef', ['ab', 'ef', 'cd']],
  ['erase to the end of the line', 'abcdef\x1b[3D\x1b[K', ['abc']],
  ['erase from its beginning', 'abcdef\x1b[3D\x1b[1K', ['    ef']],
  ['erase the line', 'abcdef\x1b[2Kx', ['      x']],
  ['erase below', '1\r\n2\r\n3\x1b[2;1H\x1b[J', ['1']],
  ['erase above', '1\r\n2\r\n3\x1b[2;1H\x1b[1J', ['', '', '3']],
  ['erase all keeps the cursor', '1\r\n2\x1b[2Jx', ['', ' x']],
  ['erase characters', 'abcdef\x1b[1;2H\x1b[2X', ['a  def']],
  ['insert and delete characters', 'abcdef\x1b[1;2H\x1b[2@\x1b[1;7H\x1b[1P', ['a  bcdf']],
  ['insert mode', 'abc\x1b[1;1H\x1b[4hXY\x1b[4lZ', ['XYZbc']],
  ['insert and delete lines', '1\r\n2\r\n3\x1b[1;1H\x1b[L\x1b[3;1H\x1b[M', ['', '1', '3']],
  ['a scroll region', '1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\nX', ['1', '3', '4', 'X', '5']],
  ['reverse feed in a region', '1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[2;1H\x1bMX', ['1', 'X', '2', '3', '5']],
  ['scrolling up and down', '1\r\n2\r\n3\x1b[1S\x1b[2T', ['', '', '2', '3']],
  ['origin mode', '\x1b[2;4r\x1b[?6h\x1b[1;1HX\x1b[9;1HY\x1b[?6lZ', ['Z', 'X', '', 'Y']],
  ['saved cursor', 'ab\x1b7\x1b[3;3Hx\x1b8y\x1b[s\x1b[5;1Hz\x1b[uw', ['abyw', '', '  x', '', 'z']],
  ['the alternate screen comes and goes', 'shell\x1b[?1049h\x1b[Heditor\x1b[?1049l!', ['shell!']],
  ['the alternate screen is empty', 'shell\x1b[?1049h\x1b[Hed', ['ed']],
  ['line drawing', '\x1b(0lqk\x1b(B q \x0ex\x0f', ['┌─┐ q x']],
  ['line drawing by shift', '\x1b)0\x0exq\x0fxq', ['│─xq']],
  ['repeated characters', 'a\x1b[3bZ', ['aaaaZ']],
  ['titles and links are skipped', '\x1b]0;title\x07a\x1b]8;;https://x\x1b\\b\x1bPq#0\x1b\\c\x1bkname\x1b\\d', ['abcd']],
  ['unknown sequences are skipped', '\x1b[>4;2ma\x1b[?2004hb\x1b[2 qc\x1b[6nd\x1b[!pe\x1b=f\x1b#8g', ['abcdefg']],
  ['a sequence is cut by another', '\x1b[3\x1b[1;2Hx', [' x']],
  ['controls within a sequence act', 'abc\x1b[1\rCx', ['axc']],
  ['wide characters take two columns', '日本x', ['日本x'], [5, 0]],
  ['a wide character does not fit the last column', '123456789日', ['123456789', '日'], [2, 1]],
  ['half of a wide character is overwritten', '日本\x1b[1;2Hx', [' x本']],
  ['half of a wide character is erased', '日本\x1b[1;4H\x1b[K', ['日']],
  ['emoji and marks', '✅e\u0301👍🏽x', ['✅e\u0301👍🏽x'], [6, 0]],
  ['characters that reorder text are left out', 'a\u202eb\u2066c\u200fd', ['abcd']],
  ['control characters of the second set, and delete', 'a\u0085b\u009bc\x7fd', ['abcd']],
  ['a reset', 'abc\x1b[2;4r\x1b[31m\x1bcx', ['x'], [1, 0]],
]

for (const [name, output, expected, cursor] of VECTORS) {
  test(`terminal: ${name}`, () => {
    const whole = new Screen(10, 5)
    whole.write(output)
    assert.deepEqual(linesOf(whole), expected)
    if (cursor) assert.deepEqual([whole.cursor.x, whole.cursor.y], cursor)
    // The same in single characters, with a copy that goes on in the middle of a sequence.
    let parts = new Screen(10, 5)
    for (const char of output) { parts.write(char); parts = parts.clone() }
    assert.deepEqual(linesOf(parts), expected, 'written one by one')
  })
}

test('terminal: output of tmux with several programs gives the screens that tmux itself reports', () => {
  // Recorded from a client of tmux 3.3a with two panes: a shell, vim and less. Between the states, `tmux capture-pane` was asked.
  const { columns, rows, states } = JSON.parse(fs.readFileSync(path.join(ROOT, 'tests/page/data/tmux-screens.json'), 'utf8'))
  const screen = new Screen(columns, rows)
  for (const [at, { output, panes }] of states.entries()) {
    screen.write(output)
    for (const { left, top, width, lines } of panes) {
      const shown = lines.map((/** @type {string} */ _, /** @type {number} */ y) => Array.from({ length: width }, (_, x) => screen.lines[top + y].chars[left + x] ?? ' ').join('').trimEnd())
      assert.deepEqual(shown, lines, `state ${at + 1}, pane at ${left}`)
    }
  }
})

test('terminal: colors', () => {
  const style = (/** @type {string} */ output) => { const s = new Screen(20, 2); s.write(`${output}x`); const { fg, bg, flags } = s.lines[0].styles[s.cursor.x - 1]; return [fg, bg, flags].join(' ') }
  for (const [output, expected] of [
    ['\x1b[31m', '1  '], ['\x1b[1;91;104m', '9 12 b'], ['\x1b[38;5;208m', '208  '], ['\x1b[48;2;1;2;255m', ' #0102ff '], ['\x1b[38:2::16:32:48m', '#102030  '], ['\x1b[38:5:9m', '9  '],
    ['\x1b[31;38;2;1;2;3;4m', '#010203  u'], ['\x1b[1;2;3;4;7;9m', '  bdisuv'], ['\x1b[1;2m\x1b[22;7m', '  v'], ['\x1b[4:3m\x1b[4:0m', '  '], ['\x1b[31;42m\x1b[m', '  '], ['\x1b[31m\x1b[39m', '  '],
    ['\x1b[38;2;1;2m', '  '], ['\x1b[38;5;999m', '  '], ['\x1b[m\x1b[mm\x1b[0;0;0m', '  '],
  ]) assert.equal(style(output), expected, JSON.stringify(output))
})

test('terminal: erasing takes the present ground', () => {
  const screen = new Screen(4, 1)
  screen.write('ab\x1b[44m\x1b[K')
  assert.deepEqual(screen.lines[0].styles.map((/** @type {any} */ { bg }) => bg), ['', '', '4', '4'])
})

test('terminal: hostile sizes and sequences stay bounded', () => {
  const screen = new Screen(1e9, -5)
  assert.deepEqual([screen.columns, screen.rows], [1000, 1])
  const small = new Screen(80, 24)
  const begin = performance.now()
  small.write(`\x1b[${'9'.repeat(100_000)}b\x1b[${'1;'.repeat(100_000)}m`)
  small.write('\x1b[9999b'.repeat(2_000) + '\x1b[9999S\x1b[9999T\x1b[9999L\x1b[9999M\x1b[9999@\x1b[9999P\x1b[9999X')
  small.write(`x${'\u0301'.repeat(100_000)}`)
  // Far less than it takes to do what is asked for: a second, on a slow machine a few.
  assert.ok(performance.now() - begin < 120_000)
  assert.ok(small.lines.every((/** @type {any} */ { chars }) => chars.length <= 80))
  assert.ok(Math.max(...small.lines.flatMap((/** @type {any} */ { chars }) => chars.map((/** @type {string} */ char) => char.length))) < 20)
})

test('terminal: a new size keeps what fits', () => {
  const screen = new Screen(10, 3)
  screen.write('1234567890\r\nb\r\nc')
  screen.resize(4, 2)
  assert.deepEqual([linesOf(screen), screen.cursor.y], [['b', 'c'], 1])
  screen.resize(6, 4)
  screen.write('\r\nd')
  assert.deepEqual(linesOf(screen), ['b', 'c', 'd'])
})

const { readRecording, withoutPauses, countUpTo } = await module('recording.js')

test('recordings of both versions are read, and damaged lines are counted', () => {
  const two = readRecording('{"version":2,"width":100,"height":30,"timestamp":1700000000}\n[0.5,"o","a"]\n[1.5,"i","x"]\n[… 12 bytes omitted …]\n[2,"r","80x24"]\n[1,"o","late"]\n[9,"o"')
  assert.deepEqual([two.columns, two.rows, two.start, two.duration, two.damaged], [100, 30, 1_700_000_000, 2, 2])
  assert.deepEqual(two.events.map((/** @type {any} */ { time, kind, data }) => [time, kind, data]), [[0.5, 'o', 'a'], [2, 'r', '80x24'], [2, 'o', 'late']])
  const three = readRecording('{"version":3,"term":{"cols":90,"rows":20}}\n# note\n[0.5,"o","a"]\n[1.5,"m","turn"]\n[2,"o","b"]\n')
  assert.deepEqual([three.columns, three.rows, three.start, three.events.at(-1).time], [90, 20, null, 4])
  for (const text of ['', 'no json', '[]', 'null', '{"version":1,"width":80,"stdout":[]}', '{"version":9}']) assert.throws(() => readRecording(text), /isn’t a recording/)
  const odd = readRecording('{"version":2,"width":1e9,"height":"x"}\n[null,"o","a"]\n[1e400,"o","b"]\n{}\n')
  assert.deepEqual([odd.columns, odd.rows, odd.events.length, odd.damaged], [1000, 24, 0, 3])
})

test('pauses are shortened, and times are found', () => {
  const events = [0, 1, 61, 62].map((time) => ({ time, kind: 'o', data: '' }))
  assert.deepEqual(withoutPauses(events, 2), [0, 1, 3, 4])
  assert.deepEqual(withoutPauses(events, Infinity), [0, 1, 61, 62])
  assert.deepEqual([-1, 0, 0.5, 3, 9].map((at) => countUpTo([0, 1, 3, 4], at)), [0, 1, 1, 3, 4])
})

test('a tape shows the same screen however it gets there', async () => {
  const { Tape } = await module('tape.js')
  const events = Array.from({ length: 3000 }, (_, i) => ({ time: i * 10, kind: 'o', data: `\x1b[${i % 24 + 1};1H\x1b[3${i % 8}m${'x'.repeat(i % 79)}\x1b[K line ${i} ${'y'.repeat(300)}` }))
  const recording = { columns: 80, rows: 24, start: 1000, events, duration: 29_990, damaged: 0 }
  const tape = new Tape(recording)
  tape.limitPauses(2)
  assert.equal(tape.duration, 2999 * 2)
  const forward = new Map()
  for (const time of [0, 100, 2000, 4001, 5998]) { tape.seek(time); forward.set(time, linesOf(tape.screen)) }
  for (const time of [4001, 100, 5998, 0, 2000]) { tape.seek(time); assert.deepEqual(linesOf(tape.screen), forward.get(time), `at ${time}`) }
  // The same in many short goes, and back from the middle of an event.
  const long = new Tape({ ...recording, events: [{ time: 1, kind: 'o', data: 'first' }, { time: 2, kind: 'o', data: `\r\n${'z'.repeat(100_000)}\x1b[Hend` }] })
  let goes = 1
  while (!long.seek(9, 0)) goes += 1
  assert.ok(goes > 10, `${goes}`)
  assert.equal(linesOf(long.screen)[0].slice(0, 4), 'endz')
  long.seek(0)
  long.seek(2, 0)
  long.seek(1)
  assert.deepEqual(linesOf(long.screen), ['first'])
  // Times of day: before the beginning, at an event, in a pause, after the end.
  assert.deepEqual([900, 1000, 1010, 1015, 1e9].map((clock) => tape.timeAt(clock)), [0, 0, 2, 4, 5998])
})
