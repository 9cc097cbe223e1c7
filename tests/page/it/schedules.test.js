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

pageTest('a change of other options says what becomes of the agent', async ({ open }) => {
  const { page } = await open('/schedules')
  const changesFor = (/** @type {Record<string, string> | null} */ before, /** @type {Record<string, string> | null} */ after) => page.evaluate(async ([from, to]) => {
    const path = '/page/js/views/schedule/order.js'
    const { changes } = await import(path)
    const order = (/** @type {Record<string, string> | null} */ options) => ({
      model_id: 'openrouter/a/b', selected_benchmarks: ['terminal_bench_hard'], ...(options ? { benchmark_options: { terminal_bench_hard: options } } : {}),
    })
    return changes(order(from), order(to))
  }, [before, after])
  const bash = { agent: 'bash', 'agent.max_turns': '3' }
  assert.deepEqual(await changesFor(bash, bash), {})
  assert.deepEqual(await changesFor(bash, null), { benchmark_options: null, agent: null })
  assert.deepEqual(await changesFor(bash, { difficulty: 'easy' }), { benchmark_options: { terminal_bench_hard: { difficulty: 'easy' } }, agent: null })
  assert.deepEqual(await changesFor({ difficulty: 'easy' }, null), { benchmark_options: null })
})

pageTest('a failed run of a schedule is explained once', async ({ bench, open }) => {
  const schedule = await bench.api('POST', '/api/schedules', { name: 'nightly', cron: '30 2 * * *', time_zone: 'UTC', model_id: 'oracle', selected_benchmarks: ['mmlu_pro'], demo: true })
  const error = 'mmlu_pro: only 0 of 20 samples were graded (coverage 0.0%, needed 90.0%): 20 infrastructure-error'
  const { page } = await open('/schedules')
  // The scheduler starts runs once a minute, which is too long for a test.
  await page.route(`**/api/schedules/${schedule.id}/firings?*`, (route) => route.fulfill({ json: {
    next_before: null,
    firings: [{
      planned_at: '2026-11-25T12:46:14Z', status: 'ended', run_id: null, started_at: '2026-11-25T12:46:41Z', ended_at: '2026-11-25T13:01:16Z', run_status: 'failed', score: null,
      error, error_code: 'too_few_graded', overdue_at: null, missed_earlier: 0, comparison: null,
      notices: [{ kind: 'failed', text: `The run of schedule nightly failed: ${error}`, webhook: { state: 'done', error: null }, topic: { state: 'not_wanted', error: null } }],
    }],
  } }))
  await page.getByRole('link', { name: 'nightly' }).click()
  const history = page.getByRole('region', { name: 'History' })
  await history.getByText('20 infrastructure errors').waitFor()
  await history.getByText('The webhook was called.').waitFor()
  assert.equal((await history.innerText()).match(/only 0 of 20/g)?.length, 1)
  await page.getByRole('navigation', { name: 'Place' }).getByRole('link', { name: 'Schedules' }).click()
  await page.getByRole('table', { name: 'Schedules' }).waitFor()
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
