/** Conversations of an agent with a simulated user: the thread, the reward's parts, the user model of runs and orders. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { assertFits, seriousFindings, strayWords } from '../support/accessibility.js'
import { COMMAND } from '../support/bench.js'
import { PHONE } from '../support/browser.js'
import { conversation, MESSAGES, STEPS } from '../support/conversations.js'
import { drawn, follow, go, settled } from '../support/navigation.js'
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

  await go(page, `/runs/${script.run.id}/items/${BENCHMARK}/0?sample=1`)
  const thread = page.getByRole('list', { name: 'Messages' })
  await thread.locator('.message').first().waitFor()
  assert.equal(await thread.locator('.message').count(), 500)
  // By keyboard: messages get their true height when they are scrolled into view, which can move a button between mouse down and mouse up.
  await page.getByRole('button', { name: 'Show 500 more of 1,201 messages' }).press('Enter')
  await page.getByRole('button', { name: 'Show 201 more of 1,201 messages' }).press('Enter')
  await drawn(thread.locator('.message'), 1_201)
  const last = thread.locator('.message').last()
  assert.equal(await last.locator('.tool-call').count(), 20)
  await last.getByRole('button', { name: 'Show more tool calls (480)' }).press('Enter')
  await drawn(last.locator('.tool-call'), 220)
  assert.equal((await last.locator('.tool-call pre').nth(1).innerText()).length, 3_000)
  await last.getByRole('button', { name: 'Show all (5,000 characters)' }).first().press('Enter')
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

pageTest('a right conversation is read on the server, and from its archive', async ({ bench, open }) => {
  const { id } = await bench.order({ selected_benchmarks: [BENCHMARK], subset_count: 1, samples: 1 })
  const run = await bench.ended(id)
  assert.equal(run.overall_score, 1, run.error_message ?? '')
  const { items: { items: [item] } } = await bench.api('GET', `/api/runs/${id}/benchmarks/${BENCHMARK}?limit=1`)
  const { page } = await open(`/runs/${id}/items/${BENCHMARK}/${item.item_id}`)
  await settled(page)
  const thread = page.getByRole('list', { name: 'Messages' })
  const untimed = (/** @type {string} */ text) => text.replaceAll(/\d+:\d\d:\d\d\s[AP]M/g, '')
  const shown = (await thread.locator('.message').allInnerTexts()).map(untimed)
  const spoken = item.judge_output.dialogue.messages.filter((/** @type {{role: string}} */ { role }) => role !== 'tool')
  assert.equal(shown.length, spoken.length)
  for (const { content } of item.judge_output.dialogue.messages) assert.ok(!content || shown.some((text) => text.includes(content)), content)
  await page.getByRole('region', { name: 'Environment assertions' }).locator('code').first().waitFor()
  await page.getByText('agent/trajectory.json').click()
  await page.getByText('"schema_version": "ATIF').waitFor()

  const { page: other } = await open('/verify')
  await other.locator('input[type=file]').first().setInputFiles({ name: 'talk.zip', mimeType: 'application/zip', buffer: await bench.archive(id) })
  await follow(other, () => other.getByRole('link', { name: /Browse the run/ }).click())
  await other.evaluate(async (to) => (await import(/** @type {any} */ ('/page/js/core/router.js'))).router.go(to), `/verify/items/${BENCHMARK}/${item.item_id}?run=${id}`)
  const stored = other.getByRole('list', { name: 'Messages' })
  await stored.waitFor()
  assert.deepEqual((await stored.locator('.message').allInnerTexts()).map(untimed), shown, 'the archive has the same messages')
})

pageTest('the form asks for the user model, and what it orders names both', async ({ bench, model, open }) => {
  const answered = { user: 0, agent: 0 }
  model.answer = ({ model: name, body }) => {
    const own = body.messages.filter(({ role }) => role === 'assistant').length
    answered[name === 'user' ? 'user' : 'agent'] += 1
    return { text: name === 'user' ? (own > 1 ? 'Bye. ###STOP###' : 'My ride doesn’t end.') : 'Please wait.' }
  }
  const { page } = await open(`/new?model=openai-compatible/one&benchmarks=mmlu_pro,${BENCHMARK}&subset_count=1&demo=true`)
  await settled(page)
  const main = page.getByRole('main')
  const field = main.getByRole('combobox', { name: 'Model that simulates users' })
  await field.waitFor()
  const estimate = main.getByRole('region', { name: 'Estimate' })
  await estimate.getByText(`Choose the model that simulates users in ${BENCHMARK}.`).waitFor()
  await main.getByRole('button', { name: 'Start run' }).click()
  await main.locator('[data-path="user_model.model_id"]').getByText(`Choose the model that simulates users in ${BENCHMARK}.`).waitFor()
  assert.equal((await bench.api('GET', '/api/runs')).total, 0)

  // It is needed only where a model is asked, and for conversations.
  await main.getByRole('checkbox', { name: /^τ/ }).uncheck()
  await field.waitFor({ state: 'hidden' })
  await main.getByRole('checkbox', { name: /^τ/ }).check()
  await main.getByRole('checkbox', { name: /^MMLU/ }).uncheck()
  await field.fill('openai-compatible/user')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  await main.getByLabel('Temperature of the user model').fill('0.3')
  await main.getByLabel('Samples per item').fill('1')
  await estimate.getByText('Samples', { exact: true }).waitFor()
  await settled(page)
  assert.deepEqual(await seriousFindings(page), [])
  await page.reload()
  await settled(page)
  assert.equal(await field.inputValue(), 'openai-compatible/user', 'the address keeps it')
  await main.getByText('The same as a command').click()
  await main.locator('.commands pre').first().waitFor()
  const commands = await main.locator('.commands pre').allInnerTexts()
  const command = commands.find((text) => text.startsWith('bench run')) ?? ''
  assert.match(command, /--user-temperature 0\.3 .*--user-model openai-compatible\/user/s)
  await main.getByLabel('Key for the user model').fill('sk-user')
  await main.locator('.commands pre', { hasText: 'x-user-authorization: Bearer $BENCH_USER_API_KEY' }).waitFor()
  await page.setViewportSize(PHONE)
  await assertFits(page, 'the form with a user model')
  await page.setViewportSize({ width: 1280, height: 900 })
  const order = page.waitForRequest((request) => request.method() === 'POST' && new URL(request.url()).pathname.startsWith('/api/runs') && !request.url().includes('estimate'))
  await follow(page, () => main.getByRole('button', { name: 'Start run' }).click())
  assert.equal((await (await order).allHeaders())['x-user-authorization'], 'Bearer sk-user')
  await page.getByRole('heading', { level: 1, name: /^openai-compatible\/one with user openai-compatible\/user/ }).waitFor()
  const { runs: [ordered] } = await bench.api('GET', '/api/runs')
  assert.deepEqual([ordered.user_model.model, ordered.user_model.temperature], ['openai-compatible/user', 0.3])
  await bench.ended(ordered.id)
  assert.ok(answered.user === 3 && answered.agent >= 2, JSON.stringify(answered))
  const { items: { items: [item] } } = await bench.api('GET', `/api/runs/${ordered.id}/benchmarks/${BENCHMARK}?limit=1`)
  await go(page, `/runs/${ordered.id}/items/${BENCHMARK}/${item.item_id}`)
  await page.getByRole('list', { name: 'Messages' }).getByText('My ride doesn’t end.').first().waitFor()
  await page.getByRole('region', { name: 'Result of the conversation' }).getByText('openai-compatible/user').waitFor()

  await promisify(execFile)('bash', ['-c', command.replace(/^bench /, `${JSON.stringify(COMMAND)} `)], { cwd: bench.folder, env: { ...bench.environment, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' } })
  const { runs: [again] } = await bench.api('GET', '/api/runs?limit=1')
  assert.notEqual(again.id, ordered.id)
  assert.deepEqual([again.user_model, again.benchmarks[0].benchmark_name], [ordered.user_model, BENCHMARK], 'the command orders the same')
  await go(page, `/new?from=${ordered.id}`)
  await settled(page)
  assert.equal(await field.inputValue(), 'openai-compatible/user', 'a repeated run keeps it')
}, { timeout: 150_000 })

pageTest('conversations with different users aren’t called comparable', async ({ bench, model, open }) => {
  model.answer = ({ model: name }) => ({ text: name === 'one' ? 'Please wait.' : '###STOP###' })
  const runs = []
  for (const user of ['first', 'second']) {
    const order = /** @type {any} */ ({ model_id: 'openai-compatible/one', selected_benchmarks: [BENCHMARK], subset_count: 1, samples: 1, user_model: { model_id: `openai-compatible/${user}` } })
    runs.push(await bench.ended((await bench.order(order)).id))
  }
  const address = `/compare?runs=${runs.map(({ id }) => id).join(',')}`
  const { page } = await open(address)
  await page.getByRole('heading', { name: 'These runs aren’t fully comparable' }).waitFor()
  await page.getByText(/The runs had different user models: openai-compatible\/first at \S+ and openai-compatible\/second/).waitFor()
  for (const { user_model: user } of runs) await page.getByText(`openai-compatible/one with user ${user?.model}`).first().waitFor()

  const { page: offline } = await open('/verify')
  const files = await Promise.all(runs.map(async ({ id }, i) => ({ name: `${i}.zip`, mimeType: 'application/zip', buffer: await bench.archive(id) })))
  await offline.locator('input[type=file]').first().setInputFiles(files)
  await follow(offline, () => offline.getByRole('link', { name: 'Compare 2 archives' }).click())
  await offline.getByText('The runs had different user models, or other settings of it.').waitFor()
})
