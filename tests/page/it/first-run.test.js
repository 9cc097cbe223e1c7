/** From the first visit to an archive that is verified and browsed. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { idle } from '../support/browser.js'
import { pageTest } from '../support/page-test.js'

pageTest('a reader runs the demo, reads the score, opens an item and verifies the archive', async ({ open }) => {
  const { page, context, guard } = await open('/')
  await page.getByRole('button', { name: 'Run the demo' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()

  const score = page.getByRole('region', { name: 'Score' })
  assert.match(await score.innerText(), /100\.0%/)
  assert.match(await score.innerText(), /mean of 2 benchmark scores/i)
  assert.match(await score.innerText(), /DEMO/, 'demo data is stated at the score')
  const row = page.getByRole('region', { name: 'Benchmarks' }).getByRole('row', { name: /mmlu_pro/ })
  assert.match(await row.innerText(), /100\.0%[^]*95% interval[^]*DEMO/, 'the score has its interval and what to know about it')

  const samples = page.getByRole('grid', { name: /Samples of mmlu_pro/ })
  await samples.getByRole('link').first().click()
  await page.waitForURL(/\/items\/mmlu_pro\//)
  await page.getByRole('heading', { level: 1, name: /^Item .*Correct/ }).waitFor()
  assert.match(await page.getByRole('main').innerText(), /Answer|Response/)
  await page.goBack()

  await page.getByRole('button', { name: 'Export', exact: true }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'), page.getByRole('menuitem', { name: /Signed archive/ }).click(),
  ])
  const file = await download.path()
  assert.match(download.suggestedFilename(), /\.zip$/)

  await page.getByRole('link', { name: 'Verify' }).click()
  await page.waitForURL(/\/verify$/)
  await page.locator('input[type=file][accept*=zip]').setInputFiles({ name: 'results.zip', mimeType: 'application/zip', buffer: fs.readFileSync(file) })
  await page.getByRole('heading', { level: 2, name: /^Valid:/ }).waitFor()
  assert.match(await page.getByRole('main').innerText(), /current key of this server/i, 'the key that signed is named')

  // What was verified is browsed without the server.
  await idle(page)
  await context.setOffline(true)
  guard.allow(/ERR_INTERNET_DISCONNECTED.*icon\.svg/)
  await page.getByRole('link', { name: /browse/i }).first().click()
  await page.waitForURL(/\/verify\/run/)
  assert.match(await page.getByRole('region', { name: 'Score' }).innerText(), /100\.0%/)
})

pageTest('what to know about the only benchmark of a run is said once', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ selected_benchmarks: ['aime_2025'], subset_count: 2 })).id)
  const { page } = await open(`/runs/${run.id}`)
  const score = page.getByRole('region', { name: 'Score' })
  const cautions = score.getByRole('list', { name: 'What to know about this score' })
  await cautions.getByText('DEMO').waitFor()
  await cautions.getByText('prompt: own').waitFor()
  assert.equal(await page.getByRole('region', { name: 'Benchmarks' }).getByRole('row').getByText('DEMO').count(), 0)
})

pageTest('the demo is ordered once, and its error stays until the key changes', async ({ open }) => {
  const { page, guard } = await open('/')
  guard.allow(/429 \(/)
  const main = page.getByRole('main')
  let orders = 0
  /** @type {() => void} */
  let answer = () => {}
  await page.route('**/api/runs', async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    orders += 1
    await new Promise((resolve) => { answer = () => resolve(null) })
    await route.fulfill({ status: 429, json: { detail: 'too many orders', code: 'order_rate_limit' } })
  })
  const change = (/** @type {string | null} */ key) => page.evaluate(async (key) => {
    const [{ api }, { session }] = await Promise.all([import(/** @type {any} */ ('/page/js/core/api.js')), import(/** @type {any} */ ('/page/js/core/session.js'))])
    if (key !== null) api.key = key
    await session.load()
  }, key)
  await main.getByRole('button', { name: 'Run the demo' }).click()
  const pending = main.getByRole('button', { name: 'Starting…' })
  await pending.waitFor()
  for (const key of ['sk-other', null]) {
    await change(key)
    assert.ok(await pending.isDisabled(), 'an order is on its way')
  }
  answer()
  const refusal = main.getByText('too many orders')
  await refusal.waitFor()
  assert.ok(await main.getByRole('button', { name: 'Run the demo' }).isEnabled())
  await change(null)
  assert.equal(await refusal.count(), 1, 'the state of the sign-in doesn\'t hide it')
  await change('')
  assert.equal(await refusal.count(), 0)
  assert.equal(orders, 1)
})
