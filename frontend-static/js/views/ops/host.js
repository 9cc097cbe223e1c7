/** Resources and limits of the sandbox host. */

import { h } from '../../core/dom.js'
import { bytes, duration, integer, number, percent } from '../../core/format.js'

/** @param {Api.Resources | null} resources null without a sandbox host */
export function hostSection(resources) {
  const heading = h('h2', { id: 'ops-host' }, 'Sandbox host')
  if (!resources) {
    return h('section', { 'aria-labelledby': 'ops-host' }, heading,
      h('p', { class: 'dim' }, 'No sandbox host answers. Benchmarks that run code need one; the others don’t.'))
  }
  const facts = [
    ['New sandboxes', resources.canCreateSandbox ? 'possible' : `refused: ${resources.rejectReason ?? 'no reason given'}`],
    ['Load', [resources.load1, resources.load5, resources.load15].map(number).join(', ') + ' (1, 5 and 15 minutes)'],
    ['Processors', integer(resources.cpuCount)],
    ['Memory', `${bytes(resources.memoryAvailableBytes)} available of ${bytes(resources.memoryTotalBytes)}`],
    ['Disk', `${bytes(resources.diskFreeBytes)} free of ${bytes(resources.diskTotalBytes)}, ${percent(resources.disk_used_ratio ?? resources.diskUsedRatio)} used`],
    ['Sandboxes by priority', Object.entries(resources.priorityBreakdown ?? {}).map(([name, n]) => `${name} ${n}`).join(', ') || 'none'],
  ]
  const limits = Object.entries(resources.limits ?? {})
  return h('section', { 'aria-labelledby': 'ops-host' }, heading,
    h('dl', { class: 'facts' }, facts.map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
    limits.length > 0 && h('details', null, h('summary', null, 'Limits'),
      h('dl', { class: 'facts' }, limits.map(([name, value]) => [h('dt', null, h('code', null, name)), h('dd', null, limitText(name, value))]))))
}

/**
 * @param {string} name
 * @param {number | null} value
 */
function limitText(name, value) {
  if (typeof value !== 'number') return String(value)
  return name.endsWith('Bytes') ? bytes(value) : name.endsWith('Seconds') ? duration(value) : number(value)
}
