/** The `curl` command of an operation, filled with the reader's own run. */

import { curl } from '../../core/api.js'
import { BODIES, OPTIONS, QUERIES } from './examples.js'

/** @typedef {import('./own.js').Own} Own */

/**
 * Fills the parameters of a path.
 *
 * @param {string} path
 * @param {Own} own
 */
export function fill(path, own) {
  const values = /** @type {Record<string, string>} */ ({
    run_id: own.run || 'RUN', other_id: own.other || 'OTHER', benchmark_name: own.benchmark, schedule_id: own.schedule || 'SCHEDULE', entry: 'ci',
  })
  return path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? name.toUpperCase())
}

/**
 * Writes the command of an operation.
 *
 * @param {import('./operation.js').Operation} operation
 * @param {Own} own
 */
export function commandOf(operation, own) {
  const { method, path, security, body } = operation
  const key = `${method} ${path}`
  const search = QUERIES[key] ? `?${fill(QUERIES[key], own)}` : ''
  const needsAdmin = security.length > 0 && security.every((each) => 'admin' in each)
  const needsKey = security.length > 0 && !needsAdmin && security.every((each) => 'key' in each || 'admin' in each)
  const json = method === 'GET' || OPTIONS[key] ? undefined : BODIES[key] ?? (body ? {} : undefined)
  const command = curl(method, fill(path, own) + search, json, {
    ...(needsKey ? { key: true } : needsAdmin ? { key: false } : {}),
    headers: needsAdmin ? ['x-admin-secret: $BENCH_ADMIN_SECRET'] : [],
  })
  return [command, ...(OPTIONS[key] ?? [])].join(' \\\n  ')
}
