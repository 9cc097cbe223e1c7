/** An episode turn by turn: the conversation beside the terminal after the selected turn, and the recording. */

import { h, replace, setText, useStyles } from '../../core/dom.js'
import { bytes, duration, integer, none, plural, timeOfDay, usd } from '../../core/format.js'
import { failure, loading } from '../../core/states.js'
import { query } from '../../core/router.js'
import { textView } from '../../terminal/draw.js'
import { wholeLog } from './logs.js'
import { readTrajectory } from './trajectory.js'
import { turnBody, turnFigures } from './turn.js'

/** @typedef {import('./trajectory.js').Turn} Turn */
/** @typedef {import('./trajectory.js').Trajectory} Trajectory */
/** @typedef {import('./logs.js').Log} Log */
/** @typedef {import('./logs.js').Place} Place */

/** The list of turns that keys move in: the one that the reader used last. @type {object | null} */
let active = null

/** Distance from the visible part of the list at which turns are drawn, in pixels. */
const MARGIN = 800

await useStyles('views/turns.css')

/**
 * Makes the section of one step of the task: loads the trajectory, then shows it.
 *
 * @param {{log: Log, recording: Log | null, name: string, isFirst: boolean, place: Place, announce: (text: string) => void}} options
 *   `name` is that of the task's step, '' for a task without steps; `isFirst` is true for the first step
 */
export function turnsSection({ log, recording, name, isFirst, place, announce }) {
  const box = h('div', { class: 'view' })
  const section = h('section', { class: 'turns', 'aria-label': name ? `Turn by turn: ${name}` : 'Turn by turn' }, h('h2', null, name ? `Turn by turn: ${name}` : 'Turn by turn'), box)
  const load = async () => {
    const state = loading('Loading the turns')
    replace(box, state)
    try {
      const text = await wholeLog(place, log, (read) => { if (read < log.bytes) setText(state, `Loading the turns: ${bytes(read)} of ${bytes(log.bytes)}…`) })
      if (place.signal.aborted) return
      const trajectory = readTrajectory(text)
      if (trajectory.turns.length === 0) replace(box, h('p', { class: 'dim' }, 'The agent ended before its first turn.'))
      else replace(box, course(trajectory, { recording, isFirst, place, announce, name }).parts)
    } catch (error) {
      if (!place.signal.aborted) replace(box, failure(/** @type {Error} */ (error), load))
    }
  }
  load()
  return section
}

/**
 * Makes the list of turns, at least one, beside the terminal after the selected one.
 *
 * @param {Trajectory} trajectory
 * @param {{recording: Log | null, isFirst: boolean, place: Place, announce: (text: string) => void, name: string, isRunning?: boolean}} options
 *   with `isRunning`, the agent hasn't ended: the last turn is selected at first, and stays selected while turns are added
 * @returns {{parts: import('../../core/dom.js').Child, update: (trajectory: Trajectory) => void}} `update` adds the turns of a longer
 *   trajectory; those that are there already stay
 */
export function course(trajectory, { recording, isFirst, place, announce, name, isRunning = false }) {
  let { turns } = trajectory
  const { signal } = place
  let last = turns.length
  // The address names a turn of one step, by default the first.
  const isNamed = query.get('step') === null ? isFirst : query.get('step') === name
  const first = isRunning ? last : 1
  const me = {}
  if (isNamed) active = me
  let current = Math.min(Math.max(Math.trunc(Number((isNamed && query.get('turn')) || first)) || first, 1), last)
  /** @type {((number: number) => boolean) | null} */
  let toRecorded = null

  const list = h('ol', { class: 'turn-list', 'aria-label': 'Turns', tabindex: '-1' })
  const screen = h('div', { class: 'turn-screen' })
  const input = h('input', { type: 'number', min: '1', max: String(last), 'aria-label': 'Turn', class: 'turn-number' })
  const count = h('span', null, integer(last))
  const previous = h('button', { type: 'button', class: 'button', 'aria-keyshortcuts': 'p' }, h('span', null, 'Previous', h('span', { class: 'word' }, ' turn')), h('kbd', { 'aria-hidden': 'true' }, 'p'))
  const next = h('button', { type: 'button', class: 'button', 'aria-keyshortcuts': 'n' }, h('span', null, 'Next', h('span', { class: 'word' }, ' turn')), h('kbd', { 'aria-hidden': 'true' }, 'n'))
  const nav = h('div', { class: 'turn-nav', role: 'group', 'aria-label': 'Turns' }, previous, h('span', { class: 'turn-at' }, input, ' of ', count), next)
  const totals = h('div', null, totalsOf(trajectory))

  /** @type {WeakSet<Element>} */
  const drawn = new WeakSet()
  const draw = (/** @type {HTMLElement} */ element) => {
    if (drawn.has(element)) return
    drawn.add(element)
    element.classList.add('drawn')
    // What follows a turn that runs is part of the next one.
    element.append(turnBody(turns[Number(element.dataset.turn) - 1], !isRunning && Number(element.dataset.turn) === last ? trajectory.after : []))
  }
  const itemOf = (/** @type {Turn} */ turn) => h('li', { class: 'turn', dataset: { turn: turn.number } },
    h('div', { class: 'turn-head' }, h('a', { class: 'turn-link', href: hrefOf(turn.number, name), tabindex: '-1' }, `Turn ${turn.number}`), h('span', { class: 'dim' }, turn.clock === null ? '' : timeOfDay(new Date(turn.clock * 1000).toISOString()))),
    turnFigures(turn))
  const items = turns.map(itemOf)
  list.append(...items)

  const select = (/** @type {number} */ number, { scroll = true, focus = false, say = true } = {}) => {
    const to = Math.min(Math.max(Math.trunc(number) || 1, 1), last)
    items[current - 1].removeAttribute('aria-current')
    items[current - 1].querySelector('a')?.setAttribute('tabindex', '-1')
    current = to
    const item = items[to - 1]
    item.setAttribute('aria-current', 'true')
    const link = /** @type {HTMLAnchorElement} */ (item.querySelector('a'))
    link.tabIndex = 0
    // Those around it first, so that the place of the turn is known.
    for (const each of items.slice(Math.max(0, to - 3), to + 3)) draw(each)
    input.value = String(to)
    // Not disabled, so that the keyboard keeps its place.
    previous.setAttribute('aria-disabled', String(to === 1))
    next.setAttribute('aria-disabled', String(to === last))
    showScreen(screen, turns[to - 1], last, isRunning)
    if (scroll && list.scrollHeight > list.clientHeight) list.scrollTop = item.offsetTop - 1
    if (focus) link.focus({ preventScroll: true })
    if (!say) return
    active = me
    query.set({ turn: to, step: name || null })
    announce(`Turn ${to} of ${last}.`)
    toRecorded?.(to)
  }

  list.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target)
    const item = /** @type {HTMLElement | null} */ (target.closest('.turn'))
    const link = target.closest('.turn-link')
    if (!item || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    if (link) event.preventDefault()
    else if (target.closest('a, button, summary, [tabindex="0"]') || String(getSelection())) return
    select(Number(item.dataset.turn), { scroll: false, focus: Boolean(link) })
  })
  list.addEventListener('keydown', (event) => {
    if (!(event.target instanceof HTMLAnchorElement) || !event.target.classList.contains('turn-link') || event.ctrlKey || event.metaKey || event.altKey) return
    const to = { ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + 10, PageUp: current - 10, Home: 1, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    select(to, { focus: true })
  })
  previous.addEventListener('click', () => select(current - 1))
  next.addEventListener('click', () => select(current + 1))
  input.addEventListener('change', () => select(Number(input.value)))
  document.addEventListener('keydown', (event) => {
    if (active !== me || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || (event.key !== 'n' && event.key !== 'p')) return
    if (/** @type {HTMLElement} */ (event.target).closest('input, textarea, select, dialog, bench-menu, [contenteditable]')) return
    event.preventDefault()
    select(current + (event.key === 'n' ? 1 : -1))
  }, { signal })

  // Bodies are drawn when they come near the visible part of the list.
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) { draw(/** @type {HTMLElement} */ (target)); observer.unobserve(target) }
  }, { root: list, rootMargin: `${MARGIN}px 0px` })
  for (const item of items) observer.observe(item)
  const update = (/** @type {Trajectory} */ longer) => {
    const seen = turns[current - 1].observation
    const isAtEnd = current === last
    const added = longer.turns.slice(last).map(itemOf)
    turns = longer.turns
    last = turns.length
    items.push(...added)
    list.append(...added)
    for (const item of added) observer.observe(item)
    input.max = String(last)
    setText(count, integer(last))
    replace(totals, totalsOf(longer))
    next.setAttribute('aria-disabled', String(current === last))
    if (isAtEnd && added.length > 0) select(last, { say: false })
    else if (turns[current - 1].observation !== seen) showScreen(screen, turns[current - 1], last, isRunning)
  }
  signal.addEventListener('abort', () => observer.disconnect(), { once: true })
  const wasAsked = isRunning || (isNamed && query.get('turn') !== null)
  requestAnimationFrame(() => { if (!signal.aborted && list.isConnected) select(current, { say: false, scroll: wasAsked }) })

  const parts = [
    totals, nav,
    h('div', { class: 'turn-columns' }, h('div', { class: 'turn-conversation' }, list), screen),
    recording && recordingBox(recording, { turns, place, current: () => current, select: (number) => select(number), ready: (to) => { toRecorded = to } }),
  ]
  return { parts, update }
}

/** @param {number} turn @param {string} step */
function hrefOf(turn, step) {
  const search = new URLSearchParams(location.search)
  search.set('turn', String(turn))
  if (step) search.set('step', step)
  return `${location.pathname}?${search}`
}

/** @param {Trajectory} trajectory */
function totalsOf({ turns, totals }) {
  const { input, cached, output, cost, ms } = totals
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Turns', integer(turns.length)], ['Tokens', input === null ? none : `${integer(input)} → ${integer(output)}`, 'in → out'],
    ['Cached tokens', input ? integer(cached ?? 0) : none, input ? `${Math.round((cached ?? 0) / input * 100)}% of the input` : ''],
    ['Cost', cost === null ? none : usd(cost), cost === null ? 'the provider names no price' : ''], ['Time of the model', ms ? duration(ms / 1000) : none],
  ]
  return h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small)))))
}

/**
 * @param {HTMLElement} place
 * @param {Turn} turn
 * @param {number} last
 * @param {boolean} isRunning
 */
function showScreen(place, turn, last, isRunning) {
  const label = `Terminal after turn ${turn.number}`
  replace(place, h('h3', null, label),
    turn.observation === null ? h('p', { class: 'dim' }, turn.number === last && isRunning ? 'What the agent did is still running.' : turn.number === last ? 'The episode ended with this turn: the agent saw nothing more.' : 'The agent saw nothing after this turn.')
      : turn.observation === '' ? h('p', { class: 'dim' }, 'Empty.') : textView(turn.observation, label))
}

/**
 * Makes the place of the recording, which is loaded when the reader asks for it.
 *
 * @param {Log} log
 * @param {{turns: Turn[], place: Place, current: () => number, select: (number: number) => void, ready: (to: (number: number) => boolean) => void}} options
 */
function recordingBox(log, { turns, place, current, select, ready }) {
  const box = h('div', { class: 'recording-place' })
  const button = h('button', { type: 'button', class: 'button' }, `Load the recording (${bytes(log.bytes)})`)
  const section = h('section', { class: 'recording', 'aria-label': 'Recording' }, h('h3', null, 'Recording'), box)
  const load = async () => {
    button.disabled = true
    const state = loading('Loading the recording')
    replace(box, state)
    try {
      const [{ recordingPlayer }, { readRecording }, text] = await Promise.all([
        import('../../terminal/player.js'), import('../../terminal/recording.js'),
        wholeLog(place, log, (read) => { if (read < log.bytes) setText(state, `Loading the recording: ${bytes(read)} of ${bytes(log.bytes)}…`) }),
      ])
      if (place.signal.aborted) return
      const recording = readRecording(text)
      const started = turns.flatMap(({ number, clock }) => (clock === null ? [] : [{ number, clock }]))
      const player = recordingPlayer(recording, { turns: started, signal: place.signal, onTurn: select })
      replace(box, recording.events.length === 0 ? h('p', { class: 'dim' }, `The recording is empty${recording.damaged ? `; ${plural(recording.damaged, 'line')} couldn’t be read` : ''}.`) : player.element)
      ready(player.toTurn)
      if (current() > 1) player.toTurn(current())
      player.focus()
    } catch (error) {
      if (!place.signal.aborted) replace(box, failure(/** @type {Error} */ (error), load))
    }
  }
  button.addEventListener('click', load)
  replace(box, h('p', { class: 'actions' }, button))
  return section
}
