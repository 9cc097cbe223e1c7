/** A system with the data of a few weeks' work, for checks of every view and for pictures. */

import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { knowing, questions, writeDataset } from './questions.js'
import { uploadTask } from './tasks.js'

/** Models with their prices in dollars per million tokens. */
const MODELS = {
  'atlas-70b': { accuracy: 0.84, price: '0.60,2.40' },
  'atlas-8b': { accuracy: 0.63, weak: 'physics', price: '0.08,0.20' },
  'lumen-mini': { accuracy: 0.71, weak: 'chemistry', failures: 0.06, price: '0.15,0.60' },
}

/** The browser's own note about the run that doesn't exist, see `viewsOf`. */
export const NOT_FOUND = /404 \(Not Found\).*00000000-0000-4000/

/** Environment that the server of this system needs. */
export const ENVIRONMENT = { WORKER_ITEM_ATTEMPTS: '1', ADMIN_SECRET: '' }

/**
 * @typedef {object} System
 * @property {Api.RunView} oracle
 * @property {Api.RunView} large
 * @property {Api.RunView} small
 * @property {Api.RunView} errors
 * @property {Api.RunView} failed
 * @property {Api.RunView} canceled
 * @property {Api.RunView} open
 * @property {Api.ScheduleView} schedule
 * @property {number} task id of an uploaded task
 * @property {() => void} release lets the open run go on
 */

/**
 * Fills a running server.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {import('./model-server.js').ModelServer} model
 * @param {number} [items] items of each run
 * @param {number} [firings] runs of the schedule
 * @returns {Promise<System>}
 */
export async function fillSystem(bench, model, items = 45, firings = 1) {
  const rows = questions(items)
  const dataset = writeDataset(path.join(bench.folder, 'items'), rows)
  const answer = knowing(rows, MODELS)
  model.answer = answer
  const oracle = await bench.ended((await bench.order({ selected_benchmarks: ['mmlu_pro', 'aime_2025', 'hle'], subset_count: 8, name: 'Check of the installation' })).id)
  const ordered = []
  for (const [name, { price }] of Object.entries(MODELS)) ordered.push(await own(bench, name, dataset, price))
  const [large, small, errors] = ordered
  const schedule = await scheduled(bench, firings)
  // A server that refuses everything, a run that is canceled, and one that stays open.
  model.answer = () => ({ status: 500 })
  const failed = await bench.ended((await bench.order({ model_id: 'openai-compatible/atlas-8b', subset_count: 4, name: 'While the server was down' })).id)
  const release = model.hold(answer)
  const canceled = await bench.order({ model_id: 'openai-compatible/atlas-70b', name: 'Wrong settings' })
  await bench.api('POST', `/api/runs/${canceled.id}/cancel`)
  release()
  await bench.ended(canceled.id)
  const hold = model.hold(answer)
  let count = 0
  const held = model.answer
  model.answer = (question) => (++count > 9 ? held(question) : answer(question))
  const open = await bench.order({ model_id: 'openai-compatible/lumen-mini', subset_count: 28, name: 'Nightly', tags: ['nightly'] })
  const { id: task } = await uploadTask(bench, 'count-lines')
  return { oracle, large, small, errors, failed, canceled, open, schedule, task, release: hold }
}

/**
 * Runs a model on the own dataset.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {string} model
 * @param {string} dataset
 * @param {string} price
 */
async function own(bench, model, dataset, price) {
  const [run] = JSON.parse(await bench.run('run', '--model', `openai-compatible/${model}`, '--base-url', bench.environment.OPENAI_COMPATIBLE_BASE_URL,
    '--benchmark', 'mmlu_pro', '--dataset', `mmlu_pro=${dataset}`, '--price', price, '--yes', '--json', '--tag', 'comparison',
    '--out', path.join(bench.folder, 'out')))
  return bench.api('GET', `/api/runs/${run.id}`)
}

/**
 * Makes a schedule, and asks for runs of it. The scheduler starts them within a minute.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {number} count
 */
async function scheduled(bench, count) {
  const schedule = await bench.api('POST', '/api/schedules', {
    name: 'nightly', cron: '30 2 * * *', time_zone: 'Europe/Berlin', model_id: 'openai-compatible/atlas-8b', selected_benchmarks: ['mmlu_pro'],
    demo: true, subset_count: 20,
  })
  for (let i = 0; i < count; i += 1) await bench.api('POST', `/api/schedules/${schedule.id}/run-now`, {})
  return schedule
}

/**
 * Waits until all runs that were asked for have ended.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {string} id of the schedule
 */
export async function scheduleEnded(bench, id) {
  for (let i = 0; i < 600; i += 1) {
    const { firings } = await bench.api('GET', `/api/schedules/${id}/firings`)
    if (firings.length > 0 && firings.every((/** @type {Api.FiringView} */ firing) => firing.ended_at)) return
    await sleep(500)
  }
  throw new Error('the runs of the schedule have not ended')
}

/**
 * Lists the addresses of all views with their names.
 *
 * @param {Awaited<ReturnType<typeof fillSystem>>} system
 * @returns {[string, string][]}
 */
export function viewsOf({ oracle, large, small, errors, failed, open, schedule, task }) {
  return [
    ['runs', '/runs'],
    ['new-run', '/new'],
    ['run', `/runs/${errors.id}`],
    ...['figures', 'groups', 'errors', 'settings'].map((tab) => /** @type {[string, string]} */ ([`run-${tab}`, `/runs/${errors.id}?tab=${tab}`])),
    ['run-demo', `/runs/${oracle.id}`],
    ['run-failed', `/runs/${failed.id}`],
    ['run-open', `/runs/${open.id}`],
    ['item', `/runs/${large.id}/items/mmlu_pro/4`],
    ['compare-choice', '/compare'],
    ['compare', `/compare?runs=${large.id},${small.id}`],
    ['compare-three', `/compare?runs=${large.id},${small.id},${errors.id}`],
    ['compare-different', `/compare?runs=${large.id},${oracle.id}`],
    ['benchmarks', '/benchmarks'],
    ['benchmark', '/benchmarks/mmlu_pro'],
    ['code-tasks', '/benchmarks/code_lab/tasks'],
    ['code-task', '/benchmarks/code_lab/tasks/go_text_merge'],
    ['leaderboard', '/leaderboard?benchmark=mmlu_pro'],
    ['tasks', '/tasks'],
    ['task', `/tasks/${task}`],
    ['schedules', '/schedules'],
    ['schedule', `/schedules/${schedule.id}`],
    ['ops', '/ops'],
    ['docs', '/docs'],
    ['verify', '/verify'],
    ['not-found', '/runs/00000000-0000-4000-8000-000000000000'],
  ]
}
