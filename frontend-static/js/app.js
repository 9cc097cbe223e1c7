/** Entry of the page: routes, frame, and the view of the present address. */

import { query, router } from './core/router.js'
import { announce, empty, failure, loading, startAnnouncer } from './core/states.js'
import { connection, OfflineError, poll } from './core/connection.js'
import { api } from './core/api.js'
import { h, replace, useStyles } from './core/dom.js'
import { startFrame } from './frame.js'

/** Runs on the first page of the list. */
const RUNS = 50

/** View modules by route. A view is loaded when it is first shown. @type {[string, string, import('./core/router.js').Load][]} */
const VIEWS = [
  ['/', 'runs', async () => ({ mount: mountHome })],
  ['/runs', 'runs', () => import('./views/runs.js')],
  ['/runs/{run}', 'run', () => import('./views/run.js')],
  ['/runs/{run}/items/{benchmark}/{item}', 'item', () => import('./views/item.js')],
  ['/new', 'new-run', () => import('./views/new-run.js')],
  ['/compare', 'compare', () => import('./views/compare.js')],
  ['/benchmarks', 'benchmarks', () => import('./views/benchmarks.js')],
  ['/benchmarks/{benchmark}', 'benchmark', () => import('./views/benchmark.js')],
  ['/benchmarks/{benchmark}/tasks', 'code-tasks', () => import('./views/code-tasks.js')],
  ['/benchmarks/{benchmark}/tasks/{task}', 'code-task', () => import('./views/code-task.js')],
  ['/leaderboard', 'leaderboard', () => import('./views/leaderboard.js')],
  ['/tasks', 'tasks', () => import('./views/tasks.js')],
  ['/tasks/{task}', 'task', () => import('./views/task.js')],
  ['/schedules', 'schedules', () => import('./views/schedules.js')],
  ['/schedules/{schedule}', 'schedule', () => import('./views/schedule.js')],
  ['/ops', 'ops', () => import('./views/ops.js')],
  ['/docs', 'docs', () => import('./views/docs.js')],
  ['/auth/error', 'auth-error', () => import('./views/auth-error.js')],
  ['/verify', 'verify', () => import('./views/verify.js')],
  ['/verify/run', 'archive-run', () => import('./views/archive-run.js')],
  ['/verify/compare', 'archive-compare', () => import('./views/archive-compare.js')],
  ['/verify/items/{benchmark}/{item}', 'archive-item', () => import('./views/archive-item.js')],
]

/**
 * @typedef {object} Context What a view gets.
 * @property {HTMLElement} root element to fill
 * @property {Record<string, string>} params parameters of the path
 * @property {typeof query} query state in the address
 * @property {AbortSignal} signal aborts when the reader leaves; everything that the view started ends with it
 * @property {(text: string) => void} title sets the title of the window
 * @property {(text: string) => void} announce tells screen readers of a change
 * @property {import('./core/source.js').RunSource} [source] source of a run, if the view shows one that isn't on the server
 * @property {Api.RunsView | null} [runs] newest runs, if they are loaded already
 */

/**
 * Shows the view of the present address in `main` whenever the reader navigates.
 *
 * @param {HTMLElement} main
 */
function showViews(main) {
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
      setTitle(/** @type {{status?: number}} */ (error).status === 404 ? 'Not found' : 'Error')
      replace(root, failure(/** @type {Error} */ (error), () => retry(error), 'h1'))
      // Without a connection, the view is shown as soon as the server answers again.
      if (error instanceof OfflineError) poll((signal) => api.get('/api/status', { signal }), () => retry(error), { signal, isOver: () => true })
    } finally {
      clearTimeout(waiting)
    }
    if (!root.isConnected) replace(main, root)
    root.dataset.ready = ''
    // A new page is at its top already, and scrolling would lay it out one more time.
    if (!isFirst || scroll > 0) scrollTo({ top: scroll, behavior: 'instant' })
    if (!isFirst) focusHeading(main)
    isFirst = false
  })
}

/** The file of a view could not be loaded. Browsers remember that, so that only a new page tries again. */
class ModuleError extends OfflineError {}

/** @param {import('./core/router.js').Match} match */
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

/**
 * Shows the first view: the offer of a first run on an empty system, the list of runs on others. Each loads only what it shows.
 *
 * @param {Context} context
 */
async function mountHome(context) {
  const { root, signal, title } = context
  const first = location.search ? null : await firstRuns(signal)
  if (signal.aborted) return
  if (first?.total === 0) {
    title('Runs')
    const [{ showFirstVisit }] = await Promise.all([import('./views/new-run/first-visit.js'), useStyles('views/new-run.css')])
    if (!signal.aborted) await showFirstVisit(root, { signal })
    return
  }
  pageStart.preload('/runs')
  const view = await import('./views/runs.js')
  if (!signal.aborted) await view.mount({ ...context, runs: first })
}

/**
 * Loads the newest runs. An error counts as none known: the list of runs shows it, and tries again.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<Api.RunsView | null>}
 */
async function firstRuns(signal) {
  try {
    return await api.get('/api/runs', { query: { limit: RUNS }, signal })
  } catch {
    return null
  }
}

for (const [pattern, name, load] of VIEWS) router.register(pattern, load, name)
// Loads the view while the frame is built. An error is shown in the view's place, which loads it again.
router.match(location.pathname)?.load().catch(() => {})
sessionStorage.removeItem('bench-reloads')
startAnnouncer()
showViews(startFrame())
router.start()
