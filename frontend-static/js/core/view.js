/** The view that is shown, from its start to the moment the reader leaves it. */

import { OfflineError, api } from './api.js'
import { connection } from './connection.js'
import { h, replace } from './dom.js'
import { poll } from './poll.js'
import { query, router } from './router.js'
import { empty, failure, loading } from './states.js'
import { announce } from './announce.js'

/**
 * @typedef {object} Context What a view gets.
 * @property {HTMLElement} root element to fill
 * @property {Record<string, string>} params parameters of the path
 * @property {typeof query} query state in the address
 * @property {AbortSignal} signal aborts when the reader leaves; everything that the view started ends with it
 * @property {(text: string) => void} title sets the title of the window
 * @property {(text: string) => void} announce tells screen readers of a change
 * @property {import('./source.js').RunSource} [source] source of a run, if the view shows one that isn't on the server
 */

/**
 * Shows the view of the present address in `main` whenever the reader navigates.
 *
 * @param {HTMLElement} main
 */
export function showViews(main) {
  /** @type {AbortController | null} */
  let current = null
  let isFirst = true
  router.addEventListener('navigate', async (event) => {
    current?.abort()
    const controller = current = new AbortController()
    const { signal } = controller
    const match = router.match(location.pathname)
    const root = h('div', { class: 'view' })
    const scroll = /** @type {CustomEvent} */ (event).detail.scroll
    dispatchEvent(new CustomEvent('viewchange', { detail: match?.name ?? null }))
    const waiting = setTimeout(() => { if (!root.isConnected) replace(main, loading('Loading')) }, 250)
    try {
      if (!match) {
        setTitle('Not found')
        replace(root, h('h1', null, 'Nothing is here'), empty('', `The page has no view at ${location.pathname}.`, h('a', { class: 'button', href: '/' }, 'All runs')))
      } else {
        const view = await loadView(match)
        if (signal.aborted) return
        // The earlier view stays until the new one has something to show, so that nothing flashes.
        new MutationObserver((_, observer) => {
          observer.disconnect()
          if (!signal.aborted && !root.isConnected) replace(main, root)
        }).observe(root, { childList: true })
        await view.mount({ root, params: match.params, query, signal, title: setTitle, announce })
      }
      if (signal.aborted) return
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof OfflineError)) console.warn(error)
      setTitle('Error')
      replace(root, failure(/** @type {Error} */ (error), () => retry(error), 'h1'))
      // Without a connection, the view is shown as soon as the server answers again.
      if (error instanceof OfflineError) poll((signal) => api.get('/api/status', { signal }), () => retry(error), { signal, isOver: () => true })
    } finally {
      clearTimeout(waiting)
    }
    if (!root.isConnected) replace(main, root)
    root.dataset.ready = ''
    scrollTo({ top: scroll, behavior: 'instant' })
    if (!isFirst) focusHeading(main)
    isFirst = false
  })
}

/** The file of a view could not be loaded. Browsers remember that, so that only a new page tries again. */
class ModuleError extends OfflineError {}

/** @param {import('./router.js').Match} match */
async function loadView(match) {
  try {
    return await match.load()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    connection.lost()
    throw new ModuleError()
  }
}

/** @param {unknown} error */
async function retry(error) {
  if (!(error instanceof ModuleError)) { router.go(location.pathname + location.search, { replace: true }); return }
  try { await api.get('/api/status') } catch { return }
  location.reload()
}

/** @param {string} text */
function setTitle(text) {
  document.title = text ? `${text} · Bench Runner` : 'Bench Runner'
}

/**
 * Moves the focus to the heading of a new view, as a page load would, unless the view has set it.
 *
 * @param {HTMLElement} main
 */
function focusHeading(main) {
  if (main.contains(document.activeElement) && document.activeElement !== main) return
  const heading = main.querySelector('h1') ?? main
  heading.setAttribute('tabindex', '-1')
  heading.focus({ preventScroll: true })
}
