/** Actions on a run. The dialog of an action is loaded when the reader chooses it. */

import { plural, shortId } from '../../core/format.js'
import { withModule } from '../../core/states.js'
import { canOf, changeAdvice, countOf } from '../../core/run-facts.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {() => void} Changed is called after an action, so that the view loads the run again */

const dialogs = () => import('./action-dialogs.js')

/**
 * Lists the actions that the reader may take, for buttons and menus. The most likely one comes first.
 *
 * @param {Run} run
 * @param {Changed} changed
 * @returns {{name: string, label: string, run: () => void, danger?: boolean}[]}
 */
export function actionsOf(run, changed) {
  const can = canOf(run)
  const requeue = (/** @type {'resume' | 'requeue' | 'errors'} */ kind) => () => {
    void withModule(dialogs, ({ openRequeue }) => openRequeue(run, kind, changed))
  }
  const list = []
  const errors = countOf(run, 'infrastructure-error')
  if (can.resume) list.push({ name: 'resume', label: 'Resume…', run: requeue('resume') })
  // Errors that would come again are no reason to repeat anything.
  const helps = changeAdvice(run) === ''
  if (can.requeue && !can.resume && helps) list.push({ name: 'requeue', label: 'Requeue failures…', run: requeue('requeue') })
  if (can.requeue_errors && !can.requeue && helps) {
    list.push({ name: 'requeue-errors', label: errors > 0 ? `Requeue ${plural(errors, 'error')}…` : 'Requeue errors…', run: requeue('errors') })
  }
  if (can.rejudge) list.push({ name: 'rejudge', label: 'Judge again…', run: () => withModule(() => import('./rejudge.js'), ({ openRejudge }) => openRejudge(run, canOf(run))) })
  if (can.cancel) list.push({ name: 'cancel', label: 'Cancel…', danger: true, run: () => withModule(dialogs, ({ openCancel }) => openCancel(run, changed)) })
  if (can.edit) list.push({ name: 'edit', label: 'Name, tags, notes…', run: () => withModule(() => import('./edit.js'), ({ openEdit }) => openEdit(run, changed)) })
  if (can.edit && run.visibility) list.push({ name: 'visibility', label: 'Visibility…', run: () => withModule(() => import('./visibility.js'), ({ openVisibility }) => openVisibility(run, changed)) })
  if (can.delete) list.push({ name: 'delete', label: 'Delete…', danger: true, run: () => withModule(dialogs, ({ openDelete }) => openDelete(run)) })
  return list
}

const downloads = () => import('./download.js')

/**
 * Lists the exports of a run that is over, for a menu. Report and protocol are for everybody who can read the run.
 *
 * @param {Run} run
 * @param {AbortSignal} signal
 */
export function exportItems(run, signal) {
  const file = (/** @type {string} */ format) => () => withModule(downloads, ({ download }) =>
    download(`/api/runs/${run.id}/export`, { format }, `${fileName(run)}.${format}`, signal))
  const hasResults = run.status === 'succeeded' || run.status === 'failed'
  return [
    ...(hasResults ? [{ label: 'Report (PDF)', run: file('pdf') }] : []),
    ...(canOf(run).export ? [
      { label: 'Signed archive (ZIP)', run: file('zip') },
      { label: 'Table (CSV)', run: file('csv') },
      { label: 'All samples (JSONL)', run: file('jsonl') },
    ] : []),
    ...(hasResults ? [{ label: 'Protocol (Markdown)', run: file('md') }] : []),
    { label: 'Run without samples (JSON)', run: () => withModule(downloads, ({ save }) => save(new Blob([JSON.stringify(run, null, 2)], { type: 'application/json' }), `${fileName(run)}.json`)) },
  ]
}

/** @param {Run} run */
function fileName(run) {
  return `${String(run.model_slug ?? run.model ?? 'run').replaceAll(/[^A-Za-z0-9._-]+/g, '-')}-${shortId(run.id)}`
}
