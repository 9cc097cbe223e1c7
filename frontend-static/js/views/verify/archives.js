/** Verified archives of this tab: what can be browsed, and what can be compared. */

import { h, part } from '../../core/dom.js'
import { percent, plural } from '../../core/format.js'
import { modelOf } from '../../core/run-facts.js'
import { closeArchive, openedArchives } from '../../archive/source.js'
import { runView } from '../../archive/run-view.js'

/** Makes the list. It shows nothing without an archive. */
export function archiveList() {
  const list = part(h('div', null), (/** @type {ReturnType<typeof openedArchives>} */ archives) => archives.map(({ id, proof }) => [id, proof.fileName]), (archives) => archives.length > 0 && h('section', { class: 'archives', 'aria-labelledby': 'archives-title' },
    h('h2', { id: 'archives-title' }, 'Verified archives in this tab'),
    h('ul', null, archives.map((source) => row(source, update))),
    archives.length > 1
      ? h('p', { class: 'actions' }, h('a', { class: 'button primary', href: `/verify/compare?runs=${archives.map(({ id }) => encodeURIComponent(id)).join(',')}` }, `Compare ${plural(archives.length, 'archive')}`))
      : h('p', { class: 'hint' }, 'Choose another archive to compare the two.')))
  const update = () => list.show(openedArchives())
  update()
  return { element: list.element, update }
}

/**
 * @param {import('../../archive/source.js').ArchiveSource} source
 * @param {() => void} changed
 */
function row(source, changed) {
  const { fileName } = source.proof
  const run = runView(source.results)
  const remove = () => { closeArchive(source); changed() }
  return h('li', null,
    h('div', null, h('a', { href: source.runPath() }, h('span', { class: 'file-name' }, fileName)), h('span', { class: 'dim' }, ` ${modelOf(run)}`)),
    h('b', { class: 'number' }, percent(run.overall_score)),
    h('button', { type: 'button', class: 'button small', 'aria-label': `Close ${fileName}`, on: { click: remove } }, 'Close'))
}
