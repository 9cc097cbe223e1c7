/** Comparison of verified archives: the same view as for runs of the server, computed in the browser. */

import { h, replace, useStyles } from '../core/dom.js'
import { link } from '../core/router.js'
import { empty } from '../core/states.js'
import { compareArchives } from '../archive/compare.js'
import { openedArchive, openedArchives } from '../archive/source.js'
import { idsFrom, showComparison } from './compare.js'
import { loadRuns } from './compare/load.js'

/**
 * Shows the view.
 *
 * @param {import('../app.js').Context} context
 */
export async function mount(context) {
  const { root, query, signal, title } = context
  await useStyles('views/compare.css', 'views/run.css', 'views/verify.css')
  const ids = idsFrom(query)
  const sources = ids.length > 0 ? ids.flatMap((id) => openedArchive(id) ?? []) : openedArchives()
  if (sources.length < 2 || sources.length < ids.length) {
    title('Compare archives')
    replace(root, h('h1', null, 'Open the archives first'),
      empty('', 'Archives stay in the memory of this tab and are gone after a reload. Choose the files again; two or more that are valid can be compared.', link('/verify', 'Verify archives')))
    return
  }
  const sides = await Promise.all(sources.map(async (source) => ({ id: source.id, run: await source.run(), rowsOf: (/** @type {string} */ name) => source.rows(name) })))
  const sideOf = (/** @type {import('../core/source.js').RunSource} */ { id }) => /** @type {typeof sides[number]} */ (sides.find((side) => side.id === id))
  const all = await loadRuns(sources, async (a, b) => compareArchives(sideOf(a), sideOf(b)), signal)
  if (signal.aborted) return
  showComparison(context, all, '/verify/compare', h('a', { class: 'button', href: '/verify' }, 'Change the selection'))
  root.querySelector('.view-head')?.after(h('p', { class: 'note good archive-note' }, h('span', { 'aria-hidden': 'true' }, '✓ '), 'Verified archives: ',
    sources.map((source, at) => [at > 0 && ', ', h('b', { class: 'file-name' }, source.proof.fileName)]), '. Everything here comes from the files.'))
}
