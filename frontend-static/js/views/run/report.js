/** What a printed run has in addition: settings of every benchmark and where to find the run. */

import { h } from '../../core/dom.js'
import { dateTime, timeZone } from '../../core/format.js'
import { settingRows } from './settings.js'

/** @param {any} run */
export function printReport(run) {
  return h('section', { class: 'report' },
    run.benchmarks.map((/** @type {any} */ b) => h('div', null, h('h2', null, `Settings of ${b.benchmark_name}`),
      h('dl', { class: 'facts' }, settingRows(b, run).map(([term, value]) => [h('dt', null, term), h('dd', null, value)])))),
    h('p', { class: 'dim' }, `Run ${run.id}, ${location.origin}/runs/${run.id}. Printed ${dateTime(new Date())} (${timeZone}). The signed archive of the run can be verified without this server.`))
}
