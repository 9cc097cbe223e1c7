/** The HTTP API, from the server's own description, with commands for the reader's own run. */

import { api } from '../core/api.js'
import { h, replace, setText, useStyles } from '../core/dom.js'
import { plural } from '../core/format.js'
import { query } from '../core/router.js'
import { rich } from './new-run/text.js'
import { loadOwn } from './docs/own.js'
import { guide } from './docs/guide.js'
import { operationsOf, OperationView } from './docs/operation.js'

/** Headings of groups, in the order of the page. */
const GROUPS = { runs: 'Runs', catalog: 'Models and benchmarks', schedules: 'Schedules', exports: 'Archives and keys',
  operations: 'Operations', access: 'Access list', tasks: 'Terminal tasks', server: 'Server' }

/** @param {import('../app.js').Context} context */
export async function mount({ root, signal, title, announce }) {
  title('API')
  const [document_, own] = await Promise.all([
    /** @type {Promise<import('./docs/operation.js').Document>} */ (api.get('/openapi.json', { signal })), loadOwn(signal), useStyles('views/docs.css'),
  ])
  const views = operationsOf(document_).map((operation) => new OperationView(operation, document_.components.schemas, own))
  const groups = groupsOf(views)
  const steps = h('div', null)
  const run = h('input', { id: 'docs-run', class: 'mono', spellcheck: 'false', autocomplete: 'off', placeholder: 'id of a run', '.value': own.run })
  const search = h('input', { id: 'docs-search', type: 'search', autocomplete: 'off', '.value': query.get('q') ?? '',
    placeholder: 'such as export, judge or /events' })
  const count = h('p', { class: 'sub', 'aria-live': 'polite' })
  const filter = () => {
    const text = search.value.trim().toLowerCase()
    const shown = views.filter((view) => view.filter(text)).length
    for (const { element, members } of groups) element.hidden = members.every((view) => view.element.hidden)
    setText(count, text ? `${plural(shown, 'request')} of ${views.length} match` : plural(views.length, 'request'))
  }
  const refresh = () => {
    own.run = run.value.trim()
    replace(steps, guide(own))
    for (const view of views) view.refresh()
  }
  run.addEventListener('input', refresh)
  search.addEventListener('input', () => { query.set('q', search.value.trim()); filter() })
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'API'),
      h('div', { class: 'actions' }, h('a', { class: 'button', href: '/openapi.json', download: 'openapi.json' }, 'OpenAPI document')), count),
    h('p', { class: 'docs-lead' }, rich((document_.info.description ?? '').replaceAll('\n', ' '))),
    h('div', { class: 'filters' },
      h('div', { class: 'field grow' }, h('label', { for: 'docs-search' }, 'Search requests'), search),
      h('div', { class: 'field grow' }, h('label', { for: 'docs-run' }, 'Your run, for the commands'), run)),
    h('div', { class: 'docs-body' },
      h('nav', { class: 'docs-nav', 'aria-label': 'Groups of requests' }, h('a', { href: '#first-steps' }, 'First steps'),
        groups.map(({ name, heading }) => h('a', { href: `#${name}` }, heading))),
      h('div', { class: 'docs-groups' },
        h('section', { id: 'first-steps', 'aria-label': 'First steps' }, h('h2', null, 'First steps'), steps), groups.map(({ element }) => element))))
  refresh()
  filter()
  const follow = () => {
    const view = views.find((each) => `#${each.id}` === location.hash)
    if (view) view.open()
    document.getElementById(location.hash.slice(1))?.scrollIntoView()
    if (view) announce(view.operation.summary)
  }
  addEventListener('hashchange', follow, { signal })
  if (location.hash) requestAnimationFrame(follow)
}

/** @param {OperationView[]} views */
function groupsOf(views) {
  const names = [...new Set([...Object.keys(GROUPS), ...views.map(({ operation }) => operation.tag)])]
  return names.map((name) => {
    const members = views.filter(({ operation }) => operation.tag === name)
    const heading = /** @type {Record<string, string>} */ (GROUPS)[name] ?? name
    return { name, heading, members,
      element: h('section', { id: name, 'aria-label': heading }, h('h2', null, heading), members.map(({ element }) => element)) }
  }).filter(({ members }) => members.length > 0)
}
