/** Item of a verified archive, shown by the item view without a server. */

import { mountArchive } from './verify/browse.js'
import { mount as mountItem } from './item.js'

/**
 * Shows the view.
 *
 * @param {import('../app.js').Context} context
 */
export function mount(context) {
  return mountArchive(context, mountItem)
}
