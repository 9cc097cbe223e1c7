/** Filters of the list of runs, each an entry in the address. */

import { api } from '../../core/api.js'
import { field, h } from '../../core/dom.js'

/** Names of the filters, as the API calls them. */
export const FILTERS = ['status', 'model', 'benchmark', 'mine', 'tag', 'task', 'search']

/** @type {[string, string][]} */
const STATUSES = [
  ['', 'All'], ['queued,running', 'Open'], ['succeeded', 'Succeeded'], ['failed', 'Failed'], ['canceled', 'Canceled'], ['interrupted', 'Interrupted'],
]

/** Milliseconds without a key press after which a typed filter is used. */
const TYPING_MS = 300

/**
 * Makes the form.
 *
 * @param {{query: typeof import('../../core/router.js').query, signal: AbortSignal, changed: () => void}} options
 * @returns {HTMLFormElement & {clear: () => void}}
 */
export function filterForm({ query, signal, changed }) {
  const search = h('input', { type: 'search', name: 'search', placeholder: 'Model, name, tag or id', spellcheck: 'false' })
  const model = h('input', { type: 'search', name: 'model', placeholder: 'Part of it', spellcheck: 'false' })
  const status = h('select', { name: 'status' }, STATUSES.map(([value, text]) => h('option', { value }, text)))
  const benchmark = h('select', { name: 'benchmark' }, h('option', { value: '' }, 'All'))
  const mine = h('input', { type: 'checkbox', name: 'mine', value: 'true' })
  const tag = h('input', { type: 'search', name: 'tag', placeholder: 'Exact tag', spellcheck: 'false' })
  const task = h('input', { type: 'search', name: 'task', placeholder: 'Id of a task', inputmode: 'numeric', pattern: '[0-9]*', spellcheck: 'false' })
  const rest = [field('Model', model), field('Status', status), field('Benchmark', benchmark), field('Tag', tag),
    // Pages of tasks link to their runs.
    ...(query.get('task') ? [field('Task', task)] : []),
    h('label', { class: 'check' }, mine, ' Only mine')]
  const more = h('button', { type: 'button', class: 'button more', 'aria-expanded': 'false' }, 'Filters')
  more.addEventListener('click', () => more.setAttribute('aria-expanded', String(form.classList.toggle('all'))))
  const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter runs' },
    h('div', { class: 'grow' }, field('Search', search)), more,
    rest.map((element) => h('div', { class: 'rest' }, element)))
  const read = () => {
    search.value = query.get('search') ?? ''
    model.value = query.get('model') ?? ''
    tag.value = query.get('tag') ?? ''
    task.value = query.get('task') ?? ''
    keep(status, query.get('status') ?? '')
    keep(benchmark, query.get('benchmark') ?? '')
    mine.checked = query.get('mine') === 'true'
  }
  const write = () => {
    query.set({ search: search.value.trim(), model: model.value.trim(), tag: tag.value.trim(), task: task.value.trim(), status: status.value, benchmark: benchmark.value, mine: mine.checked ? 'true' : null })
    changed()
  }
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  form.addEventListener('input', (event) => {
    clearTimeout(timer)
    timer = setTimeout(write, event.target instanceof HTMLInputElement && event.target.type === 'search' ? TYPING_MS : 0)
  })
  form.addEventListener('submit', (event) => { event.preventDefault(); clearTimeout(timer); write() })
  signal.addEventListener('abort', () => clearTimeout(timer))
  read()
  if (FILTERS.some((name) => name !== 'search' && query.get(name))) more.click()
  benchmark.addEventListener('focus', () => void loadBenchmarks(benchmark, signal), { once: true })
  if (query.get('benchmark')) void loadBenchmarks(benchmark, signal)
  return Object.assign(form, {
    clear: () => { query.set(Object.fromEntries(FILTERS.map((name) => [name, null]))); read(); changed() },
  })
}

/**
 * Selects a value, also one that the list doesn't have.
 *
 * @param {HTMLSelectElement} select
 * @param {string} value
 */
function keep(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.append(h('option', { value }, value))
  select.value = value
}

/**
 * Fills the list of benchmarks when it is first needed.
 *
 * @param {HTMLSelectElement} select
 * @param {AbortSignal} signal
 */
async function loadBenchmarks(select, signal) {
  try {
    const { benchmarks } = /** @type {Api.BenchmarksView} */ (await api.get('/api/benchmarks', { query: { texts: false }, signal }))
    const value = select.value
    for (const { name, display_name: text } of benchmarks) {
      const existing = [...select.options].find((option) => option.value === name)
      if (existing) existing.textContent = text
      else select.append(h('option', { value: name }, text))
    }
    select.value = value
  } catch { /* without the list, the filter in the address still works */ }
}
