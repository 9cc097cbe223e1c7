/** Writes a picture of every view to target/screenshots, in light and dark and in two widths, and the README's to docs/images. */

import fs from 'node:fs'
import path from 'node:path'
import { ROOT } from './support/bench.js'
import { DESKTOP, PHONE } from './support/browser.js'
import { fillEpisodes, startHost } from './support/episodes.js'
import { follow, go, settled } from './support/navigation.js'
import { compressPng } from './support/png.js'
import { ENVIRONMENT, fillSystem, scheduleEnded, viewsOf } from './support/system.js'
import { closeBrowser, World } from './support/world.js'

/** Items of each run with an own dataset. */
const ITEMS = 450
/** Largest picture of the README in bytes. */
const README_BYTES_MAX = 120_000

const folder = path.join(ROOT, 'target/screenshots')
const images = path.join(ROOT, 'docs/images')
for (const name of [folder, images]) fs.mkdirSync(name, { recursive: true })

const world = await World.start({ environment: ENVIRONMENT })
try {
  const first = await world.open('/')
  await takeAll(first, 'first-visit', async () => {})
  const system = await fillSystem(world.bench, world.model, ITEMS, 3)
  const { page } = first
  for (const [name, address] of viewsOf(system)) await takeAll(first, name, () => go(page, address))
  await takeVerify(first, await world.bench.archive(system.large.id))
  await takeReadme(system)
  system.release()
  await scheduleEnded(world.bench, system.schedule.id)
  await takeAll(first, 'schedule', () => go(page, `/schedules/${system.schedule.id}`))
  await takeEpisodes()
  console.log(`Wrote ${fs.readdirSync(folder).length} pictures to ${folder}`)
  for (const problem of first.guard.problems) console.log(`in the page: ${problem}`)
} finally {
  await world.stop()
  await closeBrowser()
}

/**
 * Takes a view in both widths and both schemes.
 *
 * @param {Awaited<ReturnType<World['open']>>} window
 * @param {string} name
 * @param {() => Promise<unknown>} show goes to the view
 */
async function takeAll({ page }, name, show) {
  for (const size of [DESKTOP, PHONE]) {
    await page.setViewportSize(size)
    await show()
    await settled(page)
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: path.join(folder, `${name}-${size.width}-${colorScheme}.png`), fullPage: true })
    }
  }
}

/**
 * @param {Awaited<ReturnType<World['open']>>} window
 * @param {Buffer} archive
 */
async function takeVerify(window, archive) {
  const { page } = window
  const give = (/** @type {string} */ name, /** @type {Buffer} */ buffer) => async () => {
    await go(page, '/verify')
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/zip', buffer })
    await page.getByRole('region', { name }).waitFor()
  }
  await takeAll(window, 'verify-cut', give('cut.zip', archive.subarray(0, archive.length - 100)))
  await takeAll(window, 'verify-valid', give('results.zip', archive))
  await takeAll(window, 'verify-run', async () => {
    await give('results.zip', archive)()
    await follow(page, () => page.getByRole('link', { name: /Browse the run/ }).click())
  })
}

/** Takes an episode turn by turn with its recording, and the comparison of two agents. They need a sandbox host. */
async function takeEpisodes() {
  const { host, environment } = await startHost()
  const other = await World.start({ environment })
  try {
    const { terminal, bash } = await fillEpisodes(other, host)
    const window = await other.open('/')
    await takeAll(window, 'episode', async () => {
      await go(window.page, `/runs/${terminal.id}/items/terminal_tasks/0?turn=2`)
      await window.page.getByRole('button', { name: /^Load the recording/ }).click()
      await window.page.getByLabel('Position').waitFor()
    })
    await takeAll(window, 'compare-tasks', async () => {
      await go(window.page, `/compare?runs=${terminal.id},${bash.id}`)
      await window.page.getByRole('grid', { name: 'Tasks' }).getByRole('button', { name: /@/ }).first().click()
    })
  } finally {
    await other.stop()
    host.stop()
  }
}

/**
 * Takes the pictures of the README: a run, and a comparison of three.
 *
 * @param {Awaited<ReturnType<typeof fillSystem>>} system
 */
async function takeReadme({ large, small, errors }) {
  const { page } = await world.open('/runs', { viewport: { width: 1280, height: 860 } })
  for (const [name, address] of [['run', `/runs/${small.id}`], ['compare', `/compare?runs=${small.id},${large.id},${errors.id}`]]) {
    await go(page, address)
    await settled(page)
    const file = path.join(images, `${name}.png`)
    fs.writeFileSync(file, compressPng(await page.screenshot()))
    const { size } = fs.statSync(file)
    console.log(`${path.relative(ROOT, file)}: ${Math.round(size / 1000)} KB`)
    if (size > README_BYTES_MAX) throw new Error(`${file} is larger than ${README_BYTES_MAX} bytes`)
  }
}
