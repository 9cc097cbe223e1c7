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
  const ids = await page.locator('[id]').evaluateAll((list) => list.map(({ id }) => id))
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) findings.push(`${name} has several elements with the id ${id}`)
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
  await go(page, '/new')
  await settled(page)
  await page.getByRole('banner').getByRole('button', { name: /^Key/ }).click()
  await page.getByRole('textbox', { name: 'Key or access token' }).waitFor()
  findings.push(...await findingsOf(page, 'key over a form'))
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

pageTest('names of the API for metrics and categories are shown as words', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ selected_benchmarks: ['mmlu_pro'] })).id)
  const { page } = await open(`/runs/${run.id}?tab=figures`)
  await settled(page)
  const metrics = page.getByRole('table').filter({ has: page.getByRole('rowheader', { name: 'Score of graded samples', exact: true }) })
  for (const name of ['Correct of all', 'Wilson 95% interval · low', 'Clustered by item · mean', 'Time of an answer, ms · median']) {
    await metrics.getByRole('rowheader', { name, exact: true }).waitFor({ state: 'attached' })
  }
  assert.equal(await metrics.getByRole('rowheader').filter({ hasText: '_' }).count(), 0)
  await page.goto('/benchmarks')
  await settled(page)
  await page.getByRole('heading', { name: /^Core benchmarks/ }).waitFor()
  for (const address of ['/benchmarks/mmlu_pro', '/new']) {
    await page.goto(address)
    await settled(page)
    assert.doesNotMatch(await page.getByRole('main').innerText(), /Core Benchmarks/, address)
  }
})

pageTest('a screen reader gets every name once, and every figure its meaning', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order({ subset_count: 3 })).id)
  const { page } = await open('/runs')
  await settled(page)
  await page.getByRole('rowheader', { name: /^oracle/ }).waitFor()
  const theme = page.getByRole('banner').getByRole('button', { name: /^Theme/ })
  assert.notEqual(await theme.getAttribute('title'), await theme.getAttribute('aria-label'), 'the description differs from the name')

  await go(page, `/runs/${run.id}`)
  await settled(page)
  const score = page.getByRole('region', { name: 'Score' })
  assert.equal((await score.ariaSnapshot()).match(/95% interval/g)?.length, 1, 'the interval is named once')
  await score.getByText('What these figures mean').click()
  const text = await score.innerText()
  for (const term of ['DEMO', 'Score', '95% interval', 'Coverage', 'Items, samples', 'Correct']) assert.match(text, new RegExp(`^${term}$`, 'm'), `${term} is explained`)

  await go(page, `/runs/${run.id}/items/mmlu_pro/${(await bench.api('GET', `/api/runs/${run.id}/benchmarks/mmlu_pro`)).items.items[0].item_id}`)
  const previous = page.getByRole('link', { name: 'Previous', exact: true })
  assert.equal(await previous.getAttribute('aria-disabled'), 'true')
  await page.getByRole('link', { name: 'Next', exact: true }).waitFor()

  await go(page, '/docs')
  await settled(page)
  const names = await page.getByRole('button', { name: /^Copy/ }).evaluateAll((list) => list.map((button) => button.getAttribute('aria-label')))
  assert.equal(new Set(names).size, names.length, `each button says what it copies: ${names}`)
})
