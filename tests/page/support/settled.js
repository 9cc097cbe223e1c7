/** Waits until a view has loaded what it shows. */

import { idle } from './browser.js'
import { ready } from './page-test.js'

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
