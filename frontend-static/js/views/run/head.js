/** Title, status and actions of a run. */

import { h, part } from '../../core/dom.js'
import { dateTime, shortId } from '../../core/format.js'
import { withModule } from '../../core/states.js'
import { statusBadge, statusOf } from '../../core/outcomes.js'
import { needsModel } from '../../core/agents.js'
import { agentOf, canOf, isOpen, modelOf, subsetText } from '../../core/run-facts.js'
import { visibilityMark } from '../../core/visibility.js'
import { openKeyDialog } from '../../frame.js'
import { session } from '../../core/session.js'
import { signInLink } from '../../components/account.js'
import { menu } from '../../components/menu.js'
import { actionsOf, exportItems } from './actions.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/** Actions with a button of their own; the others are in a menu. */
const BUTTONS = new Set(['resume', 'requeue', 'requeue-errors', 'cancel'])

/**
 * @param {{source: import('../../core/source.js').RunSource, signal: AbortSignal, changed: () => void}} options
 */
export function headOf({ source, signal, changed }) {
  return part(h('div', { class: 'view-head run-head' }),
    (/** @type {Run} */ run) => [statusOf(run), run.visibility, run.name, run.tags, run.notes, run.can, canOf(run), modelOf(run), run.queue_position, agentOf(run), session.isOffered],
    (run) => [
      h('div', { class: 'titles' },
        h('nav', { 'aria-label': 'Place', class: 'crumbs' }, source.live ? h('a', { href: '/runs' }, 'Runs') : h('a', { href: '/verify' }, 'Verify')),
        h('h1', { tabindex: '-1', dataset: { key: 'title' } }, modelOf(run), ' ', statusBadge(statusOf(run)), ' ', visibilityMark(run)),
        run.name && h('p', { class: 'run-name' }, run.name),
        h('p', { class: 'dim' }, `${source.live ? 'Run' : 'Archive of run'} ${shortId(run.id)}, ordered ${dateTime(run.created_at)}, ${subsetText(run)}`,
          run.endpoint_host && `, answered by ${run.endpoint_host}`, agentOf(run) && needsModel(agentOf(run)) && `, agent ${agentOf(run)}`),
        (run.tags ?? []).length > 0 && h('p', { class: 'tags' }, run.tags.map((/** @type {string} */ tag) => h('a', { class: 'tag', href: `/runs?tag=${encodeURIComponent(tag)}` }, tag))),
        run.notes && h('p', { class: 'notes' }, run.notes)),
      source.live ? actions(run, signal, changed) : h('div', { class: 'actions no-print' }, printButton()),
    ])
}

/**
 * @param {Run} run
 * @param {AbortSignal} signal
 * @param {() => void} changed
 */
function actions(run, signal, changed) {
  const all = actionsOf(run, changed)
  const rest = all.filter(({ name }) => !BUTTONS.has(name))
  const files = isOpen(run) ? [] : exportItems(run, signal)
  const exports = menu('Export', [...files, ...(files.length > 0 ? [null] : []), { label: 'Print this page', run: () => print() }])
  return h('div', { class: 'actions no-print' },
    all.filter(({ name }) => BUTTONS.has(name)).map((action) =>
      h('button', { type: 'button', class: 'button', dataset: { key: action.name }, on: { click: action.run } }, action.label)),
    h('a', { class: 'button', href: `/compare?runs=${run.id}`, dataset: { key: 'compare' } }, 'Compare'),
    exports,
    all.length === 0 && session.isOffered && signInLink('button'),
    all.length === 0 && h('button', { type: 'button', class: 'button', title: 'Actions on this run need the key or access token that made it, or the operator\'s secret.', dataset: { key: 'key' }, on: { click: openKeyDialog } }, 'Enter key for actions'),
    menu('More', [...rest, ...(rest.length > 0 ? [null] : []), { label: 'Commands for this run', run: () => withModule(() => import('./commands.js'), ({ openCommands }) => openCommands(run)) }]))
}

function printButton() {
  return h('button', { type: 'button', class: 'button', on: { click: () => print() } }, 'Print')
}
