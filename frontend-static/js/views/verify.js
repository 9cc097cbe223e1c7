/** Verification of a signed archive: in this browser, or by the server where the browser can't. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { bytes } from '../core/format.js'
import { loading } from '../core/states.js'
import { canVerify } from '../archive/keys.js'
import { ArchiveSource, closeArchive, openArchive, openedArchives } from '../archive/source.js'
import { verifyArchive } from '../archive/verify.js'
import { archiveList } from './verify/archives.js'
import { dropField } from './verify/drop.js'
import { keysPanel, trustedKeys } from './verify/keys.js'
import { checkByServer, offer } from './verify/server-check.js'
import { verdict } from './verify/verdict.js'

/** Files that were verified last in this tab, so that the reader finds them again after browsing them. @type {File[]} */
let lastFiles = []

/**
 * Shows the view.
 *
 * @param {import('../app.js').Context} context
 */
export async function mount({ root, query, signal, title, announce }) {
  title('Verify archives')
  const [isAble] = await Promise.all([canVerify(), useStyles('views/verify.css')])
  if (signal.aborted) return
  const result = h('div', { class: 'verify-result' })
  const archives = archiveList()
  const told = h('p', { class: 'hint verify-told', 'aria-live': 'polite' })

  /** Number of the latest verification: an earlier one that ends later shows nothing. */
  let latest = 0
  const verify = async (/** @type {File[]} */ files, isFirst = true) => {
    lastFiles = files
    latest += 1
    const mine = latest
    if (!isAble) {
      replace(result, files.map((file) => serverCheck(file, signal)))
      return
    }
    /** @type {HTMLElement[]} */
    const shown = []
    for (const file of files) {
      replace(result, shown, loading(`Checking ${file.name}`))
      await trustedKeys.load(signal)
      const verification = await verifyArchive(file, trustedKeys.all)
      if (signal.aborted || mine !== latest) return
      shown.push(resultOf(file, verification))
    }
    replace(result, shown)
    archives.update()
    const headings = shown.map((one) => one.querySelector('h2'))
    announce(headings.map((heading) => heading?.textContent ?? '').join('. '))
    if (isFirst) headings[0]?.focus()
  }
  const addKeys = async (/** @type {File} */ file) => {
    const count = file.size > 1_000_000 ? 0 : await trustedKeys.add(await file.text(), `from ${file.name}`)
    told.textContent = count > 0 ? `Keys in ${file.name}: ${count}.` : `${file.name} has no Ed25519 public key.`
  }
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Verify archives'),
      isAble && h('p', { class: 'sub' }, 'Checks who signed an archive and that nothing in it was changed since. Files stay in your browser: nothing is uploaded.')),
    !isAble && h('p', { class: 'note warn' }, 'This browser can’t check Ed25519 signatures: it lacks them in WebCrypto, or the page isn’t served by HTTPS or from this machine. The server can check the archive instead. The archive is uploaded for that.'),
    dropField({ signal, archives: verify, keys: addKeys }), told, archives.element, result,
    isAble && keysPanel(signal),
    h('p', { class: 'hint' }, 'On the command line: ', h('code', null, 'bench verify results.zip'), '.'))
  trustedKeys.addEventListener('change', () => {
    for (const source of openedArchives()) if (!isTrusted(source)) closeArchive(source)
    archives.update()
    if (isAble && result.firstChild) verify(lastFiles, false)
  }, { signal })
  if (isAble) trustedKeys.load(signal)
  const served = query.get('file')
  if (served?.startsWith('/archives/')) await verify([await fetchArchive(served, signal)], false)
  else if (lastFiles.length > 0 && openedArchives().length > 0) await verify(lastFiles, false)
}

/**
 * Shows the result of a verification, and keeps the archive if it is valid.
 *
 * @param {File} file
 * @param {import('../archive/verify.js').Verification} verification
 */
function resultOf(file, verification) {
  const trust = async () => { await trustedKeys.add(verification.ownKey?.base64 ?? '', 'trusted here from an archive') }
  if (verification.state !== 'valid' || !verification.results) return verdict(verification, { fileName: file.name, actions: [], trust })
  const source = new ArchiveSource(verification.results, { fileName: file.name, verification })
  openArchive(source)
  prepareBrowsing()
  return verdict(verification, { fileName: file.name, actions: [h('a', { class: 'button primary', href: source.runPath() }, 'Browse the run and its items')], trust })
}

/** Returns true if the reader still trusts the key that signed an archive. @param {ArchiveSource} source */
function isTrusted({ proof: { verification: { signer } } }) {
  return trustedKeys.all.some(({ base64 }) => base64 === signer?.base64)
}

/**
 * Offers the server's check of an archive.
 *
 * @param {File} file
 * @param {AbortSignal} signal
 */
function serverCheck(file, signal) {
  const place = h('div', null)
  const byServer = () => checkByServer(place, file, signal)
  return replace(place, h('p', null, `${file.name}, ${bytes(file.size)}`), h('p', { class: 'actions' }, offer(file, byServer)))
}

/** Loads the views of an archive, so that it can be browsed without a connection. */
function prepareBrowsing() {
  const parts = [import('./archive-run.js'), import('./archive-item.js'), import('./archive-compare.js'), import('./run/below.js'), useStyles('views/run.css', 'views/item.css', 'views/compare.css')]
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
