/** What the server says about new runs: maintenance, and runs that wait for others. */

import { api } from '../../core/api.js'
import { h, replace } from '../../core/dom.js'
import { plural } from '../../core/format.js'
import { poll } from '../../core/connection.js'
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
