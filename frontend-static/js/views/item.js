/** An item of a run: what was asked, what the model answered, how it was graded. */

import { h, replace, useStyles } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { isOutcomeOnly, messageParts } from '../core/messages.js'
import { outcomeMark, outcomeOf } from '../core/outcomes.js'
import { hasConversations, hasEpisodes } from '../core/agents.js'
import { cautionList, cautionsOf, hasAgent, modelOf } from '../core/run-facts.js'
import { ApiSource, apiSource } from '../core/source.js'
import { empty } from '../core/states.js'
import { router } from '../core/router.js'
import { factsOf } from './item/facts.js'
import { neighborsOf } from './item/neighbors.js'
import { textsOf } from './item/texts.js'
import { filterFrom, filterQuery } from './run/item-list.js'

/** @typedef {import('../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../core/source.js').Sample} Sample */

/** Meanings of outcomes that differ for episodes, which have rewards and no answers. @type {Record<string, string>} */
const EPISODE_MEANINGS = {
  correct: 'The episode got the full reward.', partial: 'The episode got a part of the reward, so it doesn’t pass.', incorrect: 'The episode got no reward.',
}

/**
 * Shows an item of a run of the server, or of the context's source.
 *
 * @param {import('../app.js').Context} context
 */
export async function mount(context) {
  const { root, params, query, signal, title, announce } = context
  const { benchmark, item: id } = params
  const source = context.source ?? apiSource(params.run)
  const sample = Number(query.get('sample') ?? 0)
  const latest = source instanceof ApiSource ? source.latest : null
  const [run, item] = await Promise.all([
    latest ?? source.run(signal), source.item(benchmark, id, sample, signal), useStyles('views/item.css'),
  ])
  if (signal.aborted) return
  const b = run.benchmarks.find((entry) => entry.benchmark_name === benchmark)
  const filter = filterFrom(query)
  const back = source.runPath({ benchmark, ...filter })
  const crumbs = h('nav', { class: 'crumbs', 'aria-label': 'Place' },
    source.live ? h('a', { href: '/runs' }, 'Runs') : h('a', { href: '/verify' }, 'Verify'), ' › ', h('a', { href: source.runPath() }, run.name ?? modelOf(run)), ' › ', h('a', { href: back }, benchmark))
  if (!item || !b) {
    title('Item not found')
    replace(root, crumbs, h('h1', null, 'Item not found'), empty('', `The run has no sample ${sample + 1} of item ${id} in ${benchmark}.`, h('a', { class: 'button', href: back }, 'All items')))
    return
  }
  const label = item.source_id ?? `#${item.item_id}`
  const isEpisode = hasEpisodes(benchmark)
  const name = isEpisode ? `Episode ${item.sample + 1} of ${label}` : `Item ${label}`
  title(`${name} – ${benchmark}`)
  const [reason, response] = messageParts(item.reason ?? ((isEpisode && EPISODE_MEANINGS[item.outcome ?? '']) || outcomeOf(item.outcome).meaning))
  const saysMore = item.error && item.error !== item.reason && !(item.reason && isOutcomeOnly(item.error))
  const [error, errorResponse] = saysMore ? messageParts(item.error ?? '') : [null, null]
  const place = h('div', { class: 'actions step' })
  const part = { run: source.id, benchmark, item, isLive: source.live, signal }
  const isRunning = source.live && (hasAgent(b) || benchmark === 'swe_bench_pro') && !item.outcome
  const again = () => {
    if (source instanceof ApiSource) source.latest = null
    router.reload()
  }
  const attempt = isRunning ? null : await attemptParts(part, announce)
  const episode = isRunning ? await runningParts(part, announce, again) : attempt ? null : await dialogueParts(part, announce) ?? await verifiedParts(part, announce) ?? await episodeParts(part, announce)
  if (signal.aborted) return
  replace(root,
    h('div', { class: 'item-head' }, crumbs,
      h('div', { class: 'view-head' }, h('h1', null, name, ' ', outcomeMark(item.outcome)), place),
      h('p', { class: 'reason' }, reason, error && h('span', { class: 'bad' }, ' ', error),
        item.error_code && h('span', { class: 'dim' }, ' Code ', h('code', null, item.error_code), '.')),
      response ?? errorResponse,
      samplesNav(source, b, item, filterQuery(filter)), cautionList(cautionsOf(b).filter(({ text }) => !/^[\d.,]+ |^coverage/.test(text)))),
    ...(episode ? [...episode, ...textsOf({ ...item, judge_output: null, response: null, cut: item.cut ?? [] }, { question: hasConversations(benchmark) ? 'Task' : 'Instruction' })] : [factsOf(item), ...(attempt ?? []), ...textsOf(attempt ? { ...item, judge_output: null, detail: null } : item)]))
  announce(`${name}: ${outcomeOf(item.outcome).label}.`)

  const wait = neighborsOf({ source, b, item, filter, signal })
  followKeys({ k: wait.then(({ previous }) => previous), j: wait.then(({ next }) => next), u: Promise.resolve(back) }, signal)
  const neighbors = await wait
  if (signal.aborted) return
  const step = (/** @type {string} */ text, /** @type {string} */ key, /** @type {string | null} */ href, /** @type {string} */ rel) =>
    h('a', { class: 'button', rel, href, role: href ? null : 'link', 'aria-disabled': href ? null : 'true', 'aria-keyshortcuts': key }, text, ' ', h('kbd', { 'aria-hidden': 'true' }, key))
  replace(place, neighbors.total > 0 && h('span', { class: 'dim' }, `${integer(neighbors.at + 1)} of ${plural(neighbors.total, isEpisode ? 'episode' : 'sample')}`),
    step('Previous', 'k', neighbors.previous, 'prev'), step('Next', 'j', neighbors.next, 'next'))
}

/**
 * Makes the parts of an episode; null for samples of other kinds, which don't load this.
 *
 * @param {import('./item/logs.js').Place} place
 * @param {(text: string) => void} announce
 */
async function episodeParts(place, announce) {
  const { item } = place
  if (!item.judge_output || !('episode_steps' in item.judge_output)) return null
  const { episodeOf, episodeSections } = await import('./item/episode.js')
  const episode = episodeOf(item)
  return episode && episodeSections(episode, place, announce)
}

/**
 * Makes the parts of a conversation; null for samples of other kinds, which don't load this.
 *
 * @param {import('./item/logs.js').Place} place
 * @param {(text: string) => void} announce
 */
async function dialogueParts(place, announce) {
  const { item } = place
  const isCut = place.isLive && hasConversations(place.benchmark) && item.cut.includes('judge_output')
  if (!isCut && !(item.judge_output && 'dialogue' in item.judge_output)) return null
  const { cutDialogueSections, dialogueOf, dialogueSections } = await import('./item/dialogue.js')
  if (isCut) return cutDialogueSections(place, announce)
  const dialogue = dialogueOf(item)
  return dialogue && dialogueSections(dialogue, place, announce)
}

/**
 * Makes the parts of a change that was verified; null for samples of other kinds, which don't load this.
 *
 * @param {import('./item/logs.js').Place} place
 * @param {(text: string) => void} announce
 */
async function verifiedParts(place, announce) {
  const { item } = place
  if (!item.judge_output || !('verification' in item.judge_output)) return null
  const { verificationOf, verificationSections } = await import('./item/verification.js')
  const verification = verificationOf(item)
  return verification && verificationSections(verification, place, announce)
}

/**
 * Makes the parts of an attempt at a programming task; null for samples of other kinds, which don't load this.
 *
 * @param {import('./item/logs.js').Place} place
 * @param {(text: string) => void} announce
 */
async function attemptParts(place, announce) {
  const { item } = place
  if (typeof item.detail?.verdict !== 'string') return null
  const { attemptOf, attemptSections } = await import('./item/attempt.js')
  const verdict = attemptOf(item)
  return verdict && attemptSections(verdict, place, announce)
}

/**
 * Makes the parts of an episode without a result.
 *
 * @param {import('./item/logs.js').Place} place
 * @param {(text: string) => void} announce
 * @param {() => void} onOver
 */
async function runningParts(place, announce, onOver) {
  const { runningSection } = await import('./item/running.js')
  return [runningSection(place, announce, onOver)]
}

/**
 * Follows single keys to addresses, unless the reader is typing. A key that is pressed before its address is known waits for it.
 *
 * @param {Record<string, Promise<string | null>>} paths addresses by key
 * @param {AbortSignal} signal
 */
function followKeys(paths, signal) {
  document.addEventListener('keydown', async (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !Object.hasOwn(paths, event.key)) return
    if (/** @type {HTMLElement} */ (event.target).closest('input, textarea, select, dialog, bench-menu, [contenteditable]')) return
    event.preventDefault()
    const path = await paths[event.key]
    if (path && !signal.aborted) router.go(path)
  }, { signal })
}

/**
 * Makes links to the other samples of an item.
 *
 * @param {import('../core/source.js').RunSource} source
 * @param {RunBenchmark} b
 * @param {Sample} item
 * @param {string} filter
 */
function samplesNav(source, b, item, filter) {
  const count = b.samples_per_item ?? 1
  if (count < 2) return null
  const [label, word] = hasEpisodes(b.benchmark_name) ? ['Episodes of this task', 'Episode'] : ['Samples of this item', 'Sample']
  return h('nav', { class: 'samples', 'aria-label': label }, `${word} `, Array.from({ length: count }, (_, i) => {
    const path = source.itemPath(b.benchmark_name, String(item.item_id), i)
    return h('a', { href: filter ? `${path}${path.includes('?') ? '&' : '?'}${filter}` : path, 'aria-current': i === item.sample ? 'page' : null }, String(i + 1))
  }))
}
