/** What a reader can do with a run: cancel, requeue, judge again, name, delete. */

import assert from 'node:assert/strict'
import { pageTest } from '../support/page-test.js'

/**
 * Uses an action of the run view, from its button or from the menu.
 *
 * @param {import('playwright-core').Page} page
 * @param {RegExp} name
 */
async function act(page, name) {
  const button = page.getByRole('main').getByRole('button', { name })
  await page.getByRole('main').getByRole('button', { name: 'More' }).waitFor()
  if (await button.count() > 0) { await button.first().click(); return }
  await page.getByRole('main').getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name }).click()
}

/**
 * @param {import('playwright-core').Page} page
 * @param {RegExp} name
 */
function confirm(page, name) {
  return page.getByRole('dialog').getByRole('button', { name }).click()
}

pageTest('an open run is canceled and requeued', async ({ bench, model, open }) => {
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  const { page } = await open(`/runs/${run.id}`)
  await act(page, /^Cancel/)
  await confirm(page, /^Cancel the run/)
  await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
  assert.equal((await bench.api('GET', `/api/runs/${run.id}`)).status, 'canceled')
  release()
  await act(page, /^Requeue/)
  await confirm(page, /^Requeue/)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
})

pageTest('an old run that is requeued is watched as closely as a new one', async (world) => {
  const { bench, model } = world
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  await bench.api('POST', `/api/runs/${run.id}/cancel`)
  await bench.ended(run.id)
  const { page } = await world.window()
  // Notes how long the page waits before each look at the run.
  await page.addInitScript(() => {
    const wait = window.setTimeout
    /** @type {number[]} */
    const delays = []
    Object.assign(window, { delays, setTimeout: (/** @type {[any, number]} */ ...args) => {
      if (/core\/connection/.test(new Error().stack ?? '')) delays.push(args[1])
      return wait(...args)
    } })
  })
  // An open run without progress, so that only its age says how often to look. It ends at the second look after the requeue.
  let [state, looks] = ['canceled', 0]
  await page.route(new RegExp(`/api/runs/${run.id}$`), async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    if (state === 'queued') looks += 1
    const isOpen = state === 'queued' && looks < 3
    return route.fulfill({ response, json: { ...body, created_at: '2026-01-02T03:04:05Z', status: isOpen ? 'running' : 'canceled', eta_seconds: null,
      error_message: 'Run canceled', completed_at: isOpen ? null : '2026-01-02T03:05:05Z' } })
  })
  await page.route(`**/api/admin/runs/${run.id}/requeue`, (route) => { state = 'queued'; return route.fulfill({ json: {} }) })
  await page.goto(`/runs/${run.id}`)
  const notice = page.getByRole('region', { name: 'Failure' })
  await notice.getByText('Run canceled').waitFor()
  await act(page, /^Requeue/)
  await confirm(page, /^Requeue/)
  await page.getByRole('heading', { level: 1, name: 'Running' }).waitFor()
  assert.equal(await notice.count(), 0, 'the notice is of the time before')
  await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
  const delays = await page.evaluate(() => /** @type {number[]} */ (/** @type {any} */ (window).delays))
  assert.ok(delays.length >= 2 && Math.max(...delays) <= 2000, `it waited for ${delays} ms`)
  release()
})

pageTest('failures are named, and requeued until the run has a score', async ({ bench, model, open }) => {
  model.answer = () => ({ status: 500 })
  const run = await bench.order({ model_id: 'openai-compatible/down' })
  await bench.ended(run.id)
  const { page } = await open(`/runs/${run.id}`)
  await page.getByRole('heading', { level: 1, name: 'Failed' }).waitFor()
  const failure = page.getByRole('region', { name: 'Failure' })
  assert.match(await failure.innerText(), /: 12 infrastructure errors/, 'outcomes have their words')
  assert.match(await failure.innerText(), /Most frequent cause, in 12 samples: HTTP 500/, 'the cause is stated')
  await failure.getByRole('link', { name: 'All errors' }).click()
  await page.getByRole('tab', { name: 'Errors', selected: true }).waitFor()
  await page.getByRole('tabpanel', { name: 'Errors' }).getByRole('cell', { name: /HTTP 500/ }).waitFor()
  model.answer = () => ({ text: 'The answer is (A).' })
  await act(page, /^Requeue failures/)
  await confirm(page, /^Requeue/)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await page.getByRole('region', { name: 'Score' }).getByText('95% interval').first().waitFor()
}, { environment: { WORKER_ITEM_ATTEMPTS: '1' } })

pageTest('single errors of a run that succeeded are requeued', async ({ bench, model, open }) => {
  let asked = 0
  model.answer = () => (asked++ === 3 ? { status: 500 } : { text: 'The answer is (A).' })
  const run = await bench.order({ model_id: 'openai-compatible/flaky' })
  assert.equal((await bench.ended(run.id)).status, 'succeeded')
  const { page } = await open(`/runs/${run.id}`)
  await page.getByRole('region', { name: 'Score' }).getByText(/1 infrastructure.error/i).first().waitFor()
  await act(page, /^Requeue 1 error/)
  await confirm(page, /^Requeue/)
  await page.getByRole('region', { name: 'Score' }).getByText(/infrastructure.error/i).first().waitFor({ state: 'detached' })
  const after = await bench.ended(run.id)
  assert.equal(after.coverage, 1)
}, { environment: { WORKER_ITEM_ATTEMPTS: '1' } })

pageTest('judged answers are judged again in a new run', async ({ bench, open }) => {
  const run = await bench.order({ selected_benchmarks: ['hle'], subset_count: 5 })
  await bench.ended(run.id)
  const { page } = await open(`/runs/${run.id}`)
  await act(page, /^Judge again/)
  await page.getByRole('dialog').getByLabel('Judge', { exact: true }).fill('oracle')
  await confirm(page, /^Judge again/)
  await page.waitForURL((url) => /\/runs\//.test(url.pathname) && !url.pathname.includes(run.id))
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await page.getByText(/Judging 2 of the answers of/).waitFor()
})

pageTest('a run gets a name, tags and notes, and is deleted', async ({ bench, open }) => {
  const run = await bench.order()
  await bench.ended(run.id)
  const { page } = await open(`/runs/${run.id}`)
  await act(page, /^Name, tags/)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('<b>Baseline</b>')
  await dialog.getByLabel('Tags').fill('exp-7, good')
  await dialog.getByLabel('Notes').fill('See the law items.')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('main').getByText('<b>Baseline</b>').first().waitFor()
  const edited = await bench.api('GET', `/api/runs/${run.id}`)
  assert.deepEqual(edited.tags, ['exp-7', 'good'])
  await act(page, /^Delete/)
  await confirm(page, /^Delete the run/)
  await page.waitForURL(/\/runs$/)
  assert.equal((await bench.api('GET', '/api/runs')).total, 0)
})
