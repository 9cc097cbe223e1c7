/** Examples of bodies and queries, by method and path. Others follow from the schema. */

const ORDER = { model_id: 'oracle', selected_benchmarks: ['mmlu_pro'], subset_count: 20, subset_seed: 'demo', demo: true }

/** Bodies by operation. @type {Record<string, object>} */
export const BODIES = {
  'POST /api/runs': ORDER,
  'POST /api/runs/api': { model_id: 'chutes/MODEL', selected_benchmarks: ['mmlu_pro'], subset_count: 20, subset_seed: 'demo' },
  'POST /api/runs/estimate': ORDER,
  'PATCH /api/runs/{run_id}': { name: 'baseline', add_tags: ['exp-7'] },
  'POST /api/runs/{run_id}/rejudge': { judge: { model_id: 'chutes/JUDGE' } },
  'POST /api/admin/runs/{run_id}/requeue': { errors: true },
  'POST /api/schedules': { name: 'nightly', cron: '30 2 * * *', time_zone: 'Europe/Berlin', ...ORDER },
  'PATCH /api/schedules/{schedule_id}': { cron: '0 4 * * MON-FRI' },
  'POST /api/uploads': { purpose: 'verify', bytes: 12_345, sha256: '0'.repeat(64) },
  'POST /api/admin/access': { name: 'ci', expires_in_seconds: 7_776_000 },
}

/** Queries by operation. @type {Record<string, string>} */
export const QUERIES = {
  'GET /api/runs': 'limit=5',
  'GET /api/models': 'limit=5',
  'GET /api/runs/{run_id}/benchmarks/{benchmark_name}': 'outcome=incorrect,unparsed&limit=5',
  'GET /api/runs/{run_id}/items/index': 'benchmark={benchmark_name}&part=0',
  'GET /api/runs/{run_id}/artifacts': 'benchmark=code_lab&position=0&sample=0&log=patch.diff',
  'GET /api/runs/{run_id}/items/log': 'benchmark=terminal_tasks&position=0&sample=0&log=agent/trajectory.json',
  'GET /api/runs/{run_id}/items/turns': 'benchmark=terminal_tasks&position=0&sample=0&from=0',
  'GET /api/runs/{run_id}/export': 'format=zip',
  'GET /api/runs/{run_id}/events': 'cursor=0',
  'GET /api/leaderboard': 'benchmark={benchmark_name}',
  'GET /api/ops/overview': 'minutes=60',
}

/** Further options of `curl` by operation. @type {Record<string, string[]>} */
export const OPTIONS = {
  'GET /api/runs/{run_id}/export': ['-o results.zip'],
  'POST /api/exports/verify': ['-F file=@results.zip'],
}
