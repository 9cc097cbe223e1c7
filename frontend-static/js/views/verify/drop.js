/** Choice of an archive: a field for a file, and dropping files anywhere on the page. */

import { h } from '../../core/dom.js'

/** Names of files that have keys instead of an archive. */
const KEY_FILE = /\.(json|txt|pem|pub|key)$/i

/**
 * Makes the field for archives.
 *
 * @param {{signal: AbortSignal, archives: (files: File[]) => void, keys: (file: File) => void}} options
 */
export function dropField({ signal, archives, keys }) {
  const input = h('input', { type: 'file', multiple: true, id: 'verify-file', accept: '.zip,application/zip', class: 'visually-hidden' })
  const field = h('div', { class: 'drop' }, input,
    h('label', { for: 'verify-file', class: 'button primary' }, 'Choose archives'),
    h('span', null, 'or drop ZIP files here'))
  const take = (/** @type {FileList | undefined | null} */ files) => {
    const all = [...files ?? []]
    for (const file of all) if (KEY_FILE.test(file.name)) keys(file)
    const found = all.filter((file) => !KEY_FILE.test(file.name))
    if (found.length > 0) archives(found)
  }
  input.addEventListener('change', () => {
    take(input.files)
    // The same file may be chosen again after it was changed.
    input.value = ''
  })
  // It looks like a button, so Enter opens it as Space does.
  input.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); input.click() } })
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
