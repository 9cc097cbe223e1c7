/** Workers with their load, and sandboxes. */

import { h } from '../../core/dom.js'
import { ago, bytes, integer, none, percent, plural } from '../../core/format.js'

/**
 * @param {Api.OverviewView} overview
 * @param {Api.SandboxStats[] | null} sandboxes null if the sandbox host gives none
 * @param {Api.Resources | null} resources null without a sandbox host
 */
export function workerTable({ workers, timeseries }, sandboxes, resources) {
  const latest = timeseries.at(-1)
  const isHidden = workers.length === 0 && latest !== undefined && Date.now() - new Date(latest.timestamp).getTime() < 120_000
  return h('section', { 'aria-labelledby': 'ops-workers' }, h('h2', { id: 'ops-workers' }, 'Workers'),
    workers.length === 0
      ? h('p', { class: 'dim' }, isHidden ? 'Workers are listed for the operator of this server only.' : 'No worker has reported in the last three minutes. Workers start when there is work.')
      : h('div', { class: 'ops-workers' }, workers.map((worker) => card(worker, loadOf(worker, sandboxes, resources)))))
}

/**
 * Returns the load of the sandbox in which a worker runs, else that of the host.
 *
 * @param {Api.WorkerView} worker
 * @param {Api.SandboxStats[] | null} sandboxes
 * @param {Api.Resources | null} resources
 */
function loadOf(worker, sandboxes, resources) {
  const own = sandboxes?.find(({ sandbox_id, container_id }) => sandbox_id === worker.worker_id || container_id === worker.worker_id)
  if (own) {
    const largest = Math.max(...(sandboxes ?? []).map(({ disk_bytes }) => disk_bytes ?? 0))
    return {
      of: 'its sandbox', cpu: own.cpu_ratio, cpuText: `${(own.cpu_cores_used ?? 0).toFixed(1)} of ${integer(own.cpu_cores_total)} cores`,
      memory: own.memory_ratio, memoryText: `${bytes(own.memory_usage_bytes)} of ${bytes(own.memory_limit_bytes)}`,
      disk: largest > 0 ? (own.disk_bytes ?? 0) / largest : null, diskText: bytes(own.disk_bytes),
    }
  }
  if (!resources) return null
  return {
    of: 'the host', cpu: resources.cpu_percent === null ? null : resources.cpu_percent / 100, cpuText: `of ${integer(resources.cpuCount)} cores`,
    memory: resources.memory_percent === null ? null : resources.memory_percent / 100,
      memoryText: `${bytes(resources.memoryUsedBytes)} of ${bytes(resources.memoryTotalBytes)}`,
    disk: resources.disk_used_ratio ?? resources.diskUsedRatio, diskText: `${bytes(resources.diskUsedBytes)} of ${bytes(resources.diskTotalBytes)}`,
  }
}

/**
 * @param {Api.WorkerView} worker
 * @param {ReturnType<typeof loadOf>} load
 */
function card(worker, load) {
  return h('article', { class: 'worker' },
    h('h3', null, worker.worker_id),
    h('p', { class: 'dim' }, [worker.hostname !== worker.worker_id && worker.hostname,
      worker.running_runs > 0 ? `working on ${plural(worker.running_runs, 'run')}` : 'idle',
      `${integer(worker.item_concurrency)} samples at a time`, `seen ${ago(worker.last_seen)}`].filter(Boolean).join(' · ')),
    load && [h('h4', null, `Load of ${load.of}`), meter('CPU', load.cpu, load.cpuText), meter('Memory', load.memory, load.memoryText),
      meter('Disk', load.disk, load.diskText)])
}

/**
 * @param {string} name
 * @param {number | null | undefined} ratio
 * @param {string} text
 */
function meter(name, ratio, text) {
  const known = ratio !== null && ratio !== undefined
  return h('div', { class: 'meter' }, h('span', null, name), h('span', { class: 'dim' }, text),
    h('span', { class: 'meter-value' }, known ? percent(ratio) : none),
    h('div', { class: 'meter-bar', 'aria-hidden': 'true' },
      known && h('span', { class: ratio > 0.9 ? 'high' : null, style: { '--part': Math.min(1, ratio) } })))
}

/** @param {Api.SandboxStats[] | null} sandboxes */
export function sandboxTable(sandboxes) {
  if (!sandboxes || sandboxes.length === 0) return null
  return h('section', { 'aria-labelledby': 'ops-sandboxes' },
    h('h2', { id: 'ops-sandboxes' }, 'Sandboxes ', h('span', { class: 'dim' }, integer(sandboxes.length))),
    h('table', { class: 'cards ops-sandboxes' },
      h('thead', null, h('tr', null, ['Sandbox', 'CPU', 'Memory', 'Disk',
        'Measured'].map((name, i) => h('th', { scope: 'col', class: i > 0 ? 'count' : null }, name)))),
      h('tbody', null, sandboxes.map((each) => h('tr', null,
        h('th', { scope: 'row' }, h('code', null, each.sandbox_id)),
        h('td', { class: 'count', dataset: { label: 'CPU' } }, percent(each.cpu_ratio)),
        h('td', { class: 'count', dataset: { label: 'Memory' } }, `${bytes(each.memory_usage_bytes)} of ${bytes(each.memory_limit_bytes)}`),
        h('td', { class: 'count', dataset: { label: 'Disk' } }, bytes(each.disk_bytes)),
        h('td', { class: 'count', dataset: { label: 'Measured' } }, ago(each.updated_at)))))))
}
