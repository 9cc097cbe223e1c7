/** Answers of several runs to one item, side by side. */

import { h, replace } from '../../core/dom.js'
import { link } from '../../core/router.js'
import { failure, loading } from '../../core/states.js'
import { messageParts } from '../../core/messages.js'
import { outcomeMark } from '../../core/outcomes.js'
import { renderAnswer, renderPlain } from '../../text/answer.js'
import { itemName } from './disagreements.js'

/** Characters of an answer that are shown at first. */
const FIRST_CHARS = 4_000

/** Characters of an expected answer that are shown. */
const EXPECTED_CHARS_MAX = 400

/** Number of the latest item, so that an earlier one that loads longer isn't shown. */
let latest = 0

/**
 * Loads and shows an item of several runs.
 *
 * @param {object} options
 * @param {HTMLElement} options.place
 * @param {import('./statistics.js').PairedItem} options.item
 * @param {import('./load.js').Compared[]} options.shown
 * @param {string} options.name Benchmark.
 * @param {AbortSignal} options.signal
 * @param {boolean} options.isByReader True to move the focus to the item.
 */
export async function sideBySide({ place, item, shown, name, signal, isByReader }) {
  latest += 1
  const mine = latest
  const title = h('h3', { tabindex: '-1' }, `Item ${itemName(item)}`)
  replace(place, title, loading('Loading the answers'))
  try {
    const samples = await Promise.all(shown.map(({ source }, at) => {
      const row = item.sides[at]?.rows[0]
      return row ? source.item(name, row.item_id, row.sample, signal) : null
    }))
    if (signal.aborted || mine !== latest) return
    const first = samples.find((sample) => sample !== null)
    const isSame = samples.every((sample) => sample === null || sample.prompt === first?.prompt)
    replace(place, title,
      !isSame && h('p', { class: 'note warn' }, 'The runs didn’t get the same prompt for this item.'),
      h('p', null, h('span', { class: 'dim' }, 'Expected: '), h('b', null, shorten(first?.expected ?? '–')), item.group && h('span', { class: 'dim' }, ` · ${item.group}`)),
      first?.prompt && h('details', { class: 'compare-prompt' }, h('summary', null, 'Prompt'), renderPlain(first.prompt)),
      h('div', { class: 'answers', style: { '--count': shown.length } }, shown.map((compared, at) => answer(compared, samples[at], item.sides[at], name))))
    if (isByReader) {
      title.focus({ preventScroll: true })
      place.scrollIntoView({ block: 'start' })
    }
  } catch (problem) {
    if (!signal.aborted && mine === latest) replace(place, title, failure(/** @type {Error} */ (problem)))
  }
}

/** Cuts a long expected answer; the item's view has all of it. @param {string} text */
function shorten(text) {
  return text.length > EXPECTED_CHARS_MAX ? `${text.slice(0, EXPECTED_CHARS_MAX)}…` : text
}

/**
 * @param {import('./load.js').Compared} compared
 * @param {import('../../core/source.js').Sample | null} sample
 * @param {import('./statistics.js').Side | null} side
 * @param {string} name
 */
function answer({ letter, label, source }, sample, side, name) {
  const head = h('h4', null, `${letter} `, h('span', { class: 'hint' }, label))
  if (!sample || !side) return h('article', null, head, h('p', { class: 'dim' }, 'The item isn’t in this run.'))
  const count = side.rows.length
  return h('article', null, head,
    h('p', { class: 'actions' }, outcomeMark(sample.outcome), sample.extracted && h('span', null, 'Answer ', h('b', null, sample.extracted)), link(source.itemPath(name, sample.item_id, sample.sample), `Open in ${letter}`)),
    count > 1 && h('p', { class: 'hint' }, `Sample 1 of ${count}; ${side.correct} of ${side.graded} graded samples are right.`),
    sample.hidden ? h('p', { class: 'dim' }, 'The dataset is gated: only the owner of the run sees texts.')
      : sample.response ? renderAnswer(sample.response, { firstChars: FIRST_CHARS }) : withoutAnswer(sample.error ?? 'There is no answer.'))
}

/** @param {string} why */
function withoutAnswer(why) {
  const [text, response] = messageParts(why)
  return [h('p', { class: 'dim' }, text), response]
}
