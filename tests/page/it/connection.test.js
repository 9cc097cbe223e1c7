/** The page survives a lost connection and a server that restarts. */

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { pageTest } from '../support/page-test.js'

/** The browser's own notes about requests that find no server. */
const LOST = /net::ERR_(INTERNET_DISCONNECTED|CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|CONNECTION_CLOSED|INCOMPLETE_CHUNKED_ENCODING)/

pageTest('a lost connection is shown, and the page continues by itself', async ({ bench, model, open }) => {
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  const { page, context, guard } = await open(`/runs/${run.id}`)
  guard.allow(LOST)
  await context.setOffline(true)
  const bar = page.getByRole('status').getByText(/offline|no connection/i)
  await bar.first().waitFor()
  await page.getByRole('region', { name: 'Score' }).waitFor()
  release()
  await bench.ended(run.id)
  await context.setOffline(false)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await bar.first().waitFor({ state: 'hidden' })
})

pageTest('a request that the browser ends is sent once more before the page says that it has no connection', async ({ bench, open }) => {
  const run = await bench.order()
  await bench.ended(run.id)
  const { page, guard } = await open('/runs')
  guard.allow(/net::ERR_FAILED/)
  let ended = 0
  await page.route(`**/api/runs/${run.id}`, (route) => (ended++ === 0 ? route.abort() : route.continue()))
  await page.evaluate(() => {
    const seen = /** @type {any} */ (window).seen = /** @type {string[]} */ ([])
    new MutationObserver(() => seen.push(document.body.innerText)).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  await page.getByRole('link', { name: 'oracle', exact: true }).first().click()
  await page.getByRole('region', { name: 'Score' }).waitFor()
  assert.ok(ended > 1)
  const seen = await page.evaluate(() => /** @type {any} */ (window).seen)
  assert.ok(seen.length > 0 && !seen.some((/** @type {string} */ text) => /no connection|can.t be reached/i.test(text)))
})

pageTest('a page whose files can’t be loaded says so, and is loaded again', async (world) => {
  const { page, guard } = await world.window()
  guard.allow(/net::ERR_FAILED/)
  await page.route('**/page/js/core/dom.js', (route) => route.abort())
  await page.goto('/runs')
  await page.getByRole('alert').getByText('A file of this page couldn’t be loaded').waitFor()
  await page.getByRole('button', { name: 'Load the page again' }).waitFor()
  await page.unroute('**/page/js/core/dom.js')
  await page.getByRole('heading', { level: 1 }).waitFor()
})

pageTest('a page with a file that stays away gives up, and has a button', async (world) => {
  const { page, guard } = await world.window()
  guard.allow(/net::ERR_FAILED/)
  await page.addInitScript(() => sessionStorage.setItem('bench-reloads', '3'))
  await page.route('**/page/js/core/dom.js', (route) => route.abort())
  await page.goto('/runs')
  const alert = page.getByRole('alert').getByText('A file of this page couldn’t be loaded')
  await alert.waitFor()
  assert.doesNotMatch(await alert.innerText(), /tries again/)
  await page.unroute('**/page/js/core/dom.js')
  await page.getByRole('button', { name: 'Load the page again' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
})

pageTest('a view that is opened while offline appears when the connection is back', async ({ bench, open }) => {
  const run = await bench.order()
  await bench.ended(run.id)
  const { page, context, guard } = await open('/runs')
  guard.allow(LOST)
  guard.allow(/Failed to fetch dynamically imported module/)
  await page.getByRole('link', { name: 'oracle', exact: true }).first().waitFor()
  await context.setOffline(true)
  await page.getByRole('link', { name: 'oracle', exact: true }).first().click()
  await page.getByRole('alert').getByText(/connection|reach/i).first().waitFor()
  await context.setOffline(false)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
})

pageTest('a server that is killed and started again continues the run under an open page', async ({ bench, model, open }) => {
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  const { page, guard } = await open(`/runs/${run.id}`)
  guard.allow(LOST)
  await page.evaluate(() => { document.documentElement.dataset.unloaded = 'no' })
  await bench.stop('SIGKILL')
  await page.getByRole('status').getByText(/no connection/i).first().waitFor()
  await sleep(1000)
  release()
  await bench.start()
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  assert.equal(await page.evaluate(() => document.documentElement.dataset.unloaded), 'no', 'the page was not loaded again')
  assert.equal(await page.getByRole('status').getByText(/no connection/i).first().isVisible(), false)
}, { timeout: 150_000 })

pageTest('an answer that was on its way keeps the page offline', async ({ open }) => {
  const { page } = await open('/runs')
  const state = await page.evaluate(async () => {
    const loaded = performance.getEntriesByType('resource').map((file) => file.name)
    const module = loaded.find((name) => name.includes('core/connection')) ?? ''
    const { connection } = await import(module)
    const asked = new Date()
    await new Promise((resolve) => setTimeout(resolve, 20))
    dispatchEvent(new Event('offline'))
    const states = []
    connection.restored(asked)
    states.push(connection.state)
    // A server on this machine answers without a network, too.
    connection.restored(new Date())
    states.push(connection.state)
    return states
  })
  assert.deepEqual(state, ['offline', 'online'])
})
