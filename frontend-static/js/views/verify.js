/** Verification of a signed archive: in this browser, or by the server where the browser can't. */

import { api } from '../core/api.js'
import { h, replace } from '../core/dom.js'
import { bytes } from '../core/format.js'
import { loading } from '../core/states.js'
import { useStyles } from '../core/style.js'
import { canVerify } from '../archive/keys.js'
import { ArchiveSource, openArchive, openedArchive } from '../archive/source.js'
import { verifyArchive } from '../archive/verify.js'
import { dropField } from './verify/drop.js'
import { keysPanel, trustedKeys } from './verify/keys.js'
import { checkByServer, offer } from './verify/server-check.js'
import { verdict } from './verify/verdict.js'

/** File that was verified last in this tab, so that the reader finds it again after browsing it. @type {File | null} */
let lastFile = null

/**
 * Shows the view.
 *
 * @param {import('../core/view.js').Context} context
 */
export async function mount({ root, query, signal, title, announce }) {
  title('Verify an archive')
  const [isAble] = await Promise.all([canVerify(), useStyles('views/verify.css')])
  if (signal.aborted) return
  const result = h('div', { class: 'verify-result' })
  const told = h('p', { class: 'hint verify-told', 'aria-live': 'polite' })

  /** Number of the latest verification: an earlier one that ends later shows nothing. */
  let latest = 0
  const verify = async (/** @type {File} */ file, isFirst = true) => {
    lastFile = file
    latest += 1
    const mine = latest
    if (!isAble) {
      const byServer = () => checkByServer(result, file, signal)
      replace(result, h('p', null, `${file.name}, ${bytes(file.size)}`), h('p', { class: 'actions' }, offer(file, byServer)))
      return
    }
    replace(result, loading(`Checking ${file.name}`))
    await trustedKeys.load(signal)
    const verification = await verifyArchive(file, trustedKeys.all)
    if (signal.aborted || mine !== latest) return
    const proven = verification.state === 'valid' ? verification.results : null
    openArchive(proven ? new ArchiveSource(proven, { fileName: file.name, verification }) : null)
    if (proven) prepareBrowsing()
    const trust = async () => { await trustedKeys.add(verification.ownKey?.base64 ?? '', 'trusted here from an archive') }
    const browse = h('a', { class: 'button primary', href: '/verify/run' }, 'Browse the run and its items')
    replace(result, verdict(verification, { fileName: file.name, actions: proven ? [browse] : [], trust }))
    const heading = /** @type {HTMLElement | null} */ (result.querySelector('h2'))
    announce(heading?.textContent ?? '')
    if (isFirst) heading?.focus()
  }
  const addKeys = async (/** @type {File} */ file) => {
    const count = file.size > 1_000_000 ? 0 : await trustedKeys.add(await file.text(), `from ${file.name}`)
    told.textContent = count > 0 ? `Keys in ${file.name}: ${count}.` : `${file.name} has no Ed25519 public key.`
  }
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Verify an archive'),
      isAble && h('p', { class: 'sub' }, 'Checks who signed an archive and that nothing in it was changed since. The file stays in your browser: nothing is uploaded.')),
    !isAble && h('p', { class: 'note warn' }, 'This browser can’t check Ed25519 signatures: it lacks them in WebCrypto, or the page isn’t served by HTTPS or from this machine. The server can check the archive instead. The archive is uploaded for that.'),
    dropField({ signal, archive: verify, keys: addKeys }), told, result,
    isAble && keysPanel(signal),
    h('p', { class: 'hint' }, 'On the command line: ', h('code', null, 'bench verify results.zip'), '.'))
  trustedKeys.addEventListener('change', () => { if (lastFile && isAble && result.firstChild) verify(lastFile, false) }, { signal })
  if (isAble) trustedKeys.load(signal)
  const served = query.get('file')
  if (served?.startsWith('/archives/')) await verify(await fetchArchive(served, signal), false)
  else if (lastFile && openedArchive()) await verify(lastFile, false)
}

/** Loads the views of an archive, so that it can be browsed without a connection. */
function prepareBrowsing() {
  const parts = [import('./archive-run.js'), import('./archive-item.js'), useStyles('views/run.css', 'views/item.css')]
  Promise.all(parts).catch(() => { /* They are loaded again when they are shown. */ })
}

/**
 * Fetches the archive that `bench view` serves to this browser.
 *
 * @param {string} address
 * @param {AbortSignal} signal
 */
async function fetchArchive(address, signal) {
  const name = decodeURIComponent(address.split('/').at(-1) ?? 'archive.zip')
  return new File([await api.blob(address, { signal, withoutKey: true })], name)
}
