/** What a printed run has in addition: settings of every benchmark and where to find the run. */

import { h } from '../../core/dom.js'
import { dateTime, integer, none, timeZone } from '../../core/format.js'
import { promptOfRun } from '../../core/run-facts.js'
import { settingRows } from './settings.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/** Benchmarks whose settings are printed in full; a run with more gets a table that fits one page. */
const FULL_MAX = 3

/** @param {Run} run */
export function printReport(run) {
  const isFull = run.benchmarks.length <= FULL_MAX
  return h('section', { class: isFull ? 'report full' : 'report' }, isFull ? run.benchmarks.map(settingsList) : settingsTable(run),
    h('p', { class: 'dim' }, `Run ${run.id}, ${location.origin}/runs/${run.id}. Printed ${dateTime(new Date())} (${timeZone()}). The signed archive of the run can be verified without this server.`))

  /** @param {RunBenchmark} b */
  function settingsList(b) {
    return h('div', null, h('h2', null, `Settings of ${b.benchmark_name}`),
      h('dl', { class: 'facts' }, settingRows(b, run).map(([term, value]) => [h('dt', null, term), h('dd', null, value)])))
  }
}

/** @param {Run} run */
function settingsTable(run) {
  const promptText = (/** @type {RunBenchmark} */ b) => {
    const { text, digest } = promptOfRun(b, run)
    return `${text} ${digest.slice(0, 12)}`.trim() || none
  }
  return h('table', { class: 'figures' }, h('caption', { class: 'visually-hidden' }, 'Settings'),
    h('thead', null, h('tr', null, ['Benchmark', 'Protocol', 'Prompt', 'Dataset', 'Judge', 'Samples'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', null, run.benchmarks.map((b) => h('tr', null,
      h('th', { scope: 'row' }, b.benchmark_name), h('td', null, b.protocol_name ?? none), h('td', null, promptText(b)),
      h('td', null, b.dataset ? `${b.dataset.id} ${b.dataset.revision.slice(0, 12)}` : none), h('td', null, b.judge?.model ?? none), h('td', null, `${integer(b.sampled_items)} × ${integer(b.samples_per_item)}`)))))
}
