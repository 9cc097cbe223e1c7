/** Frame around the views of a verified archive: what was verified, and whose key signed. */

import { h, replace, useStyles } from '../../core/dom.js'
import { link } from '../../core/router.js'
import { empty } from '../../core/states.js'
import { openedArchive } from '../../archive/source.js'
import { keyName } from './keys.js'

/** @typedef {import('../../app.js').Context} Context */

/**
 * Shows a view of the archive that was verified last in this tab.
 *
 * @param {Context} context
 * @param {(context: Context) => Promise<void> | void} mount Run or item view.
 */
export async function mountArchive(context, mount) {
  const { root, query, title } = context
  await useStyles('views/verify.css')
  const source = openedArchive(query.get('run'))
  if (!source) {
    title('Archive')
    replace(root, h('h1', null, 'No archive is open'),
      empty('', 'Archives stay in the memory of this tab and are gone after a reload. Choose the file again.', link('/verify', 'Verify archives')))
    return
  }
  const { fileName, verification: { signer } } = source.proof
  const inner = h('div', { class: 'view' })
  replace(root,
    h('p', { class: 'note good archive-note' }, h('span', { 'aria-hidden': 'true' }, '✓ '), 'Verified archive ', h('b', { class: 'file-name' }, fileName),
      signer && `, signed by key ${keyName(signer)}`, '. Everything here comes from the file. ', link('/verify', 'Details')),
    inner)
  await mount({ ...context, root: inner, source })
}
