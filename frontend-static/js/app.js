/** Entry of the page: routes, frame, and the view of the present address. */

import { router } from './core/router.js'
import { showViews } from './core/view.js'
import { startAnnouncer } from './core/announce.js'
import { startFrame } from './frame.js'

/** View modules by route. A view is loaded when it is first shown. @type {[string, string, import('./core/router.js').Load][]} */
const VIEWS = [
  ['/', 'runs', () => import('./views/runs.js')],
  ['/runs', 'runs', () => import('./views/runs.js')],
  ['/runs/{run}', 'run', () => import('./views/run.js')],
  ['/runs/{run}/items/{benchmark}/{item}', 'item', () => import('./views/item.js')],
  ['/new', 'new-run', () => import('./views/new-run.js')],
  ['/compare', 'compare', () => import('./views/compare.js')],
  ['/benchmarks', 'benchmarks', () => import('./views/benchmarks.js')],
  ['/benchmarks/{benchmark}', 'benchmark', () => import('./views/benchmark.js')],
  ['/leaderboard', 'leaderboard', () => import('./views/leaderboard.js')],
  ['/schedules', 'schedules', () => import('./views/schedules.js')],
  ['/schedules/{schedule}', 'schedule', () => import('./views/schedule.js')],
  ['/ops', 'ops', () => import('./views/ops.js')],
  ['/docs', 'docs', () => import('./views/docs.js')],
  ['/verify', 'verify', () => import('./views/verify.js')],
  ['/verify/run', 'archive-run', () => import('./views/archive-run.js')],
  ['/verify/items/{benchmark}/{item}', 'archive-item', () => import('./views/archive-item.js')],
]

for (const [pattern, name, load] of VIEWS) router.register(pattern, load, name)
startAnnouncer()
showViews(startFrame())
router.start()
