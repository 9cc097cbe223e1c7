/** Whether the scores measure the same thing, and what differs if they don't. */

import { h } from '../../core/dom.js'
import { integer, plural } from '../../core/format.js'
import { hasConversations } from '../../core/agents.js'
import { promptOfRun } from '../../core/run-facts.js'
import { itemName } from './disagreements.js'
import { benchmarkOf, pairOf } from './load.js'
import { isGraded } from './statistics.js'

/** @typedef {import('./load.js').Compared} Compared */
/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/** Items that the note about questions names at most. */
const NAMED_MAX = 20

/** Sentence of the API about demo data, which isn't about comparability. */
const isDemo = (/** @type {string} */ text) => text.startsWith('Demo data')

/** Settings that decide whether scores are comparable: name, and text of one run's value. @type {[string, (benchmark: RunBenchmark, run: Run) => string][]} */
const SETTINGS = [
  ['Dataset', (b) => (b.dataset ? `${b.dataset.id} (${b.dataset.source})` : 'not planned')],
  ['Revision', (b) => String(b.dataset?.revision ?? '–').slice(0, 12)],
  ['Items', (b) => `${integer(b.sampled_items)} of ${integer(b.total_items)}`],
  ['Samples per item', (b) => integer(b.samples_per_item)],
  ['Protocol', (b) => b.protocol_name ?? b.protocol ?? '–'],
  ['Version of the protocol', (b) => b.protocol ?? '–'],
  ['Prompt', promptText],
  ['Options', (b) => JSON.stringify(b.options ?? {})],
  ['Generation settings', (b) => generationText(b.generation)],
  ['User model', (b, run) => (hasConversations(b.benchmark_name) ? /** @type {{user_model?: {model: string} | null}} */ (run).user_model?.model : null) ?? 'none'],
  ['Judge', (b) => (b.judge ? [b.judge.model, b.judge.endpoint_host, b.judge.prompt_digest?.slice(0, 12)].filter(Boolean).join(', ') : 'none')],
]

/**
 * Makes the note about comparability.
 *
 * @param {Compared[]} all
 * @param {string} name Benchmark.
 */
export function comparability(all, name) {
  const pairs = all.flatMap((compared) => {
    const pair = pairOf(compared, name)
    return pair ? [{ compared, pair }] : []
  })
  const reasons = pairs.flatMap(({ compared, pair }) => pair.warnings.filter((/** @type {string} */ text) => !isDemo(text))
    .map((/** @type {string} */ text) => ({ letter: compared.letter, text })))
  const hasDemo = pairs.some(({ pair }) => pair.warnings.some(isDemo))
  const isSame = pairs.every(({ pair }) => pair.same_dataset && pair.same_protocol && pair.same_judge)
  const present = all.flatMap((compared) => {
    const b = benchmarkOf(compared, name)
    return b ? [{ letter: compared.letter, b, run: compared.run }] : []
  })
  const different = SETTINGS.filter(([, text]) => new Set(present.map(({ b, run }) => text(b, run))).size > 1)
  const demo = hasDemo && h('p', { class: 'note warn' }, h('b', null, 'DEMO. '), 'The items are bundled with the program. These scores say nothing about the real benchmark, and neither do their differences.')
  if (isSame && reasons.length === 0) {
    const isJudged = present.some(({ b }) => b.judge)
    const what = `Same dataset, protocol, prompt${isJudged ? ', settings and judge' : ' and settings'}: the scores measure the same thing.`
    return [demo, h('p', { class: 'note good' }, what), different.length > 0 && settingsTable(present, different)]
  }
  return [
    demo,
    h('section', { class: 'note warn', 'aria-labelledby': 'not-comparable' },
      h('h2', { id: 'not-comparable' }, isSame ? 'Read with care' : 'These runs aren’t fully comparable'),
      h('ul', null, reasons.map(({ letter, text }) => h('li', null, pairs.length > 1 && h('b', null, `A and ${letter}: `), text)))),
    different.length > 0 && settingsTable(present, different),
  ]
}

/**
 * Makes the note about the questions of runs on different datasets: it names the items whose question differs.
 *
 * @param {import('./statistics.js').PairedItem[]} items
 */
export function questionsNote(items) {
  const changed = items.filter(({ isChanged }) => isChanged)
  if (changed.length > 0) {
    const names = changed.slice(0, NAMED_MAX).flatMap((item, at) => [at > 0 && ', ', h('code', null, itemName(item))])
    const others = changed.length - NAMED_MAX
    return h('p', { class: 'note warn' }, h('b', null, `${plural(changed.length, 'item')} with different questions: `), names, others > 0 && ` and ${integer(others)} more`,
      '. The id is the same in the runs, the question isn’t; these items aren’t compared.')
  }
  const common = items.filter(({ sides }) => sides.every(isGraded)).length
  return common > 0 && h('p', { class: 'note' }, `The runs used different datasets, but the same question for each of the ${plural(common, 'item')} in common.`)
}

/** @param {{letter: string, b: RunBenchmark, run: Run}[]} present @param {typeof SETTINGS} rows */
function settingsTable(present, rows) {
  return h('details', { class: 'compare-settings', open: true }, h('summary', null, 'Settings that differ'),
    h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Settings that differ' }, h('table', { class: 'figures' },
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Setting'), present.map(({ letter }) => h('th', { scope: 'col' }, letter)))),
      h('tbody', null, rows.map(([label, text]) => h('tr', null,
        h('th', { scope: 'row' }, label), present.map(({ b, run }) => h('td', null, text(b, run)))))))))
}

/** @param {RunBenchmark} b @param {Run} run */
function promptText(b, run) {
  const { text, digest } = promptOfRun(b, run)
  return `${text || '–'}${digest && ` (${digest.slice(0, 12)})`}`
}

/** @param {Api.GenerationView | null} generation */
function generationText(generation) {
  const set = Object.entries(generation ?? {}).filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
  return set.map(([key, value]) => `${key} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ') || 'the provider’s'
}
