/** A run is watched while it is open. */

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { idle } from '../support/browser.js'
import { pageTest } from '../support/page-test.js'

pageTest('counts, rate and remaining time change while a run is open, without a reload', async ({ bench, model, open }) => {
  /** Answers that are on their way. @type {(() => void)[]} */
  const answers = []
  model.answer = ({ text }) => new Promise((resolve) => { answers.push(() => resolve({ text: text.length % 3 ? 'The answer is (A).' : 'I don\'t know.' })) })
  const run = await bench.order({ model_id: 'openai-compatible/slow', subset_count: 28 })
  const { page, guard } = await open(`/runs/${run.id}`)
  await page.evaluate(() => { document.documentElement.dataset.unloaded = 'no' })
  const bar = page.getByRole('progressbar', { name: 'Progress of the run' })
  // Seven of 28 answers arrive at a time, once the page has shown those before.
  const end = Date.now() + 200_000
  for (let left = 28; left > 0; left -= 7) {
    while (answers.length < 7 && Date.now() < end) await sleep(50)
    assert.ok(answers.length >= 7, `only ${answers.length} answers are on their way, of ${left}`)
    const before = await bar.getAttribute('aria-valuenow')
    for (const arrive of answers.splice(0, 7)) arrive()
    while (left > 7 && Date.now() < end && await bar.getAttribute('aria-valuenow') === before) await sleep(100)
  }
  await page.getByRole('heading', { level: 1, name: /Succeeded|Failed/ }).waitFor()
  assert.equal(await page.evaluate(() => document.documentElement.dataset.unloaded), 'no', 'the page was not loaded again')
  await page.getByRole('region', { name: 'Score' }).getByText('95% interval').first().waitFor()
  await page.getByRole('grid', { name: /Samples of/ }).getByRole('row').nth(1).waitFor()
  const before = guard.requests.length
  await sleep(3000)
  assert.ok(guard.requests.length - before <= 1, `a run that is over causes no further requests: ${guard.requests.slice(before)}`)
}, { serve: ['--concurrency', '8'] })

pageTest('a list of runs shows progress and the end of a run in place', async ({ bench, model, open }) => {
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  const { page } = await open('/runs')
  const row = page.getByRole('row', { name: /openai-compatible\/held/ })
  await row.getByRole('progressbar').waitFor()
  await row.evaluate((element) => { element.dataset.same = 'yes' })
  release()
  await bench.ended(run.id)
  await row.getByText('Succeeded').waitFor()
  assert.equal(await row.getAttribute('data-same'), 'yes', 'the row is still the same element')
})

pageTest('a hidden tab asks nothing, and catches up when it is shown', async ({ bench, model, open }) => {
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  const { page, guard } = await open(`/runs/${run.id}`)
  await sleep(1500)
  const hide = (/** @type {boolean} */ hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value })
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (value ? 'hidden' : 'visible') })
    document.dispatchEvent(new Event('visibilitychange'))
  }, hidden)
  await hide(true)
  await idle(page)
  const before = guard.requests.length
  release()
  await bench.ended(run.id)
  await sleep(5000)
  assert.equal(guard.requests.length, before, `requests of a hidden tab: ${guard.requests.slice(before)}`)
  await hide(false)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
})
