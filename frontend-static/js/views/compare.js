/** Comparison of two or more runs on the items that they share. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { plural } from '../core/format.js'
import { path } from '../core/router.js'
import { hasEpisodes } from '../core/agents.js'
import { ApiSource } from '../core/source.js'
import { failure, loading } from '../core/states.js'
import { BenchTabs } from '../components/tabs.js'
import { agreementMatrix, rightAndWrong } from './compare/agreement.js'
import { chartsOf } from './compare/charts.js'
import { chooser } from './compare/chooser.js'
import { comparability, questionsNote } from './compare/comparability.js'
import { disagreements } from './compare/disagreements.js'
import { onlyInSome, runList } from './compare/head.js'
import { adjustedValues, benchmarkOf, loadRows, loadRuns, namesOf, pairOf, RUNS_MAX } from './compare/load.js'
import { pairedDifferences } from './compare/pairs.js'
import { pairItems } from './compare/statistics.js'

/** @typedef {import('../app.js').Context} Context */
/** @typedef {import('./compare/load.js').Compared} Compared */
/** @typedef {import('../core/source.js').RunSource} RunSource */

/**
 * Shows the view.
 *
 * @param {Context} context
 */
export async function mount(context) {
  const { root, query, signal, title } = context
  await useStyles('views/compare.css', 'views/run.css')
  title('Compare runs')
  const ids = idsFrom(query)
  if (ids.length < 2 || query.get('choose')) {
    replace(root, h('h1', null, 'Compare runs'), await chooser({ chosen: ids, signal }))
    return
  }
  replace(root, h('h1', null, 'Compare runs'), loading('Comparing'))
  const byServer = (/** @type {RunSource} */ a, /** @type {RunSource} */ b) => /** @type {Promise<Api.ComparisonView>} */ (api.get(`/api${path('runs', a.id, 'compare', b.id)}`, { signal }))
  const all = await loadRuns(ids.map((id) => new ApiSource(id)), byServer, signal)
  if (signal.aborted) return
  showComparison(context, all, '/compare', all.length < RUNS_MAX && h('a', { class: 'button', href: `/compare?runs=${ids.join(',')}&choose=1` }, 'Change the selection'))
}

/**
 * Shows compared runs.
 *
 * @param {Context} context
 * @param {Compared[]} all the baseline first
 * @param {string} base path of the view
 * @param {import('../core/dom.js').Child} change link to the selection
 */
export function showComparison(context, all, base, change) {
  const { root, query, title } = context
  title(`${all.map(({ label }) => label).join(', ')} – compare`)
  const names = namesOf(all[0].run).filter((name) => all.some((compared) => pairOf(compared, name)))
  const chosen = names.includes(query.get('benchmark') ?? '') ? /** @type {string} */ (query.get('benchmark')) : names[0]
  const place = h('div', { class: 'view' })
  const adjusted = adjustedValues(all)
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, `Compare ${plural(all.length, 'run')}`), change),
    runList(all, base), onlyInSome(all),
    names.length > 1 && benchmarkTabs(names, chosen, (name) => {
      query.set({ benchmark: name, item: null, show: null, group: null })
      showBenchmark(place, all, name, adjusted, context)
    }), place)
  if (chosen) showBenchmark(place, all, chosen, adjusted, context)
  else replace(place, h('p', { class: 'note warn' }, 'None of these runs can be compared with the baseline, as said beside each.'))
}

/**
 * Returns the ids of the runs in the address, the baseline first.
 *
 * @param {Context['query']} query
 */
export function idsFrom(query) {
  return [...new Set((query.get('runs') ?? '').split(',').map((id) => id.trim()).filter(Boolean))].slice(0, RUNS_MAX)
}

/** @param {string[]} names @param {string} chosen @param {(name: string) => void} select */
function benchmarkTabs(names, chosen, select) {
  const tabs = /** @type {BenchTabs} */ (document.createElement('bench-tabs'))
  tabs.set('Benchmarks', names.map((name) => ({ name, label: name, panel: h('div', { class: 'visually-hidden' }, `Comparison on ${name}`) })), chosen)
  tabs.addEventListener('select', (event) => select(/** @type {CustomEvent} */ (event).detail))
  return tabs
}

/**
 * @param {HTMLElement} place
 * @param {Compared[]} all
 * @param {string} name
 * @param {ReturnType<typeof adjustedValues>} adjusted
 * @param {Context} context
 */
function showBenchmark(place, all, name, adjusted, context) {
  const items = h('div', { class: 'view' })
  const isShared = all.some((compared) => (pairOf(compared, name)?.items ?? 0) > 0)
  replace(place,
    h('div', { class: 'compare-notes' }, comparability(all, name), h('div', { class: 'compare-questions', hidden: true })),
    pairedDifferences(all, name, adjusted),
    isShared && h('section', { 'aria-labelledby': 'agreement-title' }, h('h2', { id: 'agreement-title' }, 'Agreement'), rightAndWrong(all, name), h('div', { class: 'compare-matrix' })),
    items, chartsOf(all, name))
  showItems(items, all, name, false, context)
}

/**
 * Loads the items of all runs and shows them one by one.
 *
 * @param {HTMLElement} place
 * @param {Compared[]} all
 * @param {string} name
 * @param {boolean} isAsked True if the reader wants texts to be loaded where there is no other way.
 * @param {Context} context
 */
async function showItems(place, all, name, isAsked, context) {
  const { query, signal, announce } = context
  const shown = all.filter((compared) => compared === all[0] || pairOf(compared, name))
  const again = () => showItems(place, all, name, true, context)
  replace(place, loading('Loading the items'))
  try {
    const isSameDataset = shown.every((compared) => pairOf(compared, name)?.same_dataset ?? true)
    const options = { needsHashes: !isSameDataset, isAsked }
    const loaded = await Promise.all(shown.map((compared) => loadRows(compared, name, options, signal)))
    if (signal.aborted || !place.isConnected) return
    const lacking = shown.filter((_, at) => loaded[at].rows === null)
    if (lacking.length > 0) {
      replace(place, lackingNote(lacking, name, again))
      return
    }
    const rows = loaded.map((one) => one.rows ?? [])
    const bySourceId = !isSameDataset && rows.every((index) => index.some(({ source_id: id }) => id !== null))
    const items = pairItems(rows, { bySourceId, isSameDataset })
    const matrix = place.parentElement?.querySelector('.compare-matrix')
    if (matrix) replace(matrix, agreementMatrix(shown, items))
    const areUnknown = !isSameDataset && !loaded.every(({ hasHashes }) => hasHashes)
    const questions = /** @type {HTMLElement | null | undefined} */ (place.parentElement?.querySelector('.compare-questions'))
    if (questions && !isSameDataset && !areUnknown) {
      questions.hidden = false
      replace(questions, questionsNote(items))
    }
    const list = hasEpisodes(name) ? (await import('./compare/episodes.js')).taskByTask({ shown, items, name, query, announce }) : disagreements({ shown, items, name, query, signal, announce })
    if (signal.aborted) return
    replace(place, areUnknown && changedNote(shown, name, again), list)
  } catch (problem) {
    if (!signal.aborted) replace(place, failure(/** @type {Error} */ (problem), again))
  }
}

/** @param {Compared[]} lacking @param {string} name @param {() => void} load */
function lackingNote(lacking, name, load) {
  return h('section', null, h('h2', null, 'Item by item'),
    h('p', null, `${lacking.map(({ letter }) => letter).join(' and ')} ${lacking.length === 1 ? 'has' : 'have'} no index of items, as runs of earlier versions. To compare item by item, the page has to load ${samplesOf(lacking, name)} with texts.`),
    h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button', on: { click: load } }, 'Load them')))
}

/** Offers to find the items whose question differs, for which texts have to be loaded. @param {Compared[]} shown @param {string} name @param {() => void} load */
function changedNote(shown, name, load) {
  return h('div', { class: 'note warn' },
    h('p', null, `The runs used different datasets, so an id may have another question in each. Such items are in no figure above. To list them, the page has to load ${samplesOf(shown, name)} with texts.`),
    h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button', on: { click: load } }, 'Find them')))
}

/** @param {Compared[]} runs @param {string} name */
function samplesOf(runs, name) {
  return plural(runs.reduce((sum, compared) => sum + (benchmarkOf(compared, name)?.planned_samples ?? 0), 0), 'sample')
}
