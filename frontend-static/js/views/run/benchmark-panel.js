/** The chosen benchmark of a run: items, figures, groups, errors, settings. */

import { h, part, replace } from '../../core/dom.js'
import { withModule } from '../../core/states.js'
import { hasEpisodes } from '../../core/agents.js'
import { isBenchmarkOpen } from '../../core/run-facts.js'
import { tabs } from '../../components/tabs.js'
import { itemsPanel } from './items.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../core/run-facts.js').RunBenchmark} RunBenchmark */

/**
 * @typedef {{source: import('../../core/source.js').RunSource, query: typeof import('../../core/router.js').query, signal: AbortSignal, announce: (text: string) => void,
 *   onSummary: (name: string, summary: Api.SummaryView | null) => void}} PanelOptions `onSummary` gets the sums of the samples when they are loaded
 */

/** @param {PanelOptions} options */
export function benchmarkPanel({ source, query, signal, announce, onSummary }) {
  const element = h('section', { class: 'benchmark-panel no-print', 'aria-labelledby': 'chosen' })
  /** @type {ReturnType<typeof panelOf> | null} */
  let panel = null
  return {
    element,
    /**
     * @param {Run} run
     * @param {string} name
     */
    show(run, name) {
      const b = run.benchmarks.find((entry) => entry.benchmark_name === name)
      if (!b) return
      if (panel?.name !== name) {
        panel?.stop()
        panel = panelOf({ source, query, signal, announce, onSummary, run, b })
        replace(element, panel.element)
      }
      panel.show(run, b)
    },
    /** Loads the sums of the samples again, and tells the items how many have ended. */
    refresh() { void panel?.refresh() },
  }
}

/**
 * @param {PanelOptions & {run: Run, b: RunBenchmark}} options
 */
function panelOf({ source, query, signal: parent, announce, onSummary, run, b: first }) {
  const controller = new AbortController()
  parent.addEventListener('abort', () => controller.abort(), { signal: controller.signal })
  const { signal } = controller
  const name = first.benchmark_name
  let b = first
  /** @type {Api.SummaryView | null} */
  let summary = null
  let summaryKey = ''
  const items = itemsPanel({ source, query, signal, announce, name })
  /** @type {typeof import('./below.js') | null} */
  let below = null
  /** Tabs other than the items: each is drawn while it is chosen. @type {Record<string, ReturnType<typeof part>>} */
  const parts = {
    figures: part(h('div', null), () => [summary, b.metrics, b.score, b.completed_samples, b.cost], () => below?.figuresOf(b, summary)),
    groups: part(h('div', null), () => [b.metrics?.groups, b.metrics?.categories], () => below?.groupsOf(b)),
    errors: part(h('div', null), () => [summary?.error_breakdown, b.error_causes, b.error_message], () => below?.errorsOf(b, summary)),
    settings: part(h('div', null), () => [b.generation, b.options, b.dataset, b.protocol, b.judge, b.prompt_digest, run.limits, run.budget], () => below?.settingsOf(b, run)),
  }
  // Episodes of terminal tasks are read as a grid, unless the address asks for some of them.
  /** @type {ReturnType<typeof import('./episodes.js').episodesPanel> | null} */
  let episodes = null
  const grid = hasEpisodes(name) ? h('div', null) : null
  const usual = grid && !['outcome', 'group', 'q', 'sort'].some((filter) => query.get(filter)) ? 'episodes' : 'items'
  let tab = query.get('tab') ?? usual
  const bar = tabs(`Views of ${name}`, [
    ...(grid ? [{ name: 'episodes', label: 'Episodes', panel: grid }] : []),
    { name: 'items', label: 'Items', panel: items.element }, { name: 'figures', label: 'Figures', panel: parts.figures.element },
    { name: 'groups', label: 'Groups', panel: parts.groups.element }, { name: 'errors', label: 'Errors', panel: parts.errors.element },
    { name: 'settings', label: 'Settings', panel: parts.settings.element },
  ], tab)
  const showTab = () => {
    if (grid && tab === 'episodes') {
      if (episodes) void episodes.show(run, b)
      else void withModule(() => import('./episodes.js'), ({ episodesPanel }) => {
        if (episodes || signal.aborted) return
        episodes = episodesPanel({ source, signal })
        replace(grid, episodes.element)
        showTab()
      })
      return
    }
    if (below) { parts[tab]?.show(null); return }
    if (parts[tab]) void withModule(() => import('./below.js'), (module) => { below = module; showTab() })
  }
  bar.addEventListener('select', (event) => {
    tab = /** @type {CustomEvent} */ (event).detail
    query.set('tab', tab === usual ? null : tab)
    showTab()
  })
  const protocol = h('button', { type: 'button', class: 'button small' }, 'Export protocol (Markdown)')
  protocol.addEventListener('click', () => {
    if (source.live && (run.status === 'succeeded' || run.status === 'failed')) {
      void withModule(() => import('./download.js'), ({ download }) =>
        download(`/api/runs/${run.id}/export`, { format: 'md', benchmark: name }, `benchmark_protocol_${run.id}_${name}.md`, signal))
      return
    }
    // Archives, and runs that the server doesn't export.
    void withModule(() => import('./protocol.js'), ({ saveProtocol }) => saveProtocol({ source, run, b, button: protocol, signal }))
  })
  const element = h('div', null,
    h('div', { class: 'section-head' }, h('h2', { id: 'chosen' }, name), h('div', { class: 'actions' }, protocol)),
    bar)
  return {
    name, element,
    stop: () => controller.abort(),
    /**
     * @param {Run} newRun
     * @param {RunBenchmark} newB
     */
    show(newRun, newB) {
      run = newRun
      b = newB
      showTab()
      items.show(run, b)
    },
    async refresh() {
      const key = `${b.completed_samples} ${b.status} ${run.generation_number}`
      if (key === summaryKey) return
      summaryKey = key
      try {
        const details = (isBenchmarkOpen(b) ? await items.reload() : null) ?? await source.items({ benchmark: name, limit: 1 }, signal)
        summary = details.summary
        showTab()
        onSummary(name, summary)
      } catch (error) {
        summaryKey = ''
        if (!signal.aborted) console.warn(error)
      }
    },
  }
}
