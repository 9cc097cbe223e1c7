/** Conversations of an agent with a simulated user: the thread, the reward's parts, the user model of runs and orders. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings, strayWords } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { conversation, MESSAGES, STEPS } from '../support/conversations.js'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { scriptedRun, serveRun } from '../support/tasks.js'

const BENCHMARK = 'tau_bench_telecom'

/**
 * Makes a scripted run of conversations.
 *
 * @param {import('../support/bench.js').Bench} bench
 * @param {object} [options]
 */
async function talks(bench, options = {}) {
  const { id } = await bench.order({ subset_count: 2 })
  const script = scriptedRun(await bench.ended(id), { tasks: ['calls', 'more'], samples: 4, benchmark: BENCHMARK, ...options })
  Object.assign(script.run, { model: 'openrouter/model', user_model: { model: 'openrouter/user-model', temperature: 0, seed: null, max_tokens: null } })
  return script
}

pageTest('a conversation is one thread with tools of both sides and the parts of its reward', async ({ bench, open }) => {
  const script = await talks(bench)
  const { page } = await open('/runs')
  await serveRun(page, script, { texts: () => conversation(MESSAGES) })
  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0`)
  await settled(page)
  const thread = page.getByRole('list', { name: 'Messages' })
  assert.equal(await thread.locator('.message').count(), 6)
  assert.deepEqual(await thread.locator('.message-link').allInnerTexts(), ['Agent #1', 'User simulator #2', 'Agent #3', 'Agent #4', 'User simulator #5', 'User simulator #6'])
  const third = thread.locator('.message').nth(2)
  const calls = third.getByRole('list', { name: 'Tool calls of the agent' }).getByRole('listitem')
  assert.equal(await calls.count(), 2)
  assert.match(await calls.first().innerText(), /get_customer\s+\{"phone":"555-0101"\}\s+Result\s+\{"customer_id": "C7"\}/)
  assert.match(await calls.nth(1).innerText(), /get_line\s+Failed\s+Error\s+Error: the argument line_id is missing <img/)
  assert.match(await third.locator('.message-figures').innerText(), /^2,400 → 31 tokens · \$0\.01\S* · 2\.3 s · /)
  await third.getByText('Reasoning').click()
  await third.getByText('I look the customer up.').waitFor()
  await thread.getByRole('list', { name: 'Tool calls of the user' }).getByText('Airplane mode is now OFF.').waitFor()
  assert.equal(await thread.locator('.message').nth(3).locator('strong').innerText(), 'airplane mode', 'texts of the agent are formatted')

  const result = page.getByRole('region', { name: 'Result of the conversation' })
  const said = await result.innerText()
  for (const text of ['user_stop', 'the user ended it', 'openrouter/user-model', 'trial 1, seed 626729', '2,400 → 31', '900 → 20', 'tau2 1.0.1 (0123abcd)']) assert.ok(said.includes(text), text)
  const assertions = page.getByRole('region', { name: 'Environment assertions' })
  assert.match(await assertions.innerText(), /✗ 0[^]*✗\s+Missed:\s+assert_line_active [^]*must be false, of the agent[^]*✓\s+Met:\s+assert_service_status/)
  await page.getByRole('region', { name: 'Actions' }).getByText('by the user').waitFor()
  assert.match(await page.getByRole('region', { name: 'Database' }).innerText(), /not part of this reward/)
  assert.equal(await page.getByRole('main').locator('img, script').count(), 0)
  assert.doesNotMatch(await page.title(), /broken/)

  // Keys move from message to message, and the address names one.
  await page.locator('body').press('n')
  await page.locator('body').press('n')
  assert.match(page.url(), /[?&]message=2$/)
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'User simulator #2')
  await page.locator('body').press('p')
  assert.match(page.url(), /[?&]message=1$/)
  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0?message=5`)
  await thread.locator('.message[aria-current]').getByText('User simulator #5').waitFor()
  assert.deepEqual(await seriousFindings(page), [])
  assert.deepEqual(await strayWords(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'a conversation')
})

pageTest('conversations without messages, without a reward, and huge ones are shown', async ({ bench, open }) => {
  const script = await talks(bench)
  const { page } = await open('/runs')
  const many = Array.from({ length: 1_200 }, (_, i) => (i % 2 === 0 ? { role: 'assistant', content: `Question ${i}. ${'word '.repeat(400)}` } : { role: 'user', content: `Answer ${i}` }))
  const calls = Array.from({ length: 500 }, (_, i) => ({ id: `c${i}`, name: `tool_${i}`, arguments: { x: 'y'.repeat(100) } }))
  /** @type {object[]} */
  const given = [
    conversation([], { reward: null, reward_info: null, termination: '', user_model: 'none' }),
    conversation([...many, { role: 'assistant', content: '', tool_calls: calls }, ...calls.map(({ id }) => ({ role: 'tool', id, content: 'z'.repeat(5_000) })), { omitted_messages: 7 }]),
    conversation([{}, { role: 'odd' }, { role: 'tool', content: 'nothing asked for this' }, { role: 'user', content: 5, tool_calls: [{}] }], { reward_info: { info: { note: 'Simulation ended early.' } } }),
  ]
  await serveRun(page, script, { texts: ({ sample }) => given[sample] })
  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0`)
  await page.getByText('It has no messages.').waitFor()
  await page.getByRole('region', { name: 'Result of the conversation' }).getByText('no model').waitFor()
  assert.equal(await page.getByRole('heading', { name: 'Parts of the reward' }).count(), 0)

  const before = Date.now()
  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0?sample=1`)
  const thread = page.getByRole('list', { name: 'Messages' })
  await thread.locator('.message').first().waitFor()
  assert.ok(Date.now() - before < 10_000, `${Date.now() - before} ms`)
  assert.equal(await thread.locator('.message').count(), 500)
  await page.getByRole('button', { name: 'Show 500 more of 1,201 messages' }).click()
  await page.getByRole('button', { name: 'Show 201 more of 1,201 messages' }).click()
  assert.equal(await thread.locator('.message').count(), 1_201)
  const last = thread.locator('.message').last()
  assert.equal(await last.locator('.tool-call').count(), 20)
  await last.getByRole('button', { name: 'Show more tool calls (480)' }).click()
  assert.equal(await last.locator('.tool-call').count(), 220)
  assert.equal((await last.locator('.tool-call pre').nth(1).innerText()).length, 3_000)
  await last.getByRole('button', { name: 'Show all (5,000 characters)' }).first().click()
  assert.equal((await last.locator('.tool-call pre').nth(1).innerText()).length, 5_000)
  await page.getByText('7 more messages were left out: the conversation is too long.').waitFor()
  await page.setViewportSize(PHONE)
  await assertFits(page, 'a huge conversation')

  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0?sample=2`)
  assert.equal(await thread.locator('.message').count(), 1, 'what is no message is left out')
  await page.getByText('Simulation ended early.').waitFor()
})

pageTest('a conversation is followed while it runs', async ({ bench, open }) => {
  const script = await talks(bench, { ended: 0 })
  const { page } = await open('/runs')
  await serveRun(page, script, { texts: () => (script.run.completed_at ? conversation(MESSAGES) : {}) })
  let count = 2
  let phase = 'agent'
  await page.route((url) => url.pathname.endsWith('/items/turns'), (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('from') ?? 0)
    const steps = STEPS.slice(0, count)
    return route.fulfill({ json: { run_id: script.run.id, benchmark_name: BENCHMARK, position: 0, sample: 0, phase, agent: null, round: 1, task_step: 0, totals: null, total: steps.length, from, steps: steps.slice(from) } })
  })
  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0`)
  await page.getByText('Agent and user simulator are talking.').waitFor()
  const thread = page.getByRole('list', { name: 'Messages' })
  await thread.getByText('My phone has no signal.').waitFor()
  assert.equal(await thread.locator('.message').count(), 2)
  count = 4
  await thread.getByRole('listitem').getByText('toggle_airplane_mode').waitFor()
  assert.match(await thread.locator('.tool-call').first().innerText(), /get_customer\s+Failed/)
  assert.match(await thread.locator('.tool-call').nth(1).innerText(), /No result yet\./)
  assert.deepEqual(await seriousFindings(page), [])
  phase = 'over'
  script.end(8)
  await page.getByRole('region', { name: 'Result of the conversation' }).waitFor()
})

pageTest('runs, items and leaderboards name the user model beside the model', async ({ bench, open }) => {
  const script = await talks(bench)
  const { page } = await open('/runs')
  await serveRun(page, script, { texts: () => conversation(MESSAGES) })
  await page.route((url) => url.pathname === '/api/runs', (route) => route.fulfill({ json: { runs: [script.run], total: 1, limit: 50, offset: 0, next_cursor: null } }))
  await go(page, '/runs')
  await page.getByRole('link', { name: 'openrouter/model with user openrouter/user-model' }).waitFor()
  await go(page, `/runs/${script.run.id}`)
  await page.getByRole('heading', { level: 1, name: /^openrouter\/model with user openrouter\/user-model/ }).waitFor()
  const entry = { model: 'openrouter/model', run_id: script.run.id, rank_low: 1, rank_high: 1, score: 0.5, interval: { low: 0.4, high: 0.6, method: 'wilson' }, runs: 1, best: null, partial_runs: 0, completed_at: '2026-11-25T08:00:00Z', cost_usd: 1, endpoint_host: null, thinking_level: null, run_name: null, own_endpoint: false }
  const board = { protocol: 'tau2', protocol_name: 'tau2', demo: false, dataset: null, items: 114, dataset_items: 114, samples_per_item: 4, options: {}, judge: null, user_model: 'openrouter/user-model', subset_seed: null, prompt_source: 'official', changed_settings: [], entries: [entry] }
  /** @type {any} */
  const real = await bench.api('GET', '/api/leaderboard?benchmark=mmlu_pro')
  await page.route((url) => url.pathname === '/api/leaderboard', (route) => route.fulfill({ json: { ...real, benchmark_name: BENCHMARK, boards: [board] } }))
  await go(page, `/leaderboard?benchmark=${BENCHMARK}`)
  await page.getByRole('row').getByText('with user openrouter/user-model').waitFor()
  await page.getByText('users simulated by openrouter/user-model').waitFor()
})
