/** The chosen benchmark of a run: items, figures, groups, errors, settings. */

import { h, replace } from '../../core/dom.js'
import { part } from '../../core/patch.js'
import { isBenchmarkOpen } from '../../core/run-facts.js'
import { tabs } from '../../components/tabs.js'
import { errorsOf } from './errors.js'
import { figuresOf } from './figures.js'
import { groupsOf } from './groups.js'
import { itemsPanel } from './items.js'
import { saveProtocol } from './protocol.js'
import { settingsOf } from './settings.js'

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
  const figures = part(h('div', null), () => [summary, b.metrics, b.score, b.completed_samples, b.cost], () => figuresOf(b, summary))
  const groups = part(h('div', null), () => [b.metrics?.groups, b.metrics?.categories], () => groupsOf(b))
  const errors = part(h('div', null), () => [summary?.error_breakdown, b.error_causes, b.error_message], () => errorsOf(b, summary))
  const settings = part(h('div', null), () => [b.generation, b.options, b.dataset, b.protocol, b.judge, b.prompt_digest, run.limits, run.budget], () => settingsOf(b, run))
  const bar = tabs(`Views of ${name}`, [
    { name: 'items', label: 'Items', panel: items.element }, { name: 'figures', label: 'Figures', panel: figures.element },
    { name: 'groups', label: 'Groups', panel: groups.element }, { name: 'errors', label: 'Errors', panel: errors.element },
    { name: 'settings', label: 'Settings', panel: settings.element },
  ], query.get('tab'))
  bar.addEventListener('select', (event) => {
    const tab = /** @type {CustomEvent} */ (event).detail
    query.set('tab', tab === 'items' ? null : tab)
  })
  const protocol = h('button', { type: 'button', class: 'button small' }, 'Export protocol (Markdown)')
  protocol.addEventListener('click', () => void saveProtocol({ source, run, b, button: protocol, signal }))
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
      for (const p of [figures, groups, errors, settings]) p.show(null)
      items.show(run, b)
    },
    async refresh() {
      const key = `${b.completed_samples} ${b.status} ${run.generation_number}`
      if (key === summaryKey) return
      summaryKey = key
      try {
        const details = (isBenchmarkOpen(b) ? await items.reload() : null) ?? await source.items({ benchmark: name, limit: 1 }, signal)
        summary = details.summary
        for (const p of [figures, errors]) p.show(null)
        onSummary(name, summary)
      } catch (error) {
        summaryKey = ''
        if (!signal.aborted) console.warn(error)
      }
    },
  }
}
