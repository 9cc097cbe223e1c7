/** Commands for a run, to copy. */

import { curl } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { copyBox } from '../../components/copy.js'
import { openDialog } from '../../components/dialog.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** @param {Run} run */
export function openCommands(run) {
  openDialog({
    title: 'Commands for this run', wide: true,
    content: [
      h('h3', null, 'In a terminal'), copyBox(`bench runs ${run.id} --server ${location.origin}`), copyBox(`bench export ${run.id} --server ${location.origin} --out results.zip\nbench verify results.zip`),
      h('h3', null, 'The same over HTTP'), copyBox(curl('GET', `/api/runs/${run.id}`)), copyBox(`${curl('GET', `/api/runs/${run.id}/export?format=zip`)} -L -o results.zip`),
      h('h3', null, 'Id'), copyBox(run.id),
    ],
  })
}
