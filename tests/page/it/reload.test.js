/** `bench serve --page FOLDER` loads the page again when a file changes. */

import fs from 'node:fs'
import path from 'node:path'
import { ROOT } from '../support/bench.js'
import { pageTest } from '../support/page-test.js'

pageTest('a changed file reloads the page during development', async ({ bench, open }) => {
  const folder = path.join(bench.folder, 'page')
  fs.cpSync(path.join(ROOT, 'frontend-static'), folder, { recursive: true })
  await bench.stop()
  await bench.start('--page', folder)
  const { page } = await open('/runs')
  await page.evaluate(() => { document.documentElement.dataset.old = 'yes' })
  fs.appendFileSync(path.join(folder, 'css/base.css'), '\n:root { --changed: 1; }\n')
  await page.waitForFunction(() => document.documentElement.dataset.old === undefined && getComputedStyle(document.documentElement).getPropertyValue('--changed').trim() === '1')
})
