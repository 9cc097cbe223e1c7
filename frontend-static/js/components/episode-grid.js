/**
 * `<bench-episodes>`: episodes as a grid of cells, one row of cells for each task. A cell shows its outcome by symbol, shape and
 * color.
 *
 * Keyboard: one cell is in the tab order; arrow keys, Home and End move, Enter opens. Cells change in place, so that focus and
 * scroll position stay.
 */

import { h, setText, useStyles } from '../core/dom.js'
import { plural } from '../core/format.js'
import { OUTCOME_NAMES, outcomeOf } from '../core/outcomes.js'
import { sampleScore } from '../core/run-facts.js'

await useStyles('components/episodes.css')

/**
 * @typedef {object} Episode
 * @property {number} sample index among the episodes of its task, from 0
 * @property {string | null} outcome null while it isn't over
 * @property {number | null} score
 * @property {boolean} [running] true if it isn't over and has a sandbox
 */
/** @typedef {{key: string, name: string, href: (sample: number) => string, episodes: Episode[]}} EpisodeRow */

export class BenchEpisodes extends HTMLElement {
  /** @type {Map<string, {row: HTMLElement, count: HTMLElement, cells: HTMLElement, links: HTMLAnchorElement[]}>} */
  #rows = new Map()
  /** @type {HTMLAnchorElement | null} */
  #current = null

  connectedCallback() {
    if (this.getAttribute('role')) return
    this.setAttribute('role', 'grid')
    this.addEventListener('keydown', (event) => this.#key(event))
    this.addEventListener('focusin', (event) => { if (event.target instanceof HTMLAnchorElement) this.#mark(event.target) })
  }

  /**
   * Shows these episodes.
   *
   * @param {EpisodeRow[]} rows
   * @param {string} label name of the grid, for screen readers
   */
  show(rows, label) {
    this.setAttribute('aria-label', label)
    this.classList.toggle('one', rows.length === 1)
    const keys = new Set(rows.map(({ key }) => key))
    for (const [key, { row }] of this.#rows) if (!keys.has(key)) { row.remove(); this.#rows.delete(key) }
    rows.forEach((row, i) => {
      const entry = this.#rows.get(row.key) ?? this.#newRow(row)
      if (this.children[i] !== entry.row) this.insertBefore(entry.row, this.children[i] ?? null)
      const ended = row.episodes.filter(({ outcome }) => outcome !== null)
      const passed = ended.filter(({ outcome }) => outcome === 'correct').length
      setText(entry.count, ended.length > 0 ? `${passed} of ${ended.length}` : '–')
      while (entry.links.length > row.episodes.length) entry.links.pop()?.parentElement?.remove()
      row.episodes.forEach((episode, k) => this.#draw(entry, k, row, episode))
    })
    if (!this.#current?.isConnected) this.#mark(this.querySelector('a'))
  }

  /** @param {EpisodeRow} row */
  #newRow({ key, name }) {
    const count = h('span', { class: 'count' })
    const cells = h('div', { class: 'cells', role: 'presentation' })
    const row = h('div', { class: 'task', role: 'row' },
      h('div', { role: 'rowheader', class: 'name', title: name }, h('span', { class: 'text' }, name), ' ', count), cells)
    const entry = { row, count, cells, links: [] }
    this.#rows.set(key, entry)
    return entry
  }

  /**
   * @param {{cells: HTMLElement, links: HTMLAnchorElement[]}} entry
   * @param {number} at
   * @param {EpisodeRow} row
   * @param {Episode} episode
   */
  #draw(entry, at, row, episode) {
    let link = entry.links[at]
    if (!link) {
      link = h('a', { tabindex: '-1' })
      entry.links.push(link)
      entry.cells.append(h('div', { role: 'gridcell' }, link))
    }
    const state = `${stateOf(episode)} ${episode.score} ${episode.sample}`
    if (link.dataset.state === state) return
    link.dataset.state = state
    const { symbol, color } = lookOf(stateOf(episode))
    const label = `${row.name}, episode ${episode.sample + 1}: ${episodeInWords(episode)}`
    link.href = row.href(episode.sample)
    link.className = `episode ${shapeOf(stateOf(episode))}`
    link.title = label
    link.setAttribute('aria-label', label)
    link.style.setProperty('--color', `var(${color})`)
    setText(link, symbol)
  }

  /** @param {HTMLAnchorElement | null} link */
  #mark(link) {
    if (this.#current && this.#current !== link) this.#current.tabIndex = -1
    this.#current = link
    if (link) link.tabIndex = 0
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const link = event.target
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.altKey) return
    const all = [...this.#rows.values()].toSorted((a, b) => (a.row.compareDocumentPosition(b.row) & 4 ? -1 : 1)).flatMap(({ links }) => links)
    const at = all.indexOf(link)
    const to = {
      ArrowRight: all[at + 1], ArrowLeft: all[at - 1], Home: all[0], End: all.at(-1),
      ArrowDown: below(all, link, at, 1), ArrowUp: below(all, link, at, -1),
    }[event.key]
    if (!to) return
    event.preventDefault()
    to.focus()
  }
}
customElements.define('bench-episodes', BenchEpisodes)

/**
 * Finds the nearest cell of the next line, or of the previous one.
 *
 * @param {HTMLAnchorElement[]} all
 * @param {HTMLAnchorElement} link
 * @param {number} at
 * @param {1 | -1} step
 */
function below(all, link, at, step) {
  const { top, left } = link.getBoundingClientRect()
  /** @type {HTMLAnchorElement | undefined} */
  let best
  let line = 0
  let distance = Infinity
  for (let i = at + step; i >= 0 && i < all.length; i += step) {
    const box = all[i].getBoundingClientRect()
    if (Math.abs(box.top - top) < 4) continue
    if (best && Math.abs(box.top - line) > 4) break
    line = box.top
    if (Math.abs(box.left - left) < distance) { best = all[i]; distance = Math.abs(box.left - left) }
  }
  return best
}

/** State of an episode that has a sandbox. */
const RUNNING = 'running'

/**
 * Returns the state of an episode: its outcome, that it is running, or null while it waits.
 *
 * @param {Episode} episode
 */
export function stateOf({ outcome, running }) {
  return outcome ?? (running ? RUNNING : null)
}

/** @param {string | null} state */
function lookOf(state) {
  return state === RUNNING ? { label: 'Running', symbol: '▸', color: '--accent', graded: false } : outcomeOf(state)
}

/** @param {string | null} outcome a state of an episode */
function shapeOf(outcome) {
  if (outcome === null) return 'open'
  if (outcome === RUNNING) return 'running'
  if (outcome === 'correct') return 'passed'
  return outcomeOf(outcome).graded ? 'graded' : 'ungraded'
}

/**
 * Describes an episode: `Partial, reward 0.50`.
 *
 * @param {Episode} episode
 */
export function episodeInWords({ outcome, score, running }) {
  if (outcome === 'correct') return 'Passed'
  const { label } = lookOf(stateOf({ sample: 0, outcome, score, running }))
  return outcome === 'partial' ? `${label} reward ${sampleScore(score)}` : label
}

/**
 * Describes all episodes in one line.
 *
 * @param {EpisodeRow[]} rows
 */
export function gridInWords(rows) {
  const episodes = rows.flatMap((row) => row.episodes)
  const ended = episodes.filter(({ outcome }) => outcome !== null)
  const count = (/** @type {(outcome: string) => boolean} */ is) => ended.filter(({ outcome }) => is(/** @type {string} */ (outcome))).length
  const passed = count((outcome) => outcome === 'correct')
  const partial = count((outcome) => outcome === 'partial')
  const ungraded = count((outcome) => !outcomeOf(outcome).graded)
  const parts = [`${passed} passed`, `${ended.length - passed - partial - ungraded} failed`]
  if (partial > 0) parts.splice(1, 0, `${partial} with a partial reward`)
  if (ungraded > 0) parts.push(`${ungraded} not graded`)
  const all = plural(episodes.length, 'episode')
  if (ended.length === episodes.length) return `${all}: ${parts.join(', ')}.`
  const running = episodes.filter((episode) => stateOf(episode) === RUNNING).length
  const now = running > 0 ? ` ${running} ${running === 1 ? 'is' : 'are'} running.` : ''
  return `${ended.length} of ${all} ${ended.length === 1 ? 'is' : 'are'} over${ended.length > 0 ? `: ${parts.join(', ')}` : ''}.${now}`
}

/**
 * Makes the legend of the cells that a grid has. Screen readers hear the outcome of each cell instead.
 *
 * @param {EpisodeRow[]} rows
 */
export function gridLegend(rows) {
  const shown = new Set(rows.flatMap((row) => row.episodes).map(stateOf))
  const known = [...OUTCOME_NAMES, RUNNING, null].filter((outcome) => shown.has(outcome))
  const other = [...shown].filter((outcome) => !known.includes(outcome))
  return h('ul', { class: 'episode-legend', 'aria-hidden': 'true' }, [...known, ...other].map((outcome) => {
    const { symbol, color, label } = lookOf(outcome)
    return h('li', null, h('span', { class: `episode ${shapeOf(outcome)}`, style: { '--color': `var(${color})` } }, symbol), LEGEND[outcome ?? ''] ?? (outcome === null && shown.has(RUNNING) ? 'waiting' : label.toLowerCase()))
  }))
}

/** Words of the legend that differ from those of other samples. @type {Record<string, string>} */
const LEGEND = { correct: 'passed', partial: 'partial reward, doesn’t pass', incorrect: 'failed', 'infrastructure-error': 'infrastructure error, not graded' }

/** Makes a grid of episodes. */
export function episodeGrid() {
  return /** @type {BenchEpisodes} */ (document.createElement('bench-episodes'))
}
