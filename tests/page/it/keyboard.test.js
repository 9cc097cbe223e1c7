/** Everything works with a keyboard alone. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { follow, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/**
 * Presses Tab until the focused element matches, and asserts that each focus can be seen.
 *
 * @param {import('playwright-core').Page} page
 * @param {(element: {role: string, name: string, id: string}) => boolean} isWanted
 * @param {string} what
 * @param {string} [key]
 */
async function tabTo(page, isWanted, what, key = 'Tab') {
  const seen = []
  for (let i = 0; i < 250; i += 1) {
    await page.keyboard.press(key)
    const focus = await page.evaluate(() => {
      const element = /** @type {HTMLElement} */ (document.activeElement)
      const style = getComputedStyle(element)
      const box = element.getBoundingClientRect()
      const outlined = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none'
      const label = /** @type {HTMLInputElement} */ (element).labels?.[0]
      const near = label ? getComputedStyle(label) : null
      const ring = outlined || (near !== null && near.outlineStyle !== 'none') || element.closest(':focus-within:not(:focus)')?.matches('[class]')
      return {
        role: element.getAttribute('role') ?? element.tagName.toLowerCase(), id: element.id,
        name: (element.getAttribute('aria-label') ?? label?.textContent ?? element.textContent ?? '').trim().slice(0, 80),
        isVisible: element === document.body || (Boolean(ring) && box.width > 0),
      }
    })
    assert.ok(focus.isVisible, `the focus is visible at ${focus.role} ${focus.name}`)
    if (isWanted(focus)) return focus
    seen.push(`${focus.role} ${focus.name}`)
  }
  throw new Error(`Tab doesn't reach ${what}; it reaches ${seen.slice(0, 60).join(' | ')}`)
}

pageTest('a run is ordered, watched, read and canceled with a keyboard alone', async ({ bench, model, open }) => {
  await bench.ended((await bench.order()).id)
  const { page } = await open('/runs')
  await settled(page)
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main')

  // Order: model by arrow keys, one benchmark, count of items.
  await tabTo(page, ({ name, role }) => role === 'a' && name === 'New run', 'New run', 'Shift+Tab')
  await follow(page, () => page.keyboard.press('Enter'))
  await page.getByRole('heading', { level: 1, name: 'New run' }).waitFor()
  await page.waitForFunction(() => document.activeElement?.closest('main'))
    .catch(() => assert.fail('a new view takes the focus'))
  await tabTo(page, ({ role }) => role === 'combobox', 'the model')
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type('oracle')
  await page.getByRole('option', { name: /oracle/ }).first().waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  assert.match(await page.getByRole('combobox', { name: /model/i }).first().inputValue(), /oracle/)
  await tabTo(page, ({ name }) => /demo/i.test(name), 'demo data')
  if (!await page.evaluate(() => /** @type {HTMLInputElement} */ (document.activeElement).checked)) await page.keyboard.press('Space')
  await tabTo(page, ({ name, role }) => role === 'button' && /^Start/.test(name), 'Start')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()

  // Items: into the table, down, open, next, back to the list.
  await settled(page)
  await tabTo(page, ({ role, name }) => role === 'grid' && /Samples of/.test(name), 'the table of samples')
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await follow(page, () => page.keyboard.press('Enter'))
  const first = page.url()
  assert.match(first, /\/items\//)
  await follow(page, () => page.keyboard.press('j'))
  assert.notEqual(page.url(), first)
  await follow(page, () => page.keyboard.press('k'))
  assert.equal(page.url(), first)
  await follow(page, () => page.keyboard.press('u'))
  assert.match(page.url(), /\/runs\/[0-9a-f-]{36}(\?|$)/)

  // Cancel: a menu and a dialog, which give the focus back.
  const release = model.hold()
  const run = await bench.order({ model_id: 'openai-compatible/held' })
  await page.goto(`/runs/${run.id}`)
  await settled(page)
  const button = await tabTo(page, ({ role, name }) => role === 'button' && /^(Cancel|More|⋯)/.test(name), 'Cancel')
  await page.keyboard.press('Enter')
  if (!/^Cancel/.test(button.name)) {
    for (let i = 0; i < 12 && !await page.evaluate(() => /^Cancel/.test(document.activeElement?.textContent ?? '')); i += 1) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
  }
  await page.getByRole('dialog').waitFor()
  assert.ok(await page.evaluate(() => document.activeElement?.closest('dialog') !== null), 'the dialog has the focus')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ''), /Cancel|More|⋯/, 'the focus is given back')
  release()
}, { timeout: 150_000 })

pageTest('from the first visit to a verified archive with a keyboard alone', async ({ open }) => {
  const { page } = await open('/')
  await settled(page)
  await tabTo(page, ({ name }) => name === 'Run the demo', 'the demo')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await settled(page)
  assert.ok(await page.evaluate(() => document.activeElement?.closest('main') !== null), 'the new view has the focus')
  await tabTo(page, ({ name }) => name === 'What these figures mean', 'the meaning of the figures')
  await page.keyboard.press('Enter')
  await page.getByText('Graded of planned samples').waitFor()
  await tabTo(page, ({ name }) => /^Export/.test(name), 'Export', 'Shift+Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('menuitem', { name: 'Signed archive (ZIP)' }).waitFor()
  for (let i = 0; i < 6 && !await page.evaluate(() => /^Signed archive/.test(document.activeElement?.textContent ?? '')); i += 1) await page.keyboard.press('ArrowDown')
  const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')])
  assert.ok(await page.evaluate(() => /^Export/.test(document.activeElement?.textContent ?? '')), 'the focus is back at the menu')

  await tabTo(page, ({ name, role }) => role === 'a' && name === 'Verify', 'Verify', 'Shift+Tab')
  await follow(page, () => page.keyboard.press('Enter'))
  // From the first listener on, the browser hands choosers over; that takes it a moment.
  const chosen = page.waitForEvent('filechooser')
  await tabTo(page, ({ name }) => name === 'Choose archives', 'the file')
  await page.keyboard.press('Enter')
  const chooser = await chosen
  await chooser.setFiles({ name: 'results.zip', mimeType: 'application/zip', buffer: fs.readFileSync(await download.path()) })
  await page.getByRole('heading', { level: 2, name: 'Valid: results.zip' }).waitFor()
  await tabTo(page, ({ name }) => /^Browse the run/.test(name), 'the run in the archive')
  await follow(page, () => page.keyboard.press('Enter'))
  assert.match(await page.getByRole('region', { name: 'Score' }).innerText(), /100\.0%/)
}, { timeout: 120_000 })
