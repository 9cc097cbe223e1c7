/** Ways from view to view, each of which waits until the view is complete. */

import assert from 'node:assert/strict'

import { idle } from './browser.js'

/**
 * Goes to an address, and waits until its view is complete.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} address
 */
export async function go(page, address) {
  await page.goto(address)
  await ready(page)
}

/**
 * Waits until the present view is complete.
 *
 * @param {import('playwright-core').Page} page
 */
export async function ready(page) {
  await page.locator('main .view[data-ready]').first().waitFor({ state: 'attached' })
}

/**
 * Does something that leads to another view, and waits until that one is complete.
 *
 * @param {import('playwright-core').Page} page
 * @param {() => Promise<unknown>} act
 */
export async function follow(page, act) {
  await page.evaluate(() => { for (const view of document.querySelectorAll('main .view')) view.setAttribute('data-left', '') })
  await act()
  await page.locator('main .view[data-ready]:not([data-left])').first().waitFor({ state: 'attached' })
}

/**
 * Waits until no request is on its way, and nothing says that it is being loaded.
 *
 * @param {import('playwright-core').Page} page
 */
export async function settled(page) {
  await ready(page)
  await idle(page)
  await page.waitForFunction(() => !document.querySelector('.state.loading'))
}

/**
 * Checks the number of elements once at least this many are drawn: a click may return before a slow page has drawn what it shows.
 *
 * @param {import('playwright-core').Locator} elements
 * @param {number} count at least 1
 */
export async function drawn(elements, count) {
  await elements.nth(count - 1).waitFor({ state: 'attached' })
  assert.equal(await elements.count(), count)
}
