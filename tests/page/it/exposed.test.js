/** A server that other machines reach: reading is open, orders and actions need a key that is typed in the page. */

import assert from 'node:assert/strict'
import { follow, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

const SECRET = 'operator-secret-0123456789abcdef'
/** The browser's own notes about requests that the server refuses. */
const REFUSED = /40[13] \((Unauthorized|Forbidden)\)/

/** Makes an access token. @param {import('../support/bench.js').Bench} bench @param {object} entry */
async function makeToken(bench, entry) {
  const response = await fetch(`${bench.origin}/api/admin/access`, {
    method: 'POST', headers: { 'content-type': 'application/json', 'x-admin-secret': SECRET }, body: JSON.stringify(entry),
  })
  assert.ok(response.ok, `the token: ${response.status}`)
  return (await response.json()).token
}

/** Types into the dialog of the header. @param {import('playwright-core').Page} page @param {string} label @param {string} value */
async function enter(page, label, value) {
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  await dialog.getByRole('textbox', { name: label }).fill(value)
  await dialog.getByRole('button', { name: 'Use' }).click()
  await dialog.waitFor({ state: 'detached' })
}

const OPTIONS = { serve: ['--host', '0.0.0.0'], environment: { ADMIN_SECRET: SECRET }, timeout: 120_000 }

pageTest('a first visit to a server of others asks for a token, and runs the demo with it', async ({ bench, open }) => {
  const { page, guard } = await open('/')
  guard.allow(REFUSED)
  const main = page.getByRole('main')
  const demo = main.getByRole('button', { name: 'Run the demo' })
  const reason = main.getByText('On this server, only its operator and listed callers may run the demo.')
  await reason.waitFor()
  assert.ok(await demo.isDisabled())
  await main.getByRole('button', { name: 'Enter key' }).click()
  await enter(page, 'Key or access token', await makeToken(bench, { name: 'guest' }))
  await page.getByRole('banner').getByRole('button', { name: 'Key set' }).waitFor()
  assert.equal(await reason.count(), 0)
  await demo.click()
  await reason.waitFor()
  await main.getByRole('button', { name: 'Enter key' }).click()
  await enter(page, 'Key or access token', await makeToken(bench, { name: 'lab', oracle: true }))
  await reason.waitFor({ state: 'detached' })
  await demo.click()
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await main.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: /^Delete/ }).waitFor()
}, OPTIONS)

pageTest('a wrong key is refused where it is entered, and a stored one that was revoked is noticed', async ({ bench, open }) => {
  const { page, context, guard } = await open('/runs')
  guard.allow(REFUSED)
  const banner = page.getByRole('banner')
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  await banner.getByRole('button', { name: 'Key', exact: true }).click()
  const field = dialog.getByRole('textbox', { name: 'Key or access token' })
  for (const [key, refusal] of /** @type {[string, RegExp][]} */ ([['bra_0000', /token is unknown, was revoked or has expired/], ['my key', /This is not a key/], ['ключ', /This is not a key/]])) {
    await field.fill(key)
    await dialog.getByRole('button', { name: 'Use' }).click()
    await dialog.getByRole('alert').filter({ hasText: refusal }).waitFor()
  }
  await banner.getByRole('button', { name: 'Key', exact: true, includeHidden: true }).waitFor({ state: 'attached' })

  // A provider's key is known to its provider only.
  await enter(page, 'Key or access token', 'sk-unknown')
  await page.getByText('Key set. No run of this server belongs to it yet; its provider checks it when you start a run.').waitFor()

  const token = await makeToken(bench, { name: 'lab', oracle: true })
  const second = await context.newPage()
  await go(second, '/runs')
  await banner.getByRole('button', { name: 'Key set' }).click()
  await dialog.getByLabel('Keep it in this browser').check()
  await enter(page, 'Key or access token', token)
  await page.getByText('Access token accepted.').waitFor()
  await second.getByRole('banner').getByRole('button', { name: 'Key set' }).waitFor()
  const headers = { 'x-admin-secret': SECRET }
  const { entries } = await (await fetch(`${bench.origin}/api/admin/access`, { headers })).json()
  await fetch(`${bench.origin}/api/admin/access/${entries[0].id}`, { method: 'DELETE', headers })
  await go(page, '/runs')
  await banner.getByRole('button', { name: 'Key refused' }).waitFor()
  await page.getByText(/The server refuses your key/).waitFor()
  assert.match(JSON.stringify(await context.storageState()), /bra_/)
  // Without the key, the page is as for everybody else.
  await banner.getByRole('button', { name: 'Key refused' }).click()
  await enter(page, 'Key or access token', '')
  await page.getByText('Key removed.').waitFor()
  for (const window of [page, second]) await window.getByRole('banner').getByRole('button', { name: 'Key', exact: true }).waitFor()
  assert.doesNotMatch(JSON.stringify(await context.storageState()), /bra_/)
}, OPTIONS)

pageTest('an order without a key says so at the field, and a token from the header answers it', async ({ bench, model, open }) => {
  model.answer = () => ({ text: 'The answer is (A).' })
  const { page, context, guard } = await open('/new?model=openai-compatible/mine&benchmarks=mmlu_pro&subset_count=2&demo=true')
  guard.allow(REFUSED)
  await settled(page)
  const main = page.getByRole('main')
  await main.getByRole('button', { name: 'Start run' }).click()
  const key = main.getByRole('textbox', { name: /^Key for this run/ })
  await main.getByText('This server starts runs only with a key: enter one.').waitFor()
  assert.equal(await key.getAttribute('aria-invalid'), 'true')
  await page.getByRole('banner').getByRole('button', { name: 'Key' }).click()
  await enter(page, 'Key or access token', await makeToken(bench, { name: 'short', expires_in_seconds: 60 }))
  assert.equal(await key.getAttribute('aria-invalid'), null, 'the key of the header answers the problem')
  await key.fill('bra_0000')
  await main.getByRole('button', { name: 'Start run' }).click()
  await main.locator('[aria-invalid]').waitFor()
  assert.match(await main.innerText(), /token/i, 'an unknown token is named as such')
  await key.fill(await makeToken(bench, { name: 'ci' }))
  await main.getByRole('button', { name: 'Start run' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await page.getByRole('main').getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: /^Name, tags/ }).waitFor()
  await page.keyboard.press('Escape')
  assert.doesNotMatch(JSON.stringify(await context.storageState()), /bra_/, 'the token stays in memory')

  // Somebody else reads the run, and can't change it.
  const stranger = await open(page.url())
  const others = stranger.page.getByRole('main')
  await settled(stranger.page)
  assert.match(await others.getByRole('region', { name: 'Score' }).innerText(), /95% interval/)
  await others.getByRole('button', { name: 'More' }).click()
  assert.deepEqual(await stranger.page.getByRole('menuitem').allInnerTexts(), ['Commands for this run'])
  await stranger.page.keyboard.press('Escape')
  await others.getByRole('button', { name: 'Enter key for actions' }).waitFor()
  await go(stranger.page, '/runs?owner=me')
  await others.getByText(/doesn’t know which runs are yours/).waitFor()
  await go(stranger.page, '/ops')
  await others.getByText('Runs are listed for the operator of this server only.').waitFor()
  assert.doesNotMatch(await others.innerText(), /No run is over yet/)

  // The operator may act on every run. A wrong secret is refused where it is entered.
  stranger.guard.allow(REFUSED)
  await stranger.page.getByRole('banner').getByRole('button', { name: /^Key/ }).click()
  const dialog = stranger.page.getByRole('dialog', { name: 'Your key' })
  await dialog.getByRole('textbox', { name: 'Operator\'s secret' }).fill('wrong')
  await dialog.getByRole('button', { name: 'Use' }).click()
  assert.match(await dialog.getByRole('alert').innerText(), /^Invalid admin secret\. Enter the operator/)
  await stranger.page.getByRole('banner').getByRole('button', { name: 'Key', exact: true, includeHidden: true }).waitFor({ state: 'attached' })
  await enter(stranger.page, 'Operator\'s secret', SECRET)
  await follow(stranger.page, () => stranger.page.getByRole('banner').getByRole('link', { name: 'Runs', exact: true }).click())
  await follow(stranger.page, () => others.getByRole('link', { name: 'openai-compatible/mine' }).click())
  await others.getByRole('button', { name: 'More' }).click()
  await stranger.page.getByRole('menuitem', { name: /^Delete/ }).click()
  await stranger.page.getByRole('dialog').getByRole('button', { name: 'Delete the run' }).click()
  await stranger.page.waitForURL(/\/runs$/)
}, OPTIONS)
