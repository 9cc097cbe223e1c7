/** Outcomes of samples and statuses of runs: words, symbols and colors. Color is never the only sign. */

import { h } from './dom.js'

/**
 * @typedef {object} Outcome
 * @property {string} label
 * @property {string} symbol one character
 * @property {string} color name of a color token
 * @property {string} meaning one sentence
 * @property {boolean} graded true if samples with it count in the score
 */

/** @type {Record<string, Outcome>} */
export const OUTCOMES = {
  correct: { label: 'Correct', symbol: '✓', color: '--correct', graded: true, meaning: 'The answer is right.' },
  partial: { label: 'Partial', symbol: '◐', color: '--partial', graded: true, meaning: 'The answer got a share of the points.' },
  incorrect: { label: 'Incorrect', symbol: '✗', color: '--incorrect', graded: true, meaning: 'The answer is wrong.' },
  'no-answer': { label: 'No answer', symbol: '∅', color: '--no-answer', graded: true, meaning: 'The model returned no text; it counts 0.' },
  unparsed: { label: 'Unparsed', symbol: '?', color: '--unparsed', graded: true, meaning: 'The parser found no answer in the model\'s text; it counts 0.' },
  truncated: { label: 'Truncated', symbol: '✂', color: '--truncated', graded: true, meaning: 'The token limit cut the answer off before it gave a result; it counts 0.' },
  refused: { label: 'Refused', symbol: '⊘', color: '--refused', graded: true, meaning: 'The model or its provider refused to answer; it counts 0.' },
  'too-long': { label: 'Too long', symbol: '⇥', color: '--ungraded', graded: false, meaning: 'The prompt doesn\'t fit the model\'s context, or the answer took too long. It lowers the coverage, not the score.' },
  unsupported: { label: 'Unsupported', symbol: '–', color: '--ungraded', graded: false, meaning: 'The model or this machine can\'t do the item. It lowers the coverage, not the score.' },
  'infrastructure-error': { label: 'Infrastructure error', symbol: '!', color: '--error', graded: false, meaning: 'The model isn\'t to blame: a provider, judge or sandbox failed. It lowers the coverage, not the score.' },
}

/** Outcome of a sample that isn't over. @type {Outcome} */
export const OPEN = { label: 'Not ended', symbol: '·', color: '--open', graded: false, meaning: 'The sample hasn\'t ended.' }

/** Sums of outcomes while a benchmark runs and its server counts only these. @type {Record<string, Outcome>} */
const SUMS = {
  'not-correct': { label: 'Other grades', symbol: '✗', color: '--incorrect', graded: true, meaning: 'Graded, and not correct. The single outcomes are counted when the benchmark is over.' },
  ungraded: { label: 'Not graded', symbol: '!', color: '--error', graded: false, meaning: 'Ended without a grade. They lower the coverage, not the score.' },
}

/** Names of all outcomes, in the order of charts and filters. */
export const OUTCOME_NAMES = Object.keys(OUTCOMES)

/**
 * Returns how to show an outcome; unknown ones of later servers are shown by their name.
 *
 * @param {string | null | undefined} name
 * @returns {Outcome}
 */
export function outcomeOf(name) {
  if (!name) return OPEN
  return OUTCOMES[name] ?? SUMS[name] ?? { label: name, symbol: '?', color: '--ungraded', graded: false, meaning: '' }
}

/**
 * Replaces the names of counted outcomes in a sentence of the API by their words: `4 infrastructure-error` becomes
 * `4 infrastructure errors`.
 *
 * @param {string} text
 */
export function outcomesInWords(text) {
  return text.replace(/([\d,]+) ([a-z]+(?:-[a-z]+)*)/g, (all, count, name) => {
    if (!Object.hasOwn(OUTCOMES, name)) return all
    return `${count} ${OUTCOMES[name].label.toLowerCase()}${name === 'infrastructure-error' && count !== '1' ? 's' : ''}`
  })
}

/**
 * Makes the mark of an outcome: symbol and word.
 *
 * @param {string | null | undefined} name
 * @param {{brief?: boolean}} [options] `brief` shows the symbol only; the word is there for screen readers
 */
export function outcomeMark(name, { brief = false } = {}) {
  const { label, symbol, color, meaning } = outcomeOf(name)
  return h('span', { class: 'outcome', title: `${label}: ${meaning}`, style: { '--color': `var(${color})` } },
    h('span', { class: 'symbol', 'aria-hidden': 'true' }, symbol),
    h('span', { class: brief ? 'visually-hidden' : 'label' }, label))
}

/** @type {Record<string, {label: string, kind: string}>} */
const STATUSES = {
  queued: { label: 'Queued', kind: 'idle' },
  pending: { label: 'Pending', kind: 'idle' },
  running: { label: 'Running', kind: 'active' },
  waiting: { label: 'Waiting', kind: 'warn' },
  interrupted: { label: 'Interrupted', kind: 'warn' },
  succeeded: { label: 'Succeeded', kind: 'good' },
  failed: { label: 'Failed', kind: 'bad' },
  canceled: { label: 'Canceled', kind: 'warn' },
  skipped: { label: 'Skipped', kind: 'idle' },
  needs_setup: { label: 'Needs setup', kind: 'warn' },
}

/**
 * Returns the status of a run as readers see it: an interrupted or waiting run says so.
 *
 * @param {{status: string, interrupted?: boolean, waiting?: object | null}} run
 */
export function statusOf(run) {
  const isOpen = run.status === 'queued' || run.status === 'running'
  if (isOpen && run.interrupted) return 'interrupted'
  if (isOpen && run.waiting) return 'waiting'
  return run.status
}

/**
 * Makes the badge of a status.
 *
 * @param {string} status
 */
export function statusBadge(status) {
  const { label, kind } = STATUSES[status] ?? { label: status, kind: 'idle' }
  return h('span', { class: `badge ${kind}` }, label)
}
