/**
 * Fetches what the first view needs before the page's modules are there to ask for it: the view's files, which browsers would
 * find level by level, and its data. A plain script, so that it runs as soon as it arrives.
 */

/**
 * Modules and stylesheets of views by route, without those of every view. Written by
 * `BENCH_WRITE_PRELOADS=1 node --test tests/page/it/loading.test.js`, which also compares it with the imports.
 *
 * @type {Record<string, string[]>}
 */
const FILES = {
  '/runs': [
    'css/views/runs.css',
    'js/views/runs.js',
    'js/core/run-facts.js',
    'js/core/agents.js',
    'js/core/outcomes.js',
    'js/core/session.js',
    'js/views/runs/filters.js',
    'js/views/runs/table.js',
    'js/core/messages.js',
    'js/core/visibility.js',
    'js/components/figures.js',
    'js/components/menu.js',
    'js/views/run/actions.js',
  ],
  '/runs/{run}': [
    'css/views/run.css',
    'js/views/run.js',
    'js/core/run-facts.js',
    'js/core/agents.js',
    'js/core/outcomes.js',
    'js/core/session.js',
    'js/core/source.js',
    'js/views/run/benchmark-panel.js',
    'js/components/tabs.js',
    'js/views/run/items.js',
    'js/components/table.js',
    'js/components/table-lines.js',
    'js/views/run/item-list.js',
    'js/views/run/item-filters.js',
    'js/views/run/benchmarks-table.js',
    'js/components/figures.js',
    'js/views/run/head.js',
    'js/core/visibility.js',
    'js/components/account.js',
    'js/components/menu.js',
    'js/views/run/actions.js',
    'js/views/run/notices.js',
    'js/core/messages.js',
    'js/views/run/score.js',
  ],
  '/runs/{run}/items/{benchmark}/{item}': [
    'css/views/item.css',
    'css/components/answer.css',
    'js/views/item.js',
    'js/core/messages.js',
    'js/core/outcomes.js',
    'js/core/agents.js',
    'js/core/run-facts.js',
    'js/core/source.js',
    'js/views/item/facts.js',
    'js/views/item/neighbors.js',
    'js/views/run/item-list.js',
    'js/views/item/texts.js',
    'js/components/copy.js',
    'js/text/answer.js',
    'js/text/blocks.js',
    'js/text/highlight.js',
    'js/text/safe.js',
    'js/text/inline.js',
    'js/text/math.js',
    'js/text/mathml.js',
    'js/text/tex-symbols.js',
  ],
  '/new': [
    'css/views/new-run.css',
    'js/views/new-run.js',
    'js/core/agents.js',
    'js/views/new-run/model-picker.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/estimate.js',
    'js/views/new-run/order.js',
    'js/views/new-run/state.js',
    'js/views/new-run/order-form.js',
    'js/views/new-run/benchmark-picker.js',
    'js/views/new-run/benchmark-settings.js',
    'js/views/new-run/estimate-text.js',
    'js/views/new-run/text.js',
    'js/views/new-run/items-fields.js',
    'js/views/new-run/judge-fields.js',
    'js/views/new-run/key-fields.js',
    'js/core/session.js',
    'js/views/new-run/problems.js',
    'js/views/new-run/summary.js',
    'js/views/new-run/notices.js',
  ],
  '/compare': [
    'css/views/compare.css',
    'css/views/run.css',
    'css/components/chart.css',
    'css/components/answer.css',
    'js/views/compare.js',
    'js/core/agents.js',
    'js/core/source.js',
    'js/core/run-facts.js',
    'js/core/outcomes.js',
    'js/components/tabs.js',
    'js/views/compare/agreement.js',
    'js/views/compare/load.js',
    'js/views/compare/statistics.js',
    'js/views/compare/charts.js',
    'js/charts/interval-chart.js',
    'js/charts/chart.js',
    'js/charts/parts.js',
    'js/charts/scale.js',
    'js/charts/scatter-chart.js',
    'js/core/metrics.js',
    'js/views/run/groups.js',
    'js/components/figures.js',
    'js/views/compare/chooser.js',
    'js/views/compare/comparability.js',
    'js/views/compare/disagreements.js',
    'js/components/table.js',
    'js/components/table-lines.js',
    'js/views/compare/side-by-side.js',
    'js/core/messages.js',
    'js/text/answer.js',
    'js/text/blocks.js',
    'js/text/highlight.js',
    'js/text/safe.js',
    'js/text/inline.js',
    'js/text/math.js',
    'js/text/mathml.js',
    'js/text/tex-symbols.js',
    'js/views/compare/head.js',
    'js/views/compare/pairs.js',
  ],
  '/benchmarks': [
    'css/views/benchmarks.css',
    'js/views/benchmarks.js',
    'js/core/agents.js',
    'js/views/new-run/benchmark-picker.js',
    'js/views/new-run/benchmark-settings.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/order.js',
    'js/views/new-run/estimate-text.js',
    'js/views/new-run/text.js',
  ],
  '/benchmarks/{benchmark}': [
    'css/views/benchmarks.css',
    'js/views/benchmark.js',
    'js/components/copy.js',
    'js/components/tabs.js',
    'js/views/benchmark/dataset.js',
    'js/views/benchmark/facts.js',
    'js/views/benchmark/protocol.js',
    'js/core/metrics.js',
    'js/core/run-facts.js',
    'js/core/agents.js',
    'js/core/outcomes.js',
    'js/views/new-run/text.js',
    'js/views/benchmarks.js',
    'js/views/new-run/benchmark-picker.js',
    'js/views/new-run/benchmark-settings.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/order.js',
    'js/views/new-run/estimate-text.js',
  ],
  '/benchmarks/{benchmark}/tasks': [
    'css/views/code-tasks.css',
    'js/views/code-tasks.js',
    'js/components/copy.js',
    'js/views/code-tasks/list.js',
  ],
  '/benchmarks/{benchmark}/tasks/{task}': [
    'css/views/code-tasks.css',
    'css/components/answer.css',
    'js/views/code-task.js',
    'js/components/copy.js',
    'js/views/new-run/commands.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/order.js',
    'js/core/agents.js',
    'js/views/new-run/state.js',
    'js/text/answer.js',
    'js/text/blocks.js',
    'js/text/highlight.js',
    'js/text/safe.js',
    'js/text/inline.js',
    'js/text/math.js',
    'js/text/mathml.js',
    'js/text/tex-symbols.js',
    'js/views/benchmark/facts.js',
    'js/views/code-tasks/list.js',
  ],
  '/leaderboard': [
    'css/views/leaderboard.css',
    'js/views/leaderboard.js',
    'js/components/copy.js',
    'js/views/leaderboard/board.js',
    'js/components/figures.js',
    'js/core/outcomes.js',
    'js/views/new-run/problems.js',
    'js/core/session.js',
  ],
  '/tasks': [
    'css/views/tasks.css',
    'css/views/new-run.css',
    'js/views/tasks.js',
    'js/components/mine-filter.js',
    'js/core/session.js',
    'js/views/tasks/actions.js',
    'js/components/dialog.js',
    'js/views/tasks/facts.js',
    'js/core/metrics.js',
    'js/components/figures.js',
    'js/core/outcomes.js',
    'js/views/tasks/order-form.js',
    'js/core/agents.js',
    'js/views/new-run/model-picker.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/state.js',
    'js/views/new-run/order.js',
    'js/views/tasks/custom-agent.js',
    'js/views/tasks/refusal.js',
    'js/views/tasks/send.js',
    'js/views/tasks/variables.js',
    'js/views/tasks/upload.js',
  ],
  '/tasks/{task}': [
    'css/views/tasks.css',
    'css/views/new-run.css',
    'css/components/episodes.css',
    'js/views/task.js',
    'js/core/messages.js',
    'js/core/outcomes.js',
    'js/core/agents.js',
    'js/core/run-facts.js',
    'js/core/source.js',
    'js/views/run/episodes.js',
    'js/components/episode-grid.js',
    'js/views/tasks/actions.js',
    'js/components/dialog.js',
    'js/views/tasks/errors.js',
    'js/views/tasks/facts.js',
    'js/core/metrics.js',
    'js/components/figures.js',
    'js/views/tasks/order-form.js',
    'js/views/new-run/model-picker.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/state.js',
    'js/views/new-run/order.js',
    'js/views/tasks/custom-agent.js',
    'js/views/tasks/refusal.js',
    'js/views/tasks/send.js',
    'js/views/tasks/variables.js',
  ],
  '/schedules': [
    'css/views/schedules.css',
    'js/views/schedules.js',
    'js/core/agents.js',
    'js/core/run-facts.js',
    'js/core/outcomes.js',
    'js/components/mine-filter.js',
    'js/core/session.js',
    'js/views/schedules/firing.js',
    'js/views/schedules/times.js',
  ],
  '/schedules/{schedule}': [
    'css/views/schedules.css',
    'css/views/benchmarks.css',
    'css/views/new-run.css',
    'css/components/chart.css',
    'js/views/schedule.js',
    'js/core/run-facts.js',
    'js/core/agents.js',
    'js/core/outcomes.js',
    'js/components/copy.js',
    'js/components/dialog.js',
    'js/views/benchmark/facts.js',
    'js/views/schedule/form.js',
    'js/views/new-run/control.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/commands.js',
    'js/views/new-run/order.js',
    'js/views/new-run/state.js',
    'js/views/new-run/estimate.js',
    'js/views/new-run/model-picker.js',
    'js/views/new-run/order-form.js',
    'js/views/new-run/benchmark-picker.js',
    'js/views/new-run/benchmark-settings.js',
    'js/views/new-run/estimate-text.js',
    'js/views/new-run/text.js',
    'js/views/new-run/items-fields.js',
    'js/views/new-run/judge-fields.js',
    'js/views/new-run/key-fields.js',
    'js/core/session.js',
    'js/views/new-run/problems.js',
    'js/views/new-run/summary.js',
    'js/views/schedules/times.js',
    'js/views/schedule/order.js',
    'js/views/tasks/variables.js',
    'js/views/schedule/task-fields.js',
    'js/views/tasks/custom-agent.js',
    'js/views/tasks/actions.js',
    'js/views/tasks/refusal.js',
    'js/views/tasks/send.js',
    'js/views/schedule/history.js',
    'js/core/messages.js',
    'js/views/schedules/firing.js',
    'js/views/schedule/chart.js',
    'js/charts/history-chart.js',
    'js/charts/chart.js',
    'js/charts/parts.js',
    'js/charts/scale.js',
    'js/views/schedule/settings.js',
  ],
  '/ops': [
    'css/views/ops.css',
    'css/views/schedules.css',
    'css/components/chart.css',
    'js/views/ops.js',
    'js/components/copy.js',
    'js/views/ops/attention.js',
    'js/views/ops/charts.js',
    'js/charts/time-chart.js',
    'js/charts/chart.js',
    'js/charts/parts.js',
    'js/charts/scale.js',
    'js/views/ops/host.js',
    'js/views/ops/queues.js',
    'js/views/ops/runs.js',
    'js/core/outcomes.js',
    'js/core/agents.js',
    'js/views/ops/tiles.js',
    'js/views/ops/workers.js',
  ],
  '/docs': [
    'css/views/docs.css',
    'js/views/docs.js',
    'js/views/new-run/text.js',
    'js/views/docs/own.js',
    'js/views/docs/guide.js',
    'js/components/copy.js',
    'js/views/new-run/commands.js',
    'js/views/new-run/fields.js',
    'js/views/new-run/order.js',
    'js/core/agents.js',
    'js/views/new-run/state.js',
    'js/views/docs/examples.js',
    'js/views/docs/operation.js',
    'js/views/docs/command.js',
    'js/views/docs/schema.js',
  ],
  '/auth/error': [
    'js/views/auth-error.js',
    'js/core/session.js',
  ],
  '/verify': [
    'css/views/verify.css',
    'css/views/run.css',
    'css/views/item.css',
    'css/views/compare.css',
    'js/views/verify.js',
    'js/archive/keys.js',
    'js/archive/base64.js',
    'js/archive/source.js',
    'js/archive/run-view.js',
    'js/core/outcomes.js',
    'js/archive/verify.js',
    'js/archive/dates.js',
    'js/archive/reasons.js',
    'js/archive/json.js',
    'js/archive/results.js',
    'js/archive/scan.js',
    'js/archive/zip.js',
    'js/archive/inflate.js',
    'js/archive/zip-records.js',
    'js/views/verify/archives.js',
    'js/core/run-facts.js',
    'js/core/agents.js',
    'js/views/verify/drop.js',
    'js/views/verify/keys.js',
    'js/views/verify/server-check.js',
    'js/components/copy.js',
    'js/views/verify/verdict.js',
    'js/components/figures.js',
    'js/archive/differences.js',
    'js/archive/parts.js',
  ],
}

/** Data that a view asks for first, by route. @type {Record<string, (path: string) => string>} */
const DATA = {
  '/': () => '/api/runs?limit=50',
  '/runs': () => '/api/runs?limit=50',
  '/runs/{run}': (path) => `/api${path}`,
}

/** Milliseconds after which data that no view has asked for are old. */
const FRESH_MS = 10_000

/** Used by the page's modules. */
const pageStart = {
  /** Files that were fetched. @type {Set<string>} */
  fetched: new Set(),
  /** Answers on their way, by address. @type {Map<string, Promise<Response>>} */
  answers: new Map(),

  /**
   * Fetches the files of a view, without running them.
   *
   * @param {string} route as in `FILES`
   */
  preload(route) {
    for (const file of FILES[route] ?? []) {
      if (this.fetched.has(file)) continue
      this.fetched.add(file)
      const link = document.createElement('link')
      if (file.endsWith('.css')) { link.rel = 'preload'; link.as = 'style' } else link.rel = 'modulepreload'
      link.href = `/page/${file}`
      document.head.append(link)
    }
  },

  /**
   * Sends the first request of a view.
   *
   * @param {string} route as in `DATA`
   */
  ask(route) {
    const address = DATA[route]?.(location.pathname)
    if (!address || location.search) return
    const headers = new Headers({ accept: 'application/json' })
    const [key, secret] = ['bench-key', 'bench-admin-secret'].map((name) => localStorage.getItem(name))
    if (key) headers.set('authorization', `Bearer ${key}`)
    if (secret) headers.set('x-admin-secret', secret)
    const answer = fetch(address, { headers, credentials: 'same-origin' })
    answer.catch(() => {})
    this.answers.set(address, answer)
  },

  /**
   * Returns the answer to a request that was sent here, once; undefined if there is none.
   *
   * @param {string} address
   */
  take(address) {
    const answer = performance.now() < FRESH_MS ? this.answers.get(address) : undefined
    this.answers.delete(address)
    return answer
  },
}

for (const route of new Set([...Object.keys(DATA), ...Object.keys(FILES)])) {
  if (!new RegExp(`^${route.replaceAll(/{\w+}/g, '[^/]+')}$`).test(location.pathname)) continue
  pageStart.ask(route)
  pageStart.preload(route)
}

/** Entry of the session's storage with the number of times that the page was loaded again by itself. Removed by `app.js`. */
const RELOADS = 'bench-reloads'
/** Milliseconds until the page loads itself again, by the number of times that it has done so. */
const RELOAD_AFTER_MS = [1000, 5000, 15_000]

// Without one of its modules the page stays empty, and no module is there to say so.
addEventListener('error', ({ target }) => {
  if (!(target instanceof HTMLScriptElement)) return
  const reloads = Number(sessionStorage.getItem(RELOADS) ?? 0)
  const reload = () => {
    sessionStorage.setItem(RELOADS, String(reloads + 1))
    location.reload()
  }
  const main = document.createElement('main')
  const text = document.createElement('p')
  const again = document.createElement('button')
  text.setAttribute('role', 'alert')
  text.textContent = `A file of this page couldn’t be loaded, because the connection was interrupted or the server is gone.${reloads < RELOAD_AFTER_MS.length ? ' The page tries again in a few seconds.' : ''}`
  again.className = 'button'
  again.textContent = 'Load the page again'
  again.addEventListener('click', () => location.reload())
  main.append(text, again)
  document.body.replaceChildren(main)
  if (reloads < RELOAD_AFTER_MS.length) setTimeout(reload, RELOAD_AFTER_MS[reloads])
}, true)
