/** Schedules, the leaderboard, operations and the API's description show what the system has. */

import assert from 'node:assert/strict'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

pageTest('a schedule is created, paused and removed', async ({ bench, open }) => {
  const { page } = await open('/schedules')
  await settled(page)
  await page.getByRole('main').getByRole('link', { name: /New schedule/ }).first().click()
  const main = page.getByRole('main')
  await main.getByRole('heading', { level: 1, name: /schedule/i }).waitFor()
  await settled(page)
  await main.getByLabel('Name', { exact: true }).fill('nightly')
  const cron = main.getByLabel(/cron|times/i).first()
  if (await cron.isEditable().catch(() => false)) await cron.fill('30 2 * * *')
  await main.getByRole('combobox', { name: /model/i }).first().fill('oracle')
  await page.keyboard.press('Escape')
  await main.getByRole('button', { name: /^(Create|Add|Save)/ }).first().click()
  await page.waitForURL(/\/schedules\/[0-9a-f-]{36}/)
  await main.getByRole('heading', { level: 1, name: /nightly/ }).waitFor()
  const list = async () => (await bench.api('GET', '/api/schedules')).schedules
  assert.equal((await list()).length, 1)
  await main.getByRole('button', { name: /^Pause/ }).click()
  await main.getByRole('button', { name: /^(Resume|Enable|Continue)/ }).waitFor()
  assert.equal((await list())[0].enabled, false)
  const remove = main.getByRole('button', { name: /^(Remove|Delete)/ })
  await remove.click()
  await page.getByRole('dialog').getByRole('button', { name: /^(Remove|Delete)/ }).click()
  await page.waitForURL(/\/schedules$/)
  assert.equal((await list()).length, 0)
})

pageTest('the description of the API lists every path', async ({ bench, open }) => {
  const { paths } = await bench.api('GET', '/openapi.json')
  const { page } = await open('/docs')
  await settled(page)
  const text = await page.getByRole('main').evaluate((main) => main.textContent ?? '')
  const missing = Object.keys(paths).filter((path) => !text.includes(path))
  assert.deepEqual(missing, [])
})

pageTest('the leaderboard ranks runs with full coverage', async ({ bench, model, open }) => {
  model.answer = ({ model: name }) => ({ text: `The answer is (${name === 'one' ? 'A' : 'B'}).` })
  for (const name of ['one', 'two']) await bench.ended((await bench.order({ model_id: `openai-compatible/${name}`, subset_count: null })).id)
  const { page } = await open('/leaderboard')
  await settled(page)
  await go(page, '/leaderboard?benchmark=mmlu_pro')
  await settled(page)
  const text = await page.getByRole('main').innerText()
  for (const name of ['openai-compatible/one', 'openai-compatible/two']) assert.ok(text.includes(name), `${name} is ranked: ${text.slice(0, 400)}`)
  assert.match(text, /DEMO/)
})
