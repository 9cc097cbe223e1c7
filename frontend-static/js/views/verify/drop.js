/** Choice of an archive: a field for a file, and dropping files anywhere on the page. */

import { h } from '../../core/dom.js'

/** Names of files that have keys instead of an archive. */
const KEY_FILE = /\.(json|txt|pem|pub|key)$/i

/**
 * Makes the field for an archive.
 *
 * @param {{signal: AbortSignal, archive: (file: File) => void, keys: (file: File) => void}} options
 */
export function dropField({ signal, archive, keys }) {
  const input = h('input', { type: 'file', id: 'verify-file', accept: '.zip,application/zip', class: 'visually-hidden' })
  const field = h('div', { class: 'drop' }, input,
    h('label', { for: 'verify-file', class: 'button primary' }, 'Choose an archive'),
    h('span', null, 'or drop a ZIP here'))
  const take = (/** @type {FileList | undefined | null} */ files) => {
    for (const file of files ?? []) {
      if (KEY_FILE.test(file.name)) keys(file)
      else archive(file)
    }
  }
  input.addEventListener('change', () => {
    take(input.files)
    // The same file may be chosen again after it was changed.
    input.value = ''
  })
  let depth = 0
  const show = (/** @type {number} */ change) => {
    depth = Math.max(0, depth + change)
    field.classList.toggle('is-over', depth > 0)
  }
  const hasFiles = (/** @type {DragEvent} */ event) => Boolean(event.dataTransfer?.types.includes('Files'))
  const listen = (/** @type {'dragenter' | 'dragover' | 'dragleave' | 'drop'} */ name, /** @type {(event: DragEvent) => void} */ act) => {
    document.addEventListener(name, (event) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      act(event)
    }, { signal })
  }
  listen('dragenter', () => show(1))
  listen('dragover', () => {})
  listen('dragleave', () => show(-1))
  listen('drop', (event) => {
    show(-depth)
    take(event.dataTransfer?.files)
  })
  return field
}
