/** Downloads of exports, and files that the page makes. */

import { announce, toast } from '../../core/states.js'
import { address, api, ApiError, curl } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { copyBox } from '../../components/copy.js'
import { openDialog } from '../../components/dialog.js'

/** Seconds between two questions for an export that isn't ready. */
const NOT_READY_SECONDS = 2

/**
 * Downloads a file. Large files are redirects to another address, which only the browser itself may follow.
 *
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {string} name
 * @param {AbortSignal} signal
 */
export async function download(path, query, name, signal) {
  announce(`Preparing ${name}.`)
  const url = address(path, query)
  /** @type {Record<string, string>} */
  const headers = {}
  if (api.key) headers.authorization = `Bearer ${api.key}`
  if (api.adminSecret) headers['x-admin-secret'] = api.adminSecret
  try {
    for (;;) {
      const response = await fetch(url, { headers, redirect: 'manual', signal })
      if (response.type === 'opaqueredirect') return followRedirect(url)
      if (response.status === 202) {
        toast('The export is being made. It starts by itself.', { seconds: NOT_READY_SECONDS })
        await new Promise((done) => setTimeout(done, NOT_READY_SECONDS * 1000))
        continue
      }
      if (!response.ok) {
        const body = await response.json().catch(() => null)
        throw new ApiError(response.status, body?.code ?? null, body?.detail ?? `HTTP ${response.status}`, [])
      }
      save(await response.blob(), name)
      announce(`Downloaded ${name}.`)
      return
    }
  } catch (error) {
    if (!signal.aborted) toast(`The export failed: ${/** @type {Error} */ (error).message}`, { kind: 'bad' })
  }
}

/**
 * Follows a redirect to a file. Browsers send no key with it, so that a file for its owner needs the command.
 *
 * @param {string} url
 */
function followRedirect(url) {
  if (!api.key && !api.adminSecret) { location.assign(url); return }
  openDialog({
    title: 'Download with your key',
    content: [
      h('p', null, 'The file is stored at another address, where this page may not send your key. If the run isn\'t of a gated dataset, download it without a key:'),
      h('p', null, h('a', { class: 'button', href: url, download: '' }, 'Download without a key')),
      h('p', null, 'With your key, this command downloads it:'), copyBox(`${curl('GET', url, null, { key: true })} -L -O -J`),
    ],
  })
}

/**
 * Saves a file that the page made.
 *
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const url = URL.createObjectURL(blob)
  const a = h('a', { href: url, download: name })
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
