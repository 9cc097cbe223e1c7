/** Run of a verified archive, shown by the run view without a server. */

import { mountArchive } from './verify/browse.js'
import { mount as mountRun } from './run.js'

/**
 * Shows the view.
 *
 * @param {import('../app.js').Context} context
 */
export function mount(context) {
  return mountArchive(context, mountRun)
}
