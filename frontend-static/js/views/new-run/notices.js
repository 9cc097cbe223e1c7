/** What a reader has to know about new runs: maintenance, runs that wait for others, and a list of models without a provider's. */

import { api } from '../../core/api.js'
import { h, replace, withCode } from '../../core/dom.js'
import { plural } from '../../core/format.js'
import { poll } from '../../core/connection.js'
import { payer, session, signInAddress } from '../../core/session.js'
import { sentence } from './problems.js'

/** Milliseconds between two looks at the server's status. */
const INTERVAL = 30_000

/**
 * Makes the place of the notices and keeps it up to date.
 *
 * @param {AbortSignal} signal
 * @param {(isOpen: boolean) => void} opened called with false while the server takes no new runs
 */
export function serverNotices(signal, opened) {
  const element = h('div', { class: 'notices', 'aria-live': 'polite' })
  const load = async () => {
    const [status, overview] = await Promise.all([
      /** @type {Promise<Api.StatusView>} */ (api.get('/api/status', { signal })),
      /** @type {Promise<Api.OverviewView>} */ (api.get('/api/ops/overview', { query: { minutes: 30 }, signal })),
    ])
    const { running, queued } = overview.queue_counts
    return { maintenance: status.maintenance_mode ? status.message : '', running, queued,
      capacity: overview.worker_config.worker_max_concurrent }
  }
  poll(load, ({ maintenance, running, queued, capacity }) => {
    const isFull = capacity > 0 && running + queued >= capacity
    replace(element,
      maintenance && h('p', { class: 'note warn' }, h('strong', null, 'Maintenance. '), sentence(maintenance)),
      isFull && h('p', { class: 'note' },
        `The server is busy with ${plural(running, 'run')}${queued > 0 ? `, and ${plural(queued, 'run waits', 'runs wait')}` : ''}, so a new run may have to wait.`))
    element.hidden = element.childElementCount === 0
    opened(!maintenance)
  }, { signal, interval: INTERVAL, max: 4 * INTERVAL, onError: () => {} })
  return element
}

/** Names of the machine itself. A server that answers there is the reader's own to start. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/**
 * Says how to get models on a server that lists none of a provider.
 *
 * @param {AbortSignal} signal
 */
export function providerNote(signal) {
  const element = h('p', { class: 'note' })
  const show = () => replace(element, 'This server lists no models of a provider yet. ', waysToModels())
  for (const target of [session, api]) for (const event of ['change', 'key']) target.addEventListener(event, show, { signal })
  show()
  return element
}

/** @returns {import('../../core/dom.js').Child} */
function waysToModels() {
  const typed = withCode('type a model as `PROVIDER/NAME` and give your key for this run below.')
  if (session.isSignedIn && payer() === 'user') return withCode('Type a Chutes model as `chutes/NAME`: your Chutes account pays.')
  if (session.isSignedIn && payer() === 'operator') return withCode('Type a model as `PROVIDER/NAME`: the operator of this server pays.')
  if (session.isOffered) return [h('a', { href: signInAddress() }, 'Sign in with Chutes'), ' to run its models, or ', typed]
  if (!session.isSignedIn && LOOPBACK.test(location.hostname)) return [withCode('Start it with a provider’s key, such as `OPENROUTER_API_KEY` or `CHUTES_API_KEY`, or '), typed]
  return ['To run one, ', typed]
}
