/** Every view in light and dark: no serious finding of axe-core, one main heading, a title, no stray value. */

import assert from 'node:assert/strict'
import { seriousFindings, strayWords } from '../support/accessibility.js'
import { follow, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { ENVIRONMENT, fillSystem, NOT_FOUND, viewsOf } from '../support/system.js'

/**
 * Checks what a page shows in light and dark.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
async function findingsOf(page, name) {
  const findings = []
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme })
    for (const finding of await seriousFindings(page)) findings.push(`${name}, ${colorScheme}: ${finding}`)
  }
  if (name !== 'docs') for (const line of await strayWords(page)) findings.push(`${name} says ${line}`)
  const headings = await page.getByRole('heading', { level: 1 }).count()
  if (headings !== 1) findings.push(`${name} has ${headings} main headings`)
  if (!/ · Bench Runner$/.test(await page.title())) findings.push(`${name} has the title ${await page.title()}`)
  return findings
}

pageTest('every view is accessible', async ({ bench, model, open }) => {
  const { page, guard } = await open('/')
  guard.allow(NOT_FOUND)
  await settled(page)
  const findings = await findingsOf(page, 'first visit')
  const system = await fillSystem(bench, model)
  for (const [name, address] of viewsOf(system)) {
    await go(page, address)
    await settled(page)
    findings.push(...await findingsOf(page, name))
  }
  assert.equal(findings.join('\n'), '')
  system.release()
}, { environment: ENVIRONMENT, timeout: 240_000 })

pageTest('tabs, menus, dialogs, verdicts and archives are accessible', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ selected_benchmarks: ['mmlu_pro', 'ifbench'] })).id)
  const { page } = await open(`/runs/${run.id}`)
  await settled(page)
  const findings = []
  for (const tab of await page.getByRole('tab').all()) {
    await tab.click()
    findings.push(...await findingsOf(page, `tab ${await tab.textContent()}`))
  }
  await page.getByRole('button', { name: 'Export', exact: true }).click()
  findings.push(...await findingsOf(page, 'menu'))
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: /^Name, tags/ }).click()
  findings.push(...await findingsOf(page, 'dialog'))
  await page.keyboard.press('Escape')
  await page.getByRole('banner').getByRole('button', { name: /^Key/ }).click()
  findings.push(...await findingsOf(page, 'key'))
  await page.keyboard.press('Escape')
  const archive = await bench.archive(run.id)
  await go(page, '/verify')
  for (const [name, buffer] of /** @type {[string, Buffer][]} */ ([['changed.zip', archive.subarray(0, 4000)], ['valid.zip', archive]])) {
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/zip', buffer })
    await page.getByRole('region', { name }).waitFor()
    findings.push(...await findingsOf(page, name))
  }
  await follow(page, () => page.getByRole('link', { name: /Browse the run/ }).click())
  findings.push(...await findingsOf(page, 'archive'))
  await follow(page, () => page.getByRole('grid').getByRole('link').first().click())
  findings.push(...await findingsOf(page, 'item of an archive'))
  assert.equal(findings.join('\n'), '')
}, { timeout: 120_000 })
