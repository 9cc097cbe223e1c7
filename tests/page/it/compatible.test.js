/** What users of the compatible system expect of a page: what it shows, also if a server answers no more than that one does. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

const MODEL = {
  id: '11111111-1111-4111-8111-111111111111', slug: 'lab/example-7b', name: 'Example 7B', provider: 'chutes', tagline: null, user: 'lab', logo: null,
  chute_id: null, instance_count: 3, is_active: true,
}
const BENCHMARK = {
  name: 'mmlu_pro', display_name: 'MMLU-Pro', description: 'Questions with ten options.', category: 'Core Benchmarks', is_enabled: true, supports_subset: true,
  requires_setup: false, setup_notes: null, default_selected: true, total_items: 12_032, avg_item_latency_ms: 1200,
}
const OVERVIEW = {
  workers: [], timeseries: [], queue_counts: { queued: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 }, queued_runs: [], running_runs: [], completed_runs: [],
  worker_config: { worker_max_concurrent: 2, worker_item_concurrency: 4 }, token_stats: null,
}
/** Answers of a compatible server by path. Every other path answers `{}`. */
const ANSWERS = {
  '/api/models': { models: [MODEL], total: 1 }, '/api/benchmarks': { benchmarks: [BENCHMARK] }, '/api/runs': { runs: [], total: 0 },
  '/api/ops/overview': OVERVIEW, '/api/status': { maintenance_mode: false, message: '' },
}

/**
 * Answers the page's requests as a compatible server would.
 *
 * @param {import('playwright-core').Page} page
 * @param {Record<string, unknown>} answers
 */
function answer(page, answers) {
  return page.route('**/api/**', (route) => route.fulfill({ json: answers[new URL(route.request().url()).pathname] ?? {} }))
}

/**
 * Saves the protocol of the benchmark that is shown.
 *
 * @param {import('playwright-core').Page} page
 */
async function savedProtocol(page) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export protocol (Markdown)' }).click()])
  return { name: file.suggestedFilename(), text: fs.readFileSync(await file.path(), 'utf8') }
}

pageTest('the form of a run appears with answers of a compatible server alone', async (world) => {
  const { page } = await world.window()
  await answer(page, ANSWERS)
  await go(page, '/')
  await page.waitForLoadState('networkidle')
  await page.getByRole('heading', { name: 'Run Benchmarks' }).waitFor()
  await page.getByText('Configure Benchmark Run').waitFor()
  const main = page.getByRole('main')
  assert.match(await main.innerText(), /Example 7B/, 'the first model is chosen, and named without opening the list')
  assert.equal(await main.getByRole('combobox', { name: 'Model' }).inputValue(), 'lab/example-7b')
  assert.doesNotMatch(await main.innerText(), /lists no models|no models available/i)
  assert.ok(await main.getByRole('checkbox', { name: /MMLU-Pro/ }).isChecked())
  assert.ok(await main.getByRole('radio', { name: '10%' }).isChecked(), 'a tenth of the items, unless the reader chooses')
})

pageTest('benchmarks are grouped, and those that are switched off can\'t be chosen', async (world) => {
  const { page } = await world.window()
  const other = { ...BENCHMARK, name: 'affine_ded', display_name: 'Affine DED', category: 'Affine Environments', default_selected: false }
  const off = { ...BENCHMARK, name: 'critpt', display_name: 'CritPt', is_enabled: false, supports_subset: false, total_items: 70 }
  await answer(page, { ...ANSWERS, '/api/benchmarks': { benchmarks: [BENCHMARK, other, off] } })
  await go(page, '/new')
  const main = page.getByRole('main')
  await main.getByRole('group', { name: 'Core Benchmarks 2' }).waitFor()
  const affine = main.getByRole('group', { name: 'Affine Environments 1' })
  assert.equal(await affine.getByRole('checkbox', { name: /Affine DED/ }).isChecked(), false)
  assert.ok(await main.getByRole('checkbox', { name: /CritPt/ }).isDisabled())
  await main.getByRole('group', { name: 'Core Benchmarks 2' }).getByRole('button', { name: 'Select all' }).click()
  assert.equal(await main.getByRole('checkbox', { name: /CritPt/ }).isChecked(), false)
  for (const share of ['1%', '5%', '10%', '25%', '50%', 'All items']) assert.ok(await main.getByRole('radio', { name: share, exact: true }).isEnabled())
  await main.getByText('Number', { exact: true }).click()
  assert.equal(await main.getByRole('textbox', { name: 'Items of each benchmark' }).inputValue(), '25')
})

pageTest('a busy server says that a new run may wait', async (world) => {
  const { page } = await world.window()
  await answer(page, { ...ANSWERS, '/api/ops/overview': { ...OVERVIEW, queue_counts: { ...OVERVIEW.queue_counts, running: 2, queued: 1 } } })
  await go(page, '/new')
  await page.getByText('The server is busy with 2 runs, and 1 run waits, so a new run may have to wait.').waitFor()
})

pageTest('a server under maintenance says so, and takes no order', async ({ bench, open }) => {
  const { page } = await open('/new')
  const main = page.getByRole('main')
  await main.getByText('Maintenance.').waitFor()
  await main.getByText(/Back at noon/).waitFor()
  assert.ok(await main.getByRole('button', { name: 'Start run' }).isDisabled())
  assert.equal((await bench.api('GET', '/api/runs')).total, 0)
}, { environment: { MAINTENANCE_MODE: 'true', MAINTENANCE_MESSAGE: 'Back at noon' } })

pageTest('the list cancels and exports, and names six benchmarks of a run', async ({ bench, model, open }) => {
  const names = ['mmlu_pro', 'aime_2025', 'ifbench', 'ifbench_allenai', 'aime_2022_2024', 'gpqa_diamond', 'aa_omniscience']
  const many = await bench.ended((await bench.order({ selected_benchmarks: names, subset_count: 1 })).id)
  const release = model.hold()
  await bench.order({ model_id: 'openai-compatible/held' })
  const { page } = await open('/runs')
  await settled(page)
  const row = page.getByRole('row', { name: new RegExp(many.id.slice(0, 8)) })
  assert.match(await row.innerText(), /\+1 more/)
  assert.match(await row.innerText(), /100\.0%/)
  await row.getByRole('button', { name: /^Actions on/ }).click()
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Table (CSV)' }).click()])
  assert.match(fs.readFileSync(await file.path(), 'utf8'), /^\uFEFF?[a-z_"]+,/)
  const held = page.getByRole('row', { name: /held/ })
  await held.getByRole('button', { name: /^Actions on/ }).click()
  await page.getByRole('menuitem', { name: /^Cancel/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click()
  await held.getByText('Canceled').waitFor()
  release()
})

pageTest('the protocol of a benchmark is saved with every item', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ subset_count: 5 })).id)
  const { page } = await open(`/runs/${run.id}`)
  await settled(page)
  const { name, text } = await savedProtocol(page)
  assert.equal(name, `benchmark_protocol_${run.id}_mmlu_pro.md`)
  assert.equal(text.match(/^## \d+\. Item /gm)?.length, 5)
  for (const part of [run.id, 'oracle', 'page', '**Prompt**', '**Response**', '**Expected**', 'hash ', 'tokens ']) assert.ok(text.includes(part), `the protocol has ${part}`)
})

pageTest('a protocol is saved without the benchmark\'s name if that can\'t be loaded', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ subset_count: 2 })).id)
  const { page, guard } = await open(`/runs/${run.id}`)
  await settled(page)
  guard.allow(/503 \(/)
  let asked = 0
  await page.route(/\/api\/benchmarks\?/, (route) => { asked += 1; return route.fulfill({ status: 503, json: { detail: 'not now', code: 'internal' } }) })
  const texts = await page.evaluate(async (id) => {
    const [{ protocolOf }, { ApiSource }] = await Promise.all([import(/** @type {any} */ ('/page/js/views/run/protocol.js')), import(/** @type {any} */ ('/page/js/core/source.js'))])
    const source = new ApiSource(id)
    const run = await source.run()
    const textOf = async (/** @type {AbortSignal | undefined} */ signal) => new Blob(await protocolOf({ source, run, b: run.benchmarks[0], signal })).text()
    return [await textOf(undefined), await textOf(AbortSignal.abort()).catch((error) => error.name)]
  }, run.id)
  assert.match(texts[0], /^# Benchmark protocol: `mmlu_pro`\n/)
  assert.equal(texts[0].match(/^## \d+\. Item /gm)?.length, 2)
  assert.equal(texts[1], 'AbortError')
  assert.ok(asked > 0)
})

pageTest('the page writes the same protocol as the server', async ({ bench, model, open }) => {
  model.answer = ({ text, before }) => ({ text: before ? '# Not a heading\n\n````\nThe answer is (B).\n' : `<b>none</b> ${text.length}`, reasoning: 'a `thought`' })
  const order = { model_id: 'openai-compatible/m`1', subset_count: 4, subset_seed: '*seed*', samples: 2 }
  const run = await bench.ended((await bench.order(order)).id)
  const { page } = await open(`/runs/${run.id}`)
  await settled(page)
  const { text: served } = await savedProtocol(page)
  assert.equal(served.match(/^## \d+\. Item .*, sample \d – /gm)?.length, 8)
  const made = await page.evaluate(async (id) => {
    const [{ protocolOf }, { apiSource }] = await Promise.all([import(/** @type {any} */ ('/page/js/views/run/protocol.js')), import(/** @type {any} */ ('/page/js/core/source.js'))])
    const source = apiSource(id)
    const run = await source.run()
    return new Blob(await protocolOf({ source, run, b: run.benchmarks[0] })).text()
  }, run.id)
  assert.equal(made, served)

  // Archives don't have the benchmark's name for readers.
  await go(page, '/verify')
  await page.locator('input[type=file]').first().setInputFiles({ name: 'run.zip', mimeType: 'application/zip', buffer: await bench.archive(run.id) })
  await page.getByRole('link', { name: /Browse the run/ }).click()
  await settled(page)
  const { text: archived } = await savedProtocol(page)
  assert.equal(archived, served.replace('MMLU-Pro (`mmlu_pro`)', '`mmlu_pro`'))
})

pageTest('a canceled run has a protocol of what was done', async ({ bench, model, open }) => {
  const release = model.hold()
  const held = model.answer
  model.answer = (question) => model.total === 1 ? { text: 'The answer is (A).' } : held(question)
  const { id } = await bench.order({ model_id: 'openai-compatible/held', subset_count: 2 })
  await bench.until(id, ({ benchmarks: [b] }) => b.completed_samples === 1)
  await bench.api('POST', `/api/runs/${id}/cancel`)
  assert.equal((await bench.ended(id)).status, 'canceled')
  await bench.until(id, ({ benchmarks: [b] }) => b.status !== 'running')
  const { page } = await open(`/runs/${id}`)
  await settled(page)
  const { text } = await savedProtocol(page)
  assert.match(text, /^# Benchmark protocol: MMLU-Pro \(`mmlu_pro`\)\n\n- Run: `/)
  assert.match(text, /^- Samples: 1 graded of 2$/m)
  assert.match(text, /^- Status: skipped$/m, 'the status of the benchmark')
  assert.equal(text.match(/^## \d\. Item `\d+` – /gm)?.length, 2)
  assert.match(text, /^## \d\. Item `\d+` – not ended$/m)
  assert.equal(text.match(/^\*\*Response\*\*$/gm)?.length, 1)
  release()
})

pageTest('a run is exported as a report, and as protocols of all its benchmarks', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ selected_benchmarks: ['mmlu_pro', 'ifbench'], subset_count: 2 })).id)
  const { page } = await open(`/runs/${run.id}`)
  await settled(page)
  for (const [name, start] of [['Report (PDF)', '%PDF-'], ['Protocol (Markdown)', '# Benchmark protocol: 2 benchmarks']]) {
    await page.getByRole('main').getByRole('button', { name: 'Export', exact: true }).click()
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name }).click()])
    const text = fs.readFileSync(await file.path(), 'latin1')
    assert.ok(text.startsWith(start), `${name}: ${text.slice(0, 40)}`)
    if (!start.startsWith('#')) continue
    assert.deepEqual(text.match(/^# .*/gm), [start])
    assert.deepEqual(text.match(/^## .*/gm), ['## MMLU-Pro (`mmlu_pro`)', '## IFEval (`ifbench`)'])
    assert.equal(text.match(/^### \d+\. Item `.*` \S+ correct$/gm)?.length, 4)
  }
})

pageTest('figures are formatted the same everywhere', async ({ open }) => {
  const { page } = await open('/')
  const texts = await page.evaluate(async () => {
    const { percent, duration } = await import(/** @type {any} */ ('/page/js/core/format.js'))
    return [percent(0.8555), percent(0), percent(1), percent(null), percent(undefined),
      duration(0.4567), duration(8.25), duration(59.9), duration(65.9), duration(3599), duration(3661), duration(90_000), duration(null)]
  })
  assert.deepEqual(texts, ['85.6%', '0.0%', '100.0%', '–', '–', '457 ms', '8.3 s', '59 s', '1 min 5 s', '59 min 59 s', '1 h 1 min', '1 d 1 h', '–'])
})

pageTest('statuses differ in color as their meaning does', async ({ open }) => {
  const { page } = await open('/')
  const kinds = await page.evaluate(async () => {
    const { statusBadge } = await import(/** @type {any} */ ('/page/js/core/outcomes.js'))
    const names = ['succeeded', 'running', 'failed', 'canceled', 'needs_setup', 'queued', 'pending', 'skipped']
    return names.map((name) => statusBadge(name).className)
  })
  // Running has a color of its own, since nothing has succeeded yet.
  assert.deepEqual(kinds, ['badge good', 'badge active', 'badge bad', 'badge warn', 'badge warn', 'badge idle', 'badge idle', 'badge idle'])
})
