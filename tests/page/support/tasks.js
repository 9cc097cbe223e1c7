/** Terminal tasks: archives to upload, and scripted answers of the API for episodes, which need a container engine. */

import { writeZip } from './zip.js'

/**
 * Makes the archive of a small task in Harbor's format.
 *
 * @param {string} name
 * @param {Record<string, string>} [files] further or other files
 */
export function taskArchive(name, files = {}) {
  const all = {
    'task.toml': `schema_version = "1.4"\n\n[task]\nname = "bench-runner/${name}"\n\n[agent]\ntimeout_sec = 60.0\n\n[verifier]\ntimeout_sec = 60.0\n\n[environment]\ncpus = 1\nmemory_mb = 256\nstorage_mb = 512\nnetwork_mode = "no-network"\n`,
    'instruction.md': 'Write the number of lines of /app/data.txt to /app/answer.txt.\n',
    'environment/Dockerfile': 'FROM debian:stable-slim\nWORKDIR /app\n',
    'solution/solve.sh': '#!/bin/sh\nwc -l < /app/data.txt > /app/answer.txt\n',
    'tests/test.sh': '#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n',
    ...files,
  }
  return writeZip(new Map(Object.entries(all).map(([path, text]) => [`${name}/${path}`, Buffer.from(text)])))
}

/** An archive that is refused: its container would get all of the host's rights. */
export function refusedArchive() {
  return taskArchive('escape', { 'environment/docker-compose.yaml': 'services:\n  main:\n    build: .\n    privileged: true\n' })
}

/**
 * Uploads a task.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {string} name
 * @param {number} [episodes]
 * @param {Record<string, string>} [files] further or other files
 * @param {Record<string, string>} [facts] agent and model, by default the oracle
 * @returns {Promise<any>} the task
 */
export async function uploadTask(bench, name, episodes = 10, files = {}, facts = { agent: 'oracle' }) {
  const form = new FormData()
  form.append('file', new Blob([taskArchive(name, files)]), `${name}.zip`)
  const response = await fetch(`${bench.origin}/api/tasks?${new URLSearchParams({ name, num_runs: String(episodes), ...facts })}`, { method: 'POST', body: form })
  if (!response.ok) throw new Error(`the upload of ${name}: ${response.status} ${await response.text()}`)
  return response.json()
}

/** Outcomes of scripted episodes with their scores; null hasn't ended. @type {[string | null, number | null][]} */
const OUTCOMES = [['correct', 1], ['correct', 1], ['incorrect', 0], ['correct', 1], ['partial', 0.5], ['correct', 1], ['infrastructure-error', null]]

/**
 * @typedef {object} Script
 * @property {any} run as the API shows it
 * @property {any[]} items its samples without texts
 * @property {(ended: number) => void} end lets the first samples end
 */

/**
 * Makes the answers for a run of terminal tasks, or of another benchmark, from those of another run.
 *
 * @param {Api.RunView} base any run that is over
 * @param {{tasks: string[], samples: number, ended?: number, tags?: string[], benchmark?: string}} options
 * @returns {Script}
 */
export function scriptedRun(base, { tasks, samples, ended = tasks.length * samples, tags = [], benchmark = 'terminal_tasks' }) {
  const planned = tasks.length * samples
  const b = { ...base.benchmarks[0], benchmark_name: benchmark, samples_per_item: samples, planned_samples: planned, total_items: tasks.length, sampled_items: tasks.length, demo: false, index: null, judge: null }
  const run = { ...base, model: 'oracle', demo: false, tags, name: null, items: null, benchmarks: [b], error_message: null }
  const items = Array.from({ length: planned }, (_, i) => ({
    item_id: String(Math.floor(i / samples)), source_id: `${tasks[Math.floor(i / samples)]}@0123456789ab`, position: Math.floor(i / samples), sample: i % samples,
    outcome: /** @type {string | null} */ (null), score: /** @type {number | null} */ (null),
  }))
  const end = (/** @type {number} */ count) => {
    items.forEach((item, i) => { [item.outcome, item.score] = i < count ? OUTCOMES[(i * 5 + item.position) % OUTCOMES.length] : [null, null] })
    const counts = items.filter(({ outcome }) => outcome)
    const of = (/** @type {string} */ name) => counts.filter(({ outcome }) => outcome === name).length
    const isOver = count >= planned
    const graded = counts.length - of('infrastructure-error')
    Object.assign(b, {
      status: isOver ? 'succeeded' : 'running', completed_samples: counts.length, correct_samples: of('correct'), graded_samples: graded, completed_items: Math.floor(count / samples),
      score: isOver ? of('correct') / graded : null, score_of_graded: graded ? of('correct') / graded : null, interval: isOver ? { low: 0.55, high: 0.72, method: 'wilson' } : null,
      outcomes: isOver ? Object.fromEntries(['correct', 'partial', 'incorrect', 'infrastructure-error'].map((name) => [name, of(name)])) : null, coverage: planned ? graded / planned : null,
    })
    Object.assign(run, {
      status: isOver ? 'succeeded' : 'running', completed_at: isOver ? base.completed_at : null, overall_score: b.score, coverage: b.coverage,
      progress: { ...base.progress, completed: Math.floor(count / samples), total: tasks.length, percent: count / planned * 100 },
    })
  }
  end(ended)
  return { run, items, end }
}

/**
 * Answers the requests of a page for a scripted run.
 *
 * @param {import('playwright-core').Page} page
 * @param {Script} script
 * @param {{texts?: (item: any) => object}} [options] `texts` adds what stored bodies have
 */
export async function serveRun(page, { run, items }, { texts = () => ({}) } = {}) {
  const base = `/api/runs/${run.id}`
  const { benchmark_name: benchmark } = run.benchmarks[0]
  await page.route((url) => url.pathname === base, (route) => route.fulfill({ json: run }))
  await page.route((url) => url.pathname === `${base}/benchmarks/${benchmark}`, (route) => {
    const query = new URL(route.request().url()).searchParams
    const item = query.get('item')
    const sample = query.get('sample')
    const found = items.filter((each) => (item === null || item === each.source_id || item === `#${each.item_id}`) && (sample === null || Number(sample) === each.sample))
    const offset = Number(query.get('cursor') || query.get('offset') || 0)
    const limit = Number(query.get('limit') ?? 100)
    const page = found.slice(offset, offset + limit)
    const isLight = query.get('texts') === 'false'
    return route.fulfill({ json: {
      benchmark: run.benchmarks[0], summary: { error_breakdown: [], outcomes: null },
      items: {
        items: page.map((each) => ({ ...EMPTY, ...each, ...(isLight ? {} : texts(each)) })), total: found.length, limit, offset,
        next_cursor: offset + limit < found.length ? String(offset + limit) : null,
      },
    } })
  })
}

/**
 * Answers the requests of a page for several scripted runs, which are all that there are.
 *
 * @param {import('playwright-core').Page} page
 * @param {Script[]} scripts with an id each
 */
export async function serveRuns(page, scripts) {
  for (const script of scripts) await serveRun(page, script)
  const all = { runs: scripts.map(({ run }) => run), total: scripts.length, limit: scripts.length, offset: 0, next_cursor: null }
  await page.route((url) => url.pathname === '/api/runs', (route) => route.fulfill({ json: all }))
}

/** Fields of a sample that has nothing else. */
const EMPTY = {
  id: '00000000-0000-4000-8000-000000000001', item_hash: null, prompt: null, response: null, expected: null, is_correct: null, judge_output: null, judge_prompt: null, latency_ms: 61_000,
  input_tokens: null, output_tokens: null, error: null, test_code: null, item_metadata: null, created_at: '2026-11-25T08:00:00Z', error_code: null, reason: null, extracted: null,
  detail: null, steps: null, group: null, truncated: false, reasoning: null, model_reported: null, body_sha256: null, hidden: false, attempts: 1, finish_reason: null, cut: [], body_url: null,
}

/** Text that would do harm if it were markup. */
const HOSTILE = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>'

/** What a stored episode with a partial reward, two steps, an exception and a long log adds to a sample. */
export const EPISODE = {
  prompt: 'Repair the table in /app/people.csv.', response: '', expected: 'earns the full reward',
  judge_output: {
    agent: 'oracle', engine: 'podman 5.4.2', round: 1, rewards: { reward: 0.5 }, setup_ms: 4200, exception: null,
    episode_steps: [
      { name: 'repair', rewards: { reward: 1 }, exception: null, agent_ms: 1800, verifier_ms: 900, tests: { total: 4, passed: 4, failed: 0 } },
      { name: 'report', rewards: { reward: 0 }, exception: { name: 'AgentTimeoutError', message: `The agent took longer than 60 s. ${HOSTILE}` }, agent_ms: 60_000, verifier_ms: 1200, tests: { total: 3, passed: 1, failed: 2 } },
    ],
    test_output: `test_rows PASSED\ntest_header FAILED ${HOSTILE}\n`,
    logs: [
      { name: 'agent/oracle.txt', bytes: 200_000, end: `…end of a long log ${HOSTILE}`, cut: true },
      { name: 'verifier/test-stdout.txt', bytes: 42, end: 'test_rows PASSED', cut: false },
    ],
  },
}
