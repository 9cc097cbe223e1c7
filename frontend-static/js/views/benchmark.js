/** One benchmark: its dataset, and for each protocol how it asks, grades and deviates from the authors' program. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { integer } from '../core/format.js'
import { path, query } from '../core/router.js'
import { copyBox } from '../components/copy.js'
import { tabs } from '../components/tabs.js'
import { datasetSection } from './benchmark/dataset.js'
import { protocolPanel } from './benchmark/protocol.js'
import { marks } from './benchmarks.js'
import { categoryLabel } from './new-run/benchmark-picker.js'
import { rich } from './new-run/text.js'

/** @param {import('../app.js').Context} context */
export async function mount({ root, params, signal, title }) {
  const [benchmark] = await Promise.all([
    /** @type {Promise<Api.BenchmarkView>} */ (api.get(`/api/benchmarks/${encodeURIComponent(params.benchmark)}`, { signal })), useStyles('views/benchmarks.css'),
  ])
  const { name, display_name, description, protocols, setup_notes } = benchmark
  title(display_name)
  const encoded = encodeURIComponent(name)
  const panels = protocols.map((protocol) => ({
    name: protocol.name, label: protocol.is_default ? `${protocol.name} (default)` : protocol.name, panel: protocolPanel(protocol),
  }))
  const chooser = panels.length === 1 ? panels[0].panel : tabs('Protocols', panels, query.get('protocol'))
  chooser.addEventListener('select', (/** @type {Event} */ event) => query.set('protocol', /** @type {CustomEvent} */ (event).detail))
  replace(root,
    h('div', { class: 'view-head' },
      h('nav', { class: 'crumbs', 'aria-label': 'Place' }, h('a', { href: '/benchmarks' }, 'Benchmarks')),
      h('h1', null, display_name, ' ', h('code', { class: 'dim' }, name)),
      h('div', { class: 'actions' },
        name === 'terminal_tasks' ? h('a', { class: 'button primary', href: '/tasks' }, 'Tasks') : h('a', { class: 'button primary', href: `/new?benchmarks=${encoded}` }, 'New run'),
        benchmark.code_tasks > 0 && h('a', { class: 'button', href: `${path('benchmarks', name)}/tasks` }, `${integer(benchmark.code_tasks)} tasks`),
        h('a', { class: 'button', href: `/runs?benchmark=${encoded}` }, 'Runs'),
        h('a', { class: 'button', href: `/leaderboard?benchmark=${encoded}` }, 'Leaderboard')),
      h('p', { class: 'sub' }, categoryLabel(benchmark))),
    h('p', { class: 'benchmark-lead' }, rich(description ?? '')),
    h('p', { class: 'benchmark-marks' }, marks(benchmark)),
    setup_notes && h('p', { class: 'note' }, h('strong', null, 'Before the first run: '), rich(setup_notes)),
    datasetSection(benchmark.dataset, integer(benchmark.demo_items)),
    h('section', { 'aria-labelledby': 'protocols' },
      h('div', { class: 'section-head' }, h('h2', { id: 'protocols' }, protocols.length > 1 ? 'Protocols' : 'Protocol')), chooser),
    h('section', { 'aria-labelledby': 'command' },
      h('div', { class: 'section-head' }, h('h2', { id: 'command' }, 'The same as a command')), copyBox(`bench benchmarks ${name}`)))
}
