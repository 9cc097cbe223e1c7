/** All benchmarks by category: what they measure, on how many items, under which protocol and license. */

import { api } from '../core/api.js'
import { h, replace, setText, useStyles } from '../core/dom.js'
import { integer, plural } from '../core/format.js'
import { path, query } from '../core/router.js'
import { hasConversations } from '../core/agents.js'
import { empty } from '../core/states.js'
import { byCategory } from './new-run/benchmark-picker.js'
import { rich } from './new-run/text.js'

/** @param {import('../app.js').Context} context */
export async function mount({ root, signal, title }) {
  title('Benchmarks')
  const [{ benchmarks }] = await Promise.all([
    /** @type {Promise<Api.BenchmarksView>} */ (api.get('/api/benchmarks', { signal })), useStyles('views/benchmarks.css'),
  ])
  const list = h('div', { class: 'benchmark-list' })
  const count = h('p', { class: 'sub', 'aria-live': 'polite' })
  const show = (/** @type {string} */ text) => {
    const found = benchmarks.filter((each) => matches(each, text))
    setText(count, text ? `${plural(found.length, 'benchmark')} of ${integer(benchmarks.length)} match` : plural(found.length, 'benchmark'))
    replace(list, found.length > 0 ? [...byCategory(found)].map(([category, members]) => section(category, members))
      : empty('No benchmark matches', 'The search looks at names, descriptions, protocols and datasets.'))
  }
  const search = h('input', {
    type: 'search', id: 'benchmark-search', '.value': query.get('q') ?? '', autocomplete: 'off',
    on: { input: (/** @type {Event & {target: HTMLInputElement}} */ event) => { query.set('q', event.target.value.trim()); show(event.target.value.trim()) } },
  })
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Benchmarks'), count),
    h('div', { class: 'filters' }, h('div', { class: 'field grow benchmark-search' }, h('label', { for: 'benchmark-search' }, 'Search'), search)),
    list)
  show(search.value)
}

/**
 * @param {Api.BenchmarkView} benchmark
 * @param {string} text
 */
function matches(benchmark, text) {
  const { name, display_name, description, protocol, dataset } = benchmark
  return [name, display_name, description, protocol, dataset?.id, dataset?.licence].join(' ').toLowerCase().includes(text.toLowerCase())
}

/**
 * @param {string} category
 * @param {Api.BenchmarkView[]} members
 */
function section(category, members) {
  return h('section', { 'aria-label': category },
    h('div', { class: 'section-head' }, h('h2', null, category, ' ', h('span', { class: 'dim' }, integer(members.length)))),
    h('table', { class: 'benchmark-table' },
      h('thead', null, h('tr', null, ['Benchmark', 'Items', 'Protocol', 'License', 'Run'].map((name) =>
        h('th', { scope: 'col', class: name === 'Items' ? 'number' : null },
          name === 'Run' ? h('span', { class: 'visually-hidden' }, name) : name)))),
      h('tbody', null, members.map(row))))
}

/** @param {Api.BenchmarkView} benchmark */
function row(benchmark) {
  const { name, display_name, description, protocols = [], dataset, total_items, samples_per_item } = benchmark
  return h('tr', null,
    h('th', { scope: 'row' }, h('a', { href: path('benchmarks', name) }, display_name), ' ', h('code', null, name),
      h('p', { class: 'benchmark-about' }, rich(description ?? '')),
      h('p', { class: 'benchmark-marks' }, marks(benchmark))),
    h('td', { class: 'number', dataset: { label: 'Items' } }, total_items > 0 ? integer(total_items) : 'unknown',
      samples_per_item > 1 && h('small', null, `${samples_per_item} samples each`)),
    h('td', { dataset: { label: 'Protocol' } }, benchmark.protocol,
      h('small', null, [protocols.length > 1 && `${plural(protocols.length - 1, 'other protocol')}`,
        plural((benchmark.deviations ?? []).length, 'known deviation')].filter(Boolean).join(' · '))),
    h('td', { dataset: { label: 'License' } }, dataset?.licence ?? 'unknown'),
    h('td', null, h('a', { class: 'button small', href: `/new?benchmarks=${encodeURIComponent(name)}`,
      'aria-label': `New run of ${display_name}` }, 'New run')))
}

/**
 * True if official texts exist and the next run loads them.
 *
 * @param {Api.ProtocolView | undefined} protocol
 */
export function isPending(protocol) {
  return (protocol?.official_texts ?? []).some((text) => !text.stored)
}

/** @param {Api.BenchmarkView} benchmark */
export function marks(benchmark) {
  const found = []
  if (benchmark.dataset?.gated) found.push('gated dataset')
  if (benchmark.judged) found.push('needs a judge')
  if (hasConversations(benchmark.name)) found.push('needs a user model')
  if (benchmark.protocols?.[0]?.sandbox) found.push('runs code')
  if (benchmark.prompt_source === 'own') found.push(isPending(benchmark.protocols?.[0]) ? 'official prompt not loaded yet' : 'prompt: own')
  return found.map((text) => h('span', { class: text === 'prompt: own' ? 'caution' : 'tag' }, text))
}
