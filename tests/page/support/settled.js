/** Waits until a view has loaded what it shows. */

import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Waits until nothing says that it is being loaded, and no request is on its way.
 *
 * @param {import('playwright-core').Page} page
 */
export async function settled(page) {
  await page.locator('main .view[data-ready]').first().waitFor({ state: 'attached' })
  await page.waitForLoadState('networkidle').catch(() => {})
  await page.waitForFunction(() => !document.querySelector('.state.loading'))
  await sleep(100)
}
