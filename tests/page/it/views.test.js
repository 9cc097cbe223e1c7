/** Every view: accessible in light and dark, as wide as a phone, without a dead link. */

import assert from 'node:assert/strict'
import { PHONE } from '../support/browser.js'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { go, pageTest } from '../support/page-test.js'
import { ENVIRONMENT, fillSystem, viewsOf } from '../support/system.js'
import { settled } from '../support/settled.js'

/** The browser's own note about the run that doesn't exist. */
const NOT_FOUND = /404 \(Not Found\).*00000000-0000-4000/

pageTest('every view has no serious finding of axe-core, fits a phone, and its links lead to views', async ({ bench, model, open }) => {
  const first = await open('/')
  await settled(first.page)
  const findings = (await seriousFindings(first.page)).map((finding) => `first visit: ${finding}`)
  const system = await fillSystem(bench, model)
  const views = viewsOf(system)
  const { page, guard } = await open('/runs')
  const phone = await open('/runs', { viewport: PHONE })
  for (const { guard: each } of [{ guard }, phone]) each.allow(NOT_FOUND)
  /** @type {Map<string, string>} */
  const links = new Map()
  /** @type {string[]} */
  const wide = []
  for (const [name, address] of views) {
    await go(page, address)
    await settled(page)
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      await page.emulateMedia({ colorScheme })
      for (const finding of await seriousFindings(page)) findings.push(`${name}, ${colorScheme}: ${finding}`)
    }
    assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, `${name} has one main heading`)
    assert.match(await page.title(), / · Bench Runner$/, name)
    for (const href of await page.locator('a[href^="/"]').evaluateAll((list) => list.map((a) => a.getAttribute('href') ?? ''))) {
      if (!links.has(href)) links.set(href, name)
    }
    await go(phone.page, address)
    await settled(phone.page)
    await assertFits(phone.page, name).catch((error) => wide.push(error.message))
    for (const finding of await seriousFindings(phone.page)) findings.push(`${name}, phone: ${finding}`)
  }
  assert.deepEqual(findings, [])
  assert.deepEqual(wide, [])
  await followLinks(page, links)
  system.release()
}, { environment: ENVIRONMENT, timeout: 240_000 })

/**
 * Opens one link of each kind (ids left out), and asserts that it leads to a view or a file.
 *
 * @param {import('playwright-core').Page} page
 * @param {Map<string, string>} links addresses, with a view that has them
 */
async function followLinks(page, links) {
  const kinds = new Map([...links].map(([href, from]) => [href.replace(/[0-9a-f-]{36}/g, 'ID').replace(/\/\d+/g, '/N').replace(/=[^&]*/g, '='), { href, from }]))
  for (const { href, from } of kinds.values()) {
    const accept = { accept: 'text/html' }
    const response = await page.request.get(href, { headers: accept })
    assert.ok(response.ok() || href.includes('00000000'), `${href} in ${from}: ${response.status()}`)
    if (!(response.headers()['content-type'] ?? '').startsWith('text/html')) continue
    await go(page, href)
    await settled(page)
    const text = await page.getByRole('main').innerText()
    assert.doesNotMatch(text, /Nothing is here|This didn't work|Item not found/, `${href} in ${from}`)
  }
}
