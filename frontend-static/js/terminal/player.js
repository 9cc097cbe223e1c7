/** Plays a recording of a terminal: play and pause, position, speed, longest pause, and jumps to an agent's turns. */

import { h, setText } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { screenView } from './draw.js'
import { Tape } from './tape.js'

/** Speeds, and longest pauses in seconds; 0 keeps all. */
const SPEEDS = [0.5, 1, 2, 4, 8, 16]
const PAUSES = [1, 2, 5, 0]
/** Seconds that arrow keys move, and time between two pictures with reduced motion. */
const STEP = 5
const CALM = 1
/** Longest time between two pictures that counts as played, in seconds: a hidden window doesn't run ahead. */
const FRAME_MAX = 0.5

/** Milliseconds of work between two pictures. */
const WORK = 40

/** @typedef {{number: number, clock: number}} PlayedTurn number of a turn, and time of day in seconds at which its commands begin */

/**
 * Makes a player. It is paused at the beginning.
 *
 * @param {import('./recording.js').Recording} recording
 * @param {{turns?: PlayedTurn[], signal: AbortSignal, onTurn?: (number: number) => void}} options `onTurn` is called when the reader
 *   goes to a turn in the player
 */
export function recordingPlayer(recording, { turns = [], signal, onTurn }) {
  const tape = new Tape(recording)
  const isCalm = matchMedia('(prefers-reduced-motion: reduce)')
  const view = screenView('Terminal of the recording')
  const play = h('button', { type: 'button', class: 'button primary play' }, 'Play')
  const position = h('input', { type: 'range', min: '0', step: '0.1', 'aria-label': 'Position', class: 'position' })
  const clock = h('span', { class: 'clock' })
  const speed = h('select', { 'aria-label': 'Speed' }, SPEEDS.map((value) => h('option', { value, selected: value === 1 }, `${value}×`)))
  const pauses = h('select', { 'aria-label': 'Longest pause' }, PAUSES.map((value) => h('option', { value, selected: value === 2 }, value ? `pauses up to ${value} s` : 'all pauses')))
  const jump = h('select', { 'aria-label': 'Jump to turn' }, h('option', { value: '' }, 'Turn…'), turns.map(({ number }) => h('option', { value: number }, `Turn ${number}`)))
  /** @type {{number: number, time: number}[]} */
  let turnStarts = []
  let time = 0
  let isPlaying = false
  let frame = 0
  let before = 0
  let waits = false

  const show = () => {
    // A jump over much output goes on with the next picture, so that the page stays usable.
    if (!tape.seek(time, performance.now() + WORK) && !waits) {
      waits = true
      requestAnimationFrame(() => { waits = false; if (!signal.aborted) show() })
    }
    view.show(tape.screen)
    position.value = String(time)
    position.setAttribute('aria-valuetext', `${stamp(time)} of ${stamp(tape.duration)}`)
    setText(clock, `${stamp(time)} / ${stamp(tape.duration)}`)
    // The last turn that has begun.
    const turn = turnStarts.findLast((start) => start.time <= time + 0.05)
    if (document.activeElement !== jump) jump.value = turn ? String(turn.number) : ''
  }
  const measure = () => {
    tape.limitPauses(Number(pauses.value) || Infinity)
    turnStarts = turns.flatMap(({ number, clock: at }) => { const start = tape.timeAt(at); return start === null ? [] : [{ number, time: start }] })
    position.max = String(tape.duration)
  }
  const step = (/** @type {number} */ now) => {
    if (!isPlaying || signal.aborted || !view.element.isConnected) { isPlaying = false; return }
    const passed = (now - before) / 1000
    if (!isCalm.matches || passed >= CALM) {
      before = now
      time = Math.min(time + Math.min(passed, isCalm.matches ? CALM * 2 : FRAME_MAX) * Number(speed.value), tape.duration)
      show()
    }
    if (time >= tape.duration) set(false)
    else frame = requestAnimationFrame(step)
  }
  const set = (/** @type {boolean} */ isOn) => {
    isPlaying = isOn
    setText(play, isOn ? 'Pause' : 'Play')
    cancelAnimationFrame(frame)
    if (!isOn) return
    if (time >= tape.duration) time = 0
    before = performance.now()
    frame = requestAnimationFrame(step)
  }
  const seek = (/** @type {number} */ to) => { time = Math.min(Math.max(to, 0), tape.duration); show() }
  const toTurn = (/** @type {number} */ number) => {
    const start = turnStarts.find((each) => each.number === number)
    if (start) seek(start.time)
    return Boolean(start)
  }

  play.addEventListener('click', () => set(!isPlaying))
  position.addEventListener('input', () => seek(Number(position.value)))
  pauses.addEventListener('change', () => {
    // The same event stays on the screen.
    const share = tape.times.findLastIndex((at) => at <= time + 1e-6)
    measure()
    seek(share < 0 ? 0 : tape.times[share])
  })
  jump.addEventListener('change', () => {
    const number = Number(jump.value)
    if (number && toTurn(number)) onTurn?.(number)
  })
  view.element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === ' ') set(!isPlaying)
    else if (event.key === 'ArrowLeft') seek(time - STEP)
    else if (event.key === 'ArrowRight') seek(time + STEP)
    else if (event.key === 'Home') seek(0)
    else if (event.key === 'End') seek(tape.duration)
    else return
    event.preventDefault()
  })
  signal.addEventListener('abort', () => set(false), { once: true })

  measure()
  show()
  const element = h('div', { class: 'player' }, view.element,
    h('div', { class: 'player-controls', role: 'group', 'aria-label': 'Playback' }, play, position, clock, speed, pauses, turnStarts.length > 0 && jump),
    h('p', { class: 'hint' }, `${recording.columns} × ${recording.rows} characters, ${plural(recording.events.length, 'event')}. `, h('span', { class: 'keys' }, 'On the terminal, the space bar plays and pauses, and arrow keys move by 5 seconds.'),
      recording.damaged > 0 && ` ${integer(recording.damaged)} ${recording.damaged === 1 ? 'line' : 'lines'} of the recording couldn’t be read, so parts may be missing.`))
  return { element, toTurn, focus: () => play.focus({ preventScroll: true }) }
}

/** Formats a time in a recording: `1:05`. @param {number} seconds */
function stamp(seconds) {
  const s = Math.floor(seconds)
  const rest = `${String(Math.floor(s / 60) % 60).padStart(s >= 3600 ? 2 : 1, '0')}:${String(s % 60).padStart(2, '0')}`
  return s >= 3600 ? `${Math.floor(s / 3600)}:${rest}` : rest
}
