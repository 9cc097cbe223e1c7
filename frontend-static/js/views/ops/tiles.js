/** Counts of workers and runs, tokens, and the load of the host. */

import { h } from '../../core/dom.js'
import { bytes, integer, percent, plural, tokens } from '../../core/format.js'

/**
 * @param {Api.OverviewView} overview
 * @param {Api.Resources | null} resources null without a sandbox host
 */
export function tiles(overview, resources) {
  const { workers, worker_config, queue_counts, token_stats } = overview
  const [day, week] = [token_stats.last_24h, token_stats.last_7d]
  return h('dl', { class: 'tiles' },
    tile('Workers', integer(workers.length), 'reported in the last 3 minutes'),
    tile('Running runs', integer(queue_counts.running), `${integer(worker_config.worker_item_concurrency)} samples at a time per worker`),
    tile('Queued runs', integer(queue_counts.queued), 'waiting to start'),
    tile('Succeeded runs', integer(queue_counts.succeeded), `${integer(queue_counts.failed)} failed, ${integer(queue_counts.canceled)} canceled`),
    tile('Tokens, 24 hours', tokens(day.input_tokens + day.output_tokens),
      `${tokens(day.input_tokens)} in, ${tokens(day.output_tokens)} out`),
    tile('Tokens, 7 days', tokens(week.input_tokens + week.output_tokens),
      `${tokens(week.input_tokens)} in, ${tokens(week.output_tokens)} out`),
    tile('Host CPU', share(resources?.cpu_percent), resources?.cpuCount ? plural(resources.cpuCount, 'processor') : 'no sandbox host'),
    tile('Host memory', share(resources?.memory_percent),
      resources ? `${bytes(resources.memoryUsedBytes)} of ${bytes(resources.memoryTotalBytes)}` : 'no sandbox host'),
    tile('Host disk', percent(resources?.disk_used_ratio ?? resources?.diskUsedRatio),
      resources ? `${bytes(resources.diskFreeBytes)} free` : 'no sandbox host'))
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} note
 */
function tile(name, value, note) {
  return h('div', null, h('dt', null, name), h('dd', null, value, h('br', null), h('small', null, note)))
}

/** @param {number | null | undefined} value in percent */
function share(value) {
  return percent(value === null || value === undefined ? null : value / 100)
}
