/** Every view on a phone, and every link that views have. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { ENVIRONMENT, fillSystem, NOT_FOUND, viewsOf } from '../support/system.js'

pageTest('every view fits a phone, and its links lead to views', async ({ bench, model, open }) => {
  const { page, guard } = await open('/', { viewport: PHONE })
  guard.allow(NOT_FOUND)
  /** @type {string[]} */
  const findings = []
  const look = async (/** @type {string} */ name) => {
    await settled(page)
    await assertFits(page, name).catch((error) => findings.push(error.message))
    for (const finding of await seriousFindings(page)) findings.push(`${name}: ${finding}`)
  }
  await look('first visit')
  const system = await fillSystem(bench, model)
  /** Addresses, with a view that has them. @type {Map<string, string>} */
  const links = new Map()
  for (const [name, address] of viewsOf(system)) {
    await go(page, address)
    await look(name)
    for (const href of await page.locator('a[href^="/"]').evaluateAll((list) => list.map((a) => a.getAttribute('href') ?? ''))) {
      if (!links.has(href)) links.set(href, name)
    }
  }
  findings.push(...await followLinks(page, links))
  assert.equal(findings.join('\n'), '')
  system.release()
}, { environment: ENVIRONMENT, timeout: 240_000 })

/**
 * Opens one link of each kind (ids left out), and returns those that lead neither to a view nor to a file.
 *
 * @param {import('playwright-core').Page} page
 * @param {Map<string, string>} links addresses, with a view that has them
 */
async function followLinks(page, links) {
  const kinds = new Map([...links].map(([href, from]) => [href.replace(/[0-9a-f-]{36}/g, 'ID').replace(/\/\d+/g, '/N').replace(/=[^&]*/g, '='), { href, from }]))
  const dead = []
  for (const { href, from } of kinds.values()) {
    const accept = { accept: 'text/html' }
    const response = await page.request.get(href, { headers: accept })
    if (!response.ok()) dead.push(`${href} in ${from}: ${response.status()}`)
    if (!(response.headers()['content-type'] ?? '').startsWith('text/html')) continue
    await go(page, href)
    const text = await page.getByRole('main').innerText()
    if (/Nothing is here|This didn’t work|Not found|Item not found/.test(text)) dead.push(`${href} in ${from}: ${text.slice(0, 100)}`)
  }
  return dead
}

pageTest('on a phone, the selected tab is in sight, and a verdict doesn\'t scroll sideways', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order()).id)
  const { page } = await open(`/runs/${run.id}?tab=settings`, { viewport: PHONE })
  await settled(page)
  const tab = page.getByRole('tab', { name: 'Settings', selected: true })
  const [box, list] = [await tab.boundingBox(), await page.getByRole('tablist').boundingBox()]
  assert.ok(box && list && box.x >= list.x && box.x + box.width <= list.x + list.width + 1, 'the selected tab is in sight')
  assert.equal(await page.evaluate(() => scrollY), 0, 'the page stays at its top')
  await go(page, '/verify')
  await page.locator('input[type=file]').setInputFiles({ name: 'good.zip', mimeType: 'application/zip', buffer: await bench.archive(run.id) })
  const verdict = page.getByRole('region', { name: /good\.zip/ })
  await verdict.waitFor()
  assert.equal(await verdict.locator('.scroll-x').evaluate((e) => e.scrollWidth - e.clientWidth), 0)
  assert.match(await verdict.getByRole('table').innerText(), /Coverage|100\.0%/)
})
