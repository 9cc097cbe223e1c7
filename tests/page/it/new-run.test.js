/** The order form: what it says before anything is paid, and what it sends. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/**
 * Runs a command of the page in a shell, as a reader would paste it.
 *
 * @param {import('../support/bench.js').Bench} bench
 * @param {string} command
 */
async function shell(bench, command) {
  const text = command.replace(/^bench /, `${JSON.stringify((await import('../support/bench.js')).COMMAND)} `)
  return promisify(execFile)('bash', ['-c', text], { cwd: bench.folder, env: { ...bench.environment, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' } })
}

pageTest('an order has an estimate, and its commands order the same run', async ({ bench, open }) => {
  const { page } = await open('/new?model=oracle&benchmarks=mmlu_pro&subset_count=5&subset_seed=page&demo=true')
  await settled(page)
  const main = page.getByRole('main')
  await main.getByRole('checkbox', { name: /MMLU-Pro/ }).first().waitFor()
  assert.ok(await main.getByRole('checkbox', { name: /MMLU-Pro/ }).first().isChecked(), 'the address fills the form')
  await main.getByText(/5 (items|samples)/).first().waitFor()
  await main.getByText('The same as a command').click()
  await main.locator('.commands pre, .commands code').nth(1).waitFor()
  const commands = await main.locator('.commands pre, .commands code').allInnerTexts()
  const bench0 = commands.find((text) => text.startsWith('bench run'))
  const curl = commands.find((text) => text.startsWith('curl'))
  assert.ok(bench0 && curl, `commands: ${commands}`)
  await main.getByRole('button', { name: 'Start run' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
  const first = await bench.ended(/** @type {string} */ (page.url().split('/').pop()))
  await shell(bench, curl)
  await shell(bench, bench0)
  const { runs } = await bench.api('GET', '/api/runs')
  assert.equal(runs.length, 3)
  for (const run of runs) {
    const ended = await bench.ended(run.id)
    for (const name of ['model', 'subset_count', 'subset_seed', 'selected_benchmarks', 'demo', 'generation', 'overall_score']) assert.deepEqual(ended[name], first[name], name)
  }
})

pageTest('a key is kept in memory only', async ({ model, open }) => {
  model.answer = () => ({ text: 'The answer is (A).' })
  const { page, context, guard } = await open('/new?model=openai-compatible/mine&benchmarks=mmlu_pro&subset_count=2&demo=true')
  guard.allow(/40[0-9] \(/)
  await settled(page)
  const main = page.getByRole('main')
  await main.locator('summary', { hasText: /^Key/ }).click()
  await main.locator('input[type=password]:visible').first().fill('sk-secret-0123456789')
  await main.getByText('The same as a command').click()
  await main.locator('.commands pre, .commands code').nth(1).waitFor()
  assert.doesNotMatch(await main.innerText(), /sk-secret/, 'commands name a variable')
  await main.getByRole('button', { name: 'Start run' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
  const stored = JSON.stringify(await context.storageState()) + await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state])) + page.url()
  assert.doesNotMatch(stored, /sk-secret/)
})

pageTest('a refused order says what is wrong at its field', async ({ open }) => {
  const { page, guard } = await open('/new?model=oracle&benchmarks=mmlu_pro&subset_count=5&demo=true')
  guard.allow(/(400|404|422) \(/)
  await settled(page)
  const main = page.getByRole('main')
  const model = main.getByRole('combobox', { name: /model/i }).first()
  await model.fill('nowhere/nothing')
  await page.keyboard.press('Escape')
  await main.getByRole('button', { name: 'Start run' }).click()
  await main.getByText(/nowhere/).or(main.getByRole('alert')).first().waitFor()
  assert.match(page.url(), /\/new/)
  assert.match(await main.innerText(), /unknown|not found|provider/i)
})
