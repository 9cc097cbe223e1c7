/** Changes of repositories that were verified: patch, tests, output and the agent's turns; from the server and from an archive. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings, strayWords } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { conversation, MESSAGES, PATCH, TRAJECTORY, verified } from '../support/conversations.js'
import { drawn, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { scriptedRun, serveRun } from '../support/tasks.js'

const BENCHMARK = 'swe_bench_pro'

/**
 * Serves a scripted run of changes, and returns the address of its first item.
 *
 * @param {import('playwright-core').Page} page
 * @param {import('../support/bench.js').Bench} bench
 * @param {object[]} samples what stored bodies add to the samples
 * @param {{ended?: number}} [options]
 */
async function serve(page, bench, samples, options = {}) {
  const { id } = await bench.order({ subset_count: 2 })
  const script = scriptedRun(await bench.ended(id), { tasks: ['demo'], samples: Math.max(samples.length, 1), benchmark: BENCHMARK, ...options })
  script.run.benchmarks[0].options = { agent: 'bash' }
  await serveRun(page, script, { texts: ({ sample }) => samples[sample] })
  return { script, address: `/runs/${id}/items/${BENCHMARK}/0` }
}

/** Answers requests for logs. @param {import('playwright-core').Page} page @param {Record<string, string>} logs */
async function serveLogs(page, logs) {
  await page.route((url) => url.pathname.endsWith('/items/log'), (route) => {
    const text = logs[new URL(route.request().url()).searchParams.get('log') ?? '']
    return route.fulfill(text === undefined ? { status: 404, json: { detail: 'there is no such log' } } : { json: { text, next_offset: null, log_files: [] } })
  })
}

pageTest('a verified change shows its patch side by side, beside the tests that decide', async ({ bench, open }) => {
  const { page } = await open('/runs')
  await serveLogs(page, { 'agent/trajectory.json': TRAJECTORY })
  const { address } = await serve(page, bench, [verified()])
  await go(page, address)
  await settled(page)
  const result = await page.getByRole('region', { name: 'Result of the verification' }).innerText()
  for (const text of ['Unresolved', '3 of 5', 'exit code 1', 'podman 5.4.2', 'jefzda/sweap-images:demo.count', 'it said that the task is complete']) assert.ok(result.includes(text), text)
  const patch = page.getByRole('region', { name: 'Patch' })
  assert.deepEqual(await patch.locator('summary').allInnerTexts(), ['src/count.py +1 −1', 'notes.txt new, +1 −0'])
  const row = patch.locator('tbody tr').nth(1)
  assert.match(await row.locator('td').nth(1).innerText(), /removed:\s+return len\(lines\) - 1/)
  assert.match(await row.locator('td').nth(3).innerText(), /return len\(lines\) {2}# <img/)

  const fix = page.getByRole('region', { name: 'Tests to fix' })
  assert.match(await fix.innerText(), /fail_to_pass: 1 of 2 passed[^]*1 test did not pass[^]*✗ failed\s+test_count\.py::test_all <img[^]*1 test passed/)
  await fix.getByText('1 test passed').click()
  await fix.getByText('test_count.py::test_some').waitFor()
  assert.match(await page.getByRole('region', { name: 'Tests to keep' }).innerText(), /✗ missing\s+test_other\.py::test_gone/)
  const places = await Promise.all([patch, page.getByRole('region', { name: 'Required tests' })].map((part) => part.boundingBox()))
  assert.ok(places[0] && places[1] && places[1].x >= places[0].x + places[0].width && places[1].y === places[0].y, 'they are beside each other')

  await page.getByText('verification/stdout.log').click()
  await page.getByText('test_all FAILED <img').waitFor()
  const turns = page.getByRole('region', { name: 'Turn by turn' })
  await turns.getByText('cat src/count.py').first().waitFor()
  assert.equal(await turns.locator('.turn-list > li').count(), 2)
  assert.equal(await page.getByRole('main').locator('img, script').count(), 0)
  assert.deepEqual(await seriousFindings(page), [])
  assert.deepEqual(await strayWords(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'a verified change')
})

pageTest('changes without results, empty ones and those that are no diff say so', async ({ bench, open }) => {
  const none = { fail_to_pass: undefined, pass_to_pass: undefined }
  const { page } = await open('/runs')
  const { address } = await serve(page, bench, [
    verified({ detail: none, verification: { logs: [], timed_out: true }, sample: { reason: 'The tests left no results.' } }),
    verified({ detail: none }),
    verified({ patch: '', sample: { outcome: 'no-answer' } }),
    verified({ patch: 'I changed nothing, sorry.' }),
    verified({ detail: { ...none, resolved: undefined }, verification: { logs: [], exception: { name: 'ImageError', message: 'the image could not be pulled' } }, sample: { outcome: 'infrastructure-error', detail: null } }),
    verified({ detail: { resolved: true, fail_to_pass: { passed: 0, of: 0, tests: [] }, pass_to_pass: { passed: 1, of: 1, tests: [{ name: 'a', status: 'PASSED' }] } }, sample: { outcome: 'correct', score: 1, reason: null } }),
  ])
  const open_ = (/** @type {number} */ sample) => go(page, `${address}?sample=${sample}`)
  await serveLogs(page, { 'agent/trajectory.json': TRAJECTORY })
  await open_(0)
  await page.getByText('The tests left no output.json, so the change counts as unresolved.').waitFor()
  await page.getByText('The verification left no output.').waitFor()
  await page.getByText('the limit was reached').waitFor()
  await open_(1)
  await page.getByText('The results in output.json can’t be used, so the change counts as unresolved.').waitFor()
  await open_(2)
  await page.getByText('There is no change: the tests were run on the base commit.').waitFor()
  await open_(3)
  await page.getByRole('region', { name: 'Patch' }).getByText('I changed nothing, sorry.').waitFor()
  await open_(4)
  await page.getByText('the image could not be pulled').waitFor()
  await page.getByText('The change has no verdict.').waitFor()
  await open_(5)
  await page.getByRole('region', { name: 'Result of the verification' }).getByText('Resolved').waitFor()
  await page.getByRole('region', { name: 'Tests to fix' }).getByText('None.').waitFor()
})

pageTest('a patch of a megabyte and thousands of tests are drawn in parts', async ({ bench, open }) => {
  const lines = 24_000
  const big = `--- a/big.txt\n+++ b/big.txt\n@@ -0,0 +1,${lines} @@\n${Array.from({ length: lines }, (_, i) => `+line ${i} ${'x'.repeat(30)}\n`).join('')}`
  const many = Array.from({ length: 450 }, (_, i) => `--- a/f${i}.txt\n+++ b/f${i}.txt\n@@ -1 +1 @@\n-a${i}\n+b${i}\n`).join('')
  const patch = big + many
  assert.ok(patch.length > 1_000_000)
  const tests = Array.from({ length: 2_000 }, (_, i) => ({ name: `suite_${i}.py::test_${'long_'.repeat(40)}${i}`, status: i < 150 ? 'FAILED' : 'PASSED' }))
  const detail = { fail_to_pass: { passed: 1_850, of: 2_500, tests }, pass_to_pass: { passed: 0, of: 1, tests: [{ name: 'x', status: 'FAILED' }] } }
  const { page } = await open('/runs')
  await serveLogs(page, { 'agent/trajectory.json': TRAJECTORY, 'patch.diff': patch })
  const { address } = await serve(page, bench, [{ ...verified({ patch: patch.slice(0, 1_000), detail }), cut: ['response'] }])
  await go(page, address)
  await page.getByText('big.txt').waitFor()
  await settled(page)
  const files = page.getByRole('region', { name: 'Patch' })
  assert.equal(await files.locator('details').count(), 200)
  assert.equal(await files.locator('details').first().locator('tr').count(), 0, 'a long file is drawn when it is opened')
  await files.locator('summary').first().click()
  await drawn(files.locator('details').first().locator('tbody tr'), 1_000)
  await files.getByRole('button', { name: 'Show more (23,000 lines)' }).click()
  await drawn(files.locator('details').first().locator('tbody tr'), 2_000)
  await files.getByRole('button', { name: 'Show more files (251)' }).click()
  await files.getByRole('button', { name: 'Show more files (51)' }).click()
  await drawn(files.locator('details'), 451)
  const fix = page.getByRole('region', { name: 'Tests to fix' })
  assert.equal(await fix.locator('li').count(), 100)
  await fix.getByRole('button', { name: 'Show more tests (50)' }).click()
  await drawn(fix.locator('li'), 150)
  await fix.getByText('1,850 tests passed').click()
  await drawn(fix.locator('li'), 250)
  await fix.getByText('500 more tests are counted but not listed; output.json has the results of all.').waitFor()
  await page.setViewportSize(PHONE)
  await assertFits(page, 'a huge change')
})

pageTest('a change is followed through its verification', async ({ bench, open }) => {
  const { page } = await open('/runs')
  await serveLogs(page, { 'agent/trajectory.json': TRAJECTORY })
  const { script, address } = await serve(page, bench, [], { ended: 0 })
  let phase = 'setup'
  const { steps } = JSON.parse(TRAJECTORY)
  await page.route((url) => url.pathname.endsWith('/items/turns'), (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('from') ?? 0)
    const shown = phase === 'setup' ? [] : steps
    return route.fulfill({ json: { run_id: script.run.id, benchmark_name: BENCHMARK, position: 0, sample: 0, phase, agent: 'bash', round: 1, task_step: 0, totals: null, total: shown.length, from, steps: shown.slice(from) } })
  })
  await go(page, address)
  await page.getByText('The image is being fetched, and the repository is being prepared in a container.').waitFor()
  phase = 'verifier'
  await page.getByText('Verification: the tests run on the change in a second container.').waitFor()
  await page.getByRole('region', { name: 'Turn by turn' }).getByText('cat src/count.py').first().waitFor()
})

pageTest('an archive shows conversations and verified changes without a server', async ({ bench, open }) => {
  const { id } = await bench.order({ subset_count: 2 })
  const run = await bench.ended(id)
  const { page } = await open('/verify')
  const item = { item_id: '0', source_id: 'demo', position: 0, sample: 0 }
  const show = (/** @type {string} */ benchmark, /** @type {object} */ sample) => page.evaluate(async ({ benchmark, sample, run }) => {
    const { ArchiveSource, openArchive } = await import(/** @type {any} */ ('/page/js/archive/source.js'))
    const { router } = await import(/** @type {any} */ ('/page/js/core/router.js'))
    const fields = { benchmark_name: benchmark, items: undefined, planned_samples: 1, completed_samples: 1, graded_samples: 1, correct_samples: 0, sampled_items: 1, total_items: 1, options: {} }
    const row = { ...sample, group: null, extracted: null, latency_ms: null, input_tokens: null, output_tokens: null, attempts: 1, item_hash: null }
    const results = { run: { id: run, model_slug: 'model', provider: 'openrouter', user_model: { model: 'openrouter/user-model', generation: {} } }, benchmarks: [fields], rows: [[row]], item: () => sample }
    openArchive(new ArchiveSource(results, { fileName: 'a.zip', verification: { checks: [] } }))
    router.go(`/verify/items/${benchmark}/0?run=${run}`)
  }, { benchmark, sample, run: run.id })
  await show('tau_bench_telecom', { ...item, ...conversation(MESSAGES) })
  await page.getByRole('list', { name: 'Messages' }).getByText('Airplane mode is now OFF.').waitFor()
  await page.getByRole('link', { name: 'openrouter/model with user openrouter/user-model' }).waitFor()
  await page.getByRole('region', { name: 'Environment assertions' }).waitFor()
  assert.deepEqual(await seriousFindings(page), [])
  await show('swe_bench_pro', { ...item, ...verified() })
  await page.getByRole('region', { name: 'Patch' }).getByText('return len(lines) - 1').waitFor()
  await page.getByRole('region', { name: 'Turn by turn' }).getByText('cat src/count.py').first().waitFor()
  await show('swe_bench_pro', { ...item, ...verified({ patch: PATCH.slice(0, 150) }), cut: ['response'] })
  await page.getByText('Only the beginning of the patch is here.').waitFor()
})
