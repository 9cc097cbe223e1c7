/** Verification by the server, for browsers that can't check Ed25519 signatures. The archive is uploaded for it. */

import { copyBox } from '../../components/copy.js'
import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { bytes, dateTime, percent } from '../../core/format.js'
import { failure, loading } from '../../core/states.js'

/**
 * Sends an archive to the server and shows its result.
 *
 * @param {HTMLElement} place
 * @param {File} file
 * @param {AbortSignal} signal
 */
export async function checkByServer(place, file, signal) {
  replace(place, loading(`The server checks ${file.name}`))
  const form = new FormData()
  form.append('file', file)
  try {
    /** @type {Api.VerificationView} */
    const result = await api.post('/api/exports/verify', form, { signal })
    replace(place, show(result, file))
    place.querySelector('h2')?.focus()
  } catch (problem) {
    if (signal.aborted) return
    const { code } = /** @type {{code?: string}} */ (problem)
    if (code === 'body_too_large') replace(place, tooLarge(file))
    else replace(place, failure(/** @type {Error} */ (problem), () => checkByServer(place, file, signal)))
  }
}

/** @param {File} file larger than the server's limit on requests */
function tooLarge(file) {
  const name = file.name.replaceAll('\'', '\'\\\'\'')
  return h('section', { class: 'state failure', role: 'alert' },
    h('h2', null, 'Too large for the server’s check'),
    h('p', null, `This server doesn’t accept ${bytes(file.size)} in a request. The command checks the archive on your machine, with this server’s keys:`),
    copyBox(`bench verify '${name}' --server ${location.origin} --here`))
}

/** @param {Api.VerificationView} result @param {File} file */
function show(result, file) {
  const fact = (/** @type {string} */ name, /** @type {string | null} */ value) => (value === null ? null : [h('dt', null, name), h('dd', null, value)])
  return h('section', { class: 'verdict' },
    h('div', { class: `note ${result.valid ? 'good' : 'bad'}` },
      h('h2', { tabindex: '-1' }, h('span', { 'aria-hidden': 'true' }, result.valid ? '✓ ' : '✗ '), `${result.valid ? 'Valid' : 'Not valid'}, says the server: `, h('span', { class: 'file-name' }, file.name)),
      result.errors.length > 0 && h('p', null, result.errors.map((/** @type {string} */ text) => `${text.replace(/[:\s]+$/, '')}.`).join(' '))),
    h('dl', { class: 'facts' },
      fact('Signature', result.signature_valid ? 'valid' : 'not valid'),
      fact('Hash of the results', result.hash_match ? 'matches' : 'doesn’t match'),
      fact('Run', result.run_id), fact('Model', result.model_slug),
      fact('Score', result.overall_score === null ? null : percent(result.overall_score)),
      fact('Benchmarks', result.benchmark_count === null ? null : String(result.benchmark_count)),
      fact('Completed', result.exported_at && dateTime(result.exported_at)),
      fact('Key', result.public_key_fingerprint)))
}

/**
 * Makes the offer to upload an archive.
 *
 * @param {File} file
 * @param {() => void} send
 */
export function offer(file, send) {
  return h('button', { type: 'button', class: 'button', on: { click: send } }, `Upload it for the server’s check (${bytes(file.size)})`)
}
