/** The reader's own data, which commands are filled with. */

import { api } from '../../core/api.js'

/**
 * @typedef {object} Own
 * @property {string} run id of a run; empty if there is none
 * @property {string} other id of another run
 * @property {string} benchmark name of a benchmark of the run
 * @property {string} schedule id of a schedule
 */

/**
 * Finds the reader's latest run, else the latest of all, and what belongs to it.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<Own>}
 */
export async function loadOwn(signal) {
  const latest = (/** @type {string | null} */ owner) =>
    /** @type {Promise<Api.RunsView>} */ (api.get('/api/runs', { query: { owner, limit: 2 }, signal }))
  const mine = await latest('me')
  const { runs } = mine.runs.length > 0 ? mine : await latest(null)
  /** @type {Api.SchedulesView} */
  const { schedules } = await api.get('/api/schedules', { query: { limit: 1 }, signal })
  return {
    run: runs[0]?.id ?? '', other: runs[1]?.id ?? '', benchmark: runs[0]?.benchmarks?.[0]?.benchmark_name ?? 'mmlu_pro',
      schedule: schedules[0]?.id ?? '',
  }
}
