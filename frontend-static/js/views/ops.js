/** State of the system: what waits, who works, where the tokens go, and what needs attention. */

import { api, curl } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { timeOfDay } from '../core/format.js'
import { poll } from '../core/connection.js'
import { query } from '../core/router.js'
import { copyBox } from '../components/copy.js'
import { attention } from './ops/attention.js'
import { hostChart, loadChart } from './ops/charts.js'
import { hostSection } from './ops/host.js'
import { queueTable, unreadableTable } from './ops/queues.js'
import { runLists } from './ops/runs.js'
import { tiles } from './ops/tiles.js'
import { sandboxTable, workerTable } from './ops/workers.js'

/** Lengths of the time series in hours. */
const HOURS = [1, 6, 12, 24]
const HOURS_DEFAULT = 12
/** Milliseconds between two looks. */
const INTERVAL = 15_000

/** @param {import('../app.js').Context} context */
export async function mount({ root, signal, title }) {
  title('Ops')
  const asked = Number(query.get('hours'))
  let hours = HOURS.includes(asked) ? asked : HOURS_DEFAULT
  const load = () => loadAll(hours, signal)
  const [first] = await Promise.all([load(), useStyles('views/ops.css', 'views/schedules.css')])
  const updated = h('p', { class: 'sub' })
  const body = h('div', { class: 'ops' })
  const select = h('select', { id: 'ops-hours' },
    HOURS.map((n) => h('option', { value: n, selected: n === hours }, n === 1 ? 'Last hour' : `Last ${n} hours`)))
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Operations'),
      h('div', { class: 'actions' }, h('label', { for: 'ops-hours', class: 'visually-hidden' }, 'Time shown in charts'), select), updated),
    body,
    h('details', { class: 'ops-commands' }, h('summary', null, 'The same as a command'),
      copyBox(`bench ops --server ${location.origin}`), copyBox(curl('GET', `/api/ops/overview?minutes=${hours * 60}`))))
  const sections = new Sections(body)
  const show = (/** @type {Awaited<ReturnType<typeof loadAll>>} */ data) => {
    replace(updated, `As of ${timeOfDay(new Date())}, updated every ${INTERVAL / 1000} seconds.`)
    const { overview, resources, metrics, sandboxes } = data
    sections.set('attention', attention(overview, resources))
    sections.set('tiles', tiles(overview, resources))
    sections.place('charts', [loadChart(overview), hostChart(metrics)], JSON.stringify([overview.timeseries, metrics]))
    sections.set('queues', queueTable(overview.queues))
    sections.set('workers', workerTable(overview, sandboxes, resources))
    sections.set('runs', runLists(overview))
    sections.set('host', hostSection(resources))
    sections.set('sandboxes', sandboxTable(sandboxes))
    sections.set('unreadable', unreadableTable(overview.unreadable_messages))
    sections.set('about', about())
  }
  show(first)
  const updates = poll(load, show, { signal, interval: INTERVAL, max: 60_000 })
  select.addEventListener('change', () => {
    hours = Number(select.value)
    query.set('hours', hours === HOURS_DEFAULT ? null : hours)
    updates.now()
  })
}

/** Places of the sections. A section is replaced only if it changed, so that focus and selection in others stay. */
class Sections {
  /** @type {Map<string, {place: HTMLElement, text: string}>} */
  #places = new Map()

  /** @param {HTMLElement} body */
  constructor(body) { this.body = body }

  /**
   * Places elements that draw themselves, such as charts. While the reader uses them, they stay as they are.
   *
   * @param {string} name
   * @param {HTMLElement[]} elements
   * @param {string} text what they show, to compare
   */
  place(name, elements, text) {
    const found = this.#places.get(name)
    const place = found?.place ?? h('div', { class: `ops-part ops-${name}` })
    const isUsed = place.contains(document.activeElement) || place.matches(':hover') || place.querySelector('details[open]') !== null
    if (found && (isUsed || found.text === text)) return
    this.#places.set(name, { place, text })
    replace(place, elements)
    if (!found) this.body.append(place)
  }

  /**
   * @param {string} name
   * @param {import('../core/dom.js').Child} content
   */
  set(name, content) {
    const found = this.#places.get(name)
    const place = found?.place ?? h('div', { class: 'ops-part' })
    const next = replace(h('div', null), content)
    if (found?.text === next.innerHTML) return
    this.#places.set(name, { place, text: next.innerHTML })
    const open = [...place.querySelectorAll('details')].map((each) => each.open)
    place.replaceChildren(...next.childNodes)
    for (const [i, each] of [...place.querySelectorAll('details')].entries()) each.open = open[i] ?? each.open
    place.hidden = place.childNodes.length === 0
    if (!found) this.body.append(place)
  }
}

/**
 * Loads everything. The sandbox host may be missing: its parts are then null.
 *
 * @param {number} hours
 * @param {AbortSignal} signal
 */
async function loadAll(hours, signal) {
  /** @type {<T>(answer: Promise<T>) => Promise<T | null>} */
  const maybe = (answer) => answer.catch((error) => {
    if (signal.aborted || error.name === 'OfflineError') throw error
    return null
  })
  const [overview, resources, metrics, sandboxes] = await Promise.all([
    /** @type {Promise<Api.OverviewView>} */ (api.get('/api/ops/overview', { query: { minutes: hours * 60 }, signal })),
    maybe(/** @type {Promise<Api.Resources>} */ (api.get('/api/ops/sandy/resources', { signal }))),
    maybe(/** @type {Promise<Api.HostMetric[]>} */ (api.get('/api/ops/sandy/metrics', { query: { hours }, signal }))),
    maybe(/** @type {Promise<Api.SandboxStats[]>} */ (api.get('/api/ops/sandy/sandboxes', { signal }))),
  ])
  return { overview, resources, metrics, sandboxes }
}

function about() {
  return h('section', { class: 'ops-about', 'aria-labelledby': 'ops-about' }, h('h2', { id: 'ops-about' }, 'How to read this'),
    h('ul', null,
      h('li', null, 'Workers report once a minute while they work. No workers and empty queues are normal; no workers and waiting messages are a problem.'),
      h('li', null, 'A sample is a message in ', h('code', null, 'items'), ' until it is answered, and in ', h('code', null, 'turns'),
        ' while it waits for a judge or a sandbox. ',
        h('code', null, 'plans'), ' and ', h('code', null, 'finishes'), ' have one message per run.'),
      h('li', null, 'Messages “for later” wait for a provider that limits the rate of requests. They cost nothing and continue by themselves.'),
      h('li', null, 'Token sums are approximate: they may miss some after a crash, and count none twice. A window may begin up to an hour earlier than its name says.')))
}
