/** The catalog of programming tasks, and orders of some of them by several models and thinking levels. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { promisify } from 'node:util'
import { assertFits, seriousFindings, strayWords } from '../support/accessibility.js'
import { COMMAND } from '../support/bench.js'
import { PHONE } from '../support/browser.js'
import { follow, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

const TASK = 'html_heat_table'
const FOLDER = new URL(`../../../tasks/${TASK}/`, import.meta.url)
const MARKUP = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>'

/** @param {string} name */
const read = (name) => fs.readFileSync(new URL(name, FOLDER), 'utf8')

/**
 * Returns the names of the tasks that the page shows.
 *
 * @param {import('playwright-core').Page} page
 */
async function shownTasks(page) {
  return page.getByRole('table', { name: 'Programming tasks' }).locator('tbody tr:visible th a').allInnerTexts()
}

pageTest('the catalog finds tasks, shows their proofs, and leads to a run of the chosen ones', async ({ bench, open }) => {
  /** @type {Api.CodeTasksView} */
  const { tasks } = await bench.api('GET', '/api/benchmarks/code_lab/tasks')
  const { page, guard } = await open('/benchmarks/code_lab')
  assert.ok(!guard.requests.some((request) => request.endsWith('/tasks')), 'the list is loaded only where it is shown')
  await follow(page, () => page.getByRole('link', { name: `${tasks.length} tasks` }).click())
  assert.equal(new URL(page.url()).pathname, '/benchmarks/code_lab/tasks')
  assert.deepEqual(await shownTasks(page), tasks.map(({ task_id: id }) => id))
  assert.deepEqual(await seriousFindings(page), [])
  assert.deepEqual(await strayWords(page), [])

  const of = (/** @type {(task: Api.CodeTaskView) => boolean} */ isMeant) => tasks.filter(isMeant).map(({ task_id: id }) => id)
  await page.getByLabel('Language').selectOption('go')
  assert.deepEqual(await shownTasks(page), of(({ language }) => language === 'go'))
  const { type } = /** @type {Api.CodeTaskView} */ (tasks.find(({ language }) => language === 'go'))
  await page.getByLabel('Type').selectOption(type)
  const found = of((task) => task.language === 'go' && task.type === type)
  assert.ok(found.length > 0)
  assert.deepEqual(await shownTasks(page), found)
  await page.reload()
  await settled(page)
  assert.deepEqual(await shownTasks(page), found, 'the address keeps the filters')
  await page.getByLabel('Type').selectOption('')
  await page.getByLabel('Language').selectOption('')
  const { difficulty } = tasks[0]
  await page.getByLabel('Difficulty').selectOption(difficulty)
  assert.deepEqual(await shownTasks(page), of((task) => task.difficulty === difficulty))
  await page.getByLabel('Difficulty').selectOption('')
  await page.getByLabel('Search').fill('no such task')
  await page.getByText('No task matches.').waitFor()
  await page.getByLabel('Search').fill('HEAT')
  assert.deepEqual(await shownTasks(page), [TASK])

  const proof = JSON.parse(read('proof.json'))
  const { admission: { wrong } } = JSON.parse(read('metadata.json'))
  const row = page.getByRole('row').filter({ hasText: TASK })
  assert.match(await row.innerText(), new RegExp(`${proof.tests.length}`))
  await row.getByText(`passed ${proof.repeats}×, ${Object.keys(wrong).length} wrong solutions refused`).click()
  for (const { why } of Object.values(/** @type {Record<string, {why: string}>} */ (wrong))) await row.getByText(why).waitFor()
  await row.getByText(proof.task_digest.slice(0, 12)).waitFor()

  await row.getByRole('checkbox').check()
  await page.getByLabel('Search').fill(tasks[0].task_id)
  await page.getByRole('checkbox', { name: `Choose ${tasks[0].task_id}` }).check()
  await page.getByText('2 tasks chosen.').waitFor()
  await follow(page, () => page.getByRole('link', { name: 'New run of 2 tasks' }).click())
  assert.equal(await page.getByLabel('Item ids').inputValue(), [tasks[0].task_id, TASK].join('\n'))
  assert.ok(await page.getByRole('checkbox', { name: /^Code lab/ }).isChecked())
})

pageTest('a task shows what a model gets, and neither tests nor solutions', async (world) => {
  const { page } = await world.open(`/benchmarks/code_lab/tasks/${TASK}`)
  await page.getByRole('heading', { level: 1, name: TASK }).waitFor()
  const instructions = page.getByRole('region', { name: 'Instructions' })
  for (const line of read('instructions.md').split('\n').filter((text) => /^[A-Z][a-z ,]{20,}/.test(text)).slice(0, 3)) {
    assert.ok((await instructions.innerText()).replaceAll(/\s+/g, ' ').includes(line.split(/[`*[]/)[0].trim().slice(0, 60)), line)
  }
  const files = page.getByRole('region', { name: 'Files' })
  const name = (await files.locator('summary code').allInnerTexts())[0]
  await files.locator('summary').first().click()
  assert.equal(await files.locator('pre').first().evaluate((element) => element.textContent), read(`workspace/${name}`))
  for (const test of Object.values(JSON.parse(read('proof.json')).wrong).flat()) await page.getByText(test, { exact: true }).first().waitFor()
  const text = await page.evaluate(async (path) => document.documentElement.textContent + await (await fetch(path)).text(), `/api/benchmarks/code_lab/tasks/${TASK}`)
  for (const secret of ['tests', 'solutions']) {
    for (const file of fs.readdirSync(new URL(`${secret}/`, FOLDER), { withFileTypes: true }).filter((entry) => entry.isFile())) {
      const lines = read(`${secret}/${file.name}`).split('\n').filter((line) => /^\+?\s*(def |self\.assert|\+function )/.test(line) && line.length > 40)
      for (const line of lines.slice(0, 20)) assert.ok(!text.includes(line.trim()), `${file.name}: ${line}`)
    }
  }
  assert.deepEqual(await seriousFindings(page), [])

  const phone = await world.open(`/benchmarks/code_lab/tasks/${TASK}`, PHONE)
  await phone.page.getByRole('region', { name: 'Files' }).locator('summary').first().click()
  await assertFits(phone.page, 'a task')
  await go(phone.page, '/benchmarks/code_lab/tasks')
  await phone.page.getByRole('table', { name: 'Programming tasks' }).locator('summary').first().click()
  await assertFits(phone.page, 'the catalog')
})

pageTest('texts of tasks stay text', async ({ open }) => {
  const { page } = await open('/benchmarks')
  /** @type {Api.CodeTaskView} */
  const task = {
    task_id: MARKUP, language: MARKUP, language_name: MARKUP, type: MARKUP, difficulty: MARKUP, tags: [MARKUP, 'x'.repeat(300)], tests: 1, tests_are_outside: true, files: 1, lines: 1, bytes: 1,
    timeout_seconds: 1, digest: MARKUP, proof: { repeats: 1, wrong: [{ name: MARKUP, why: MARKUP, fails: [MARKUP] }] },
  }
  const details = { ...task, instructions: `# ${MARKUP}\n\n[a](javascript:alert(1))\n\n${MARKUP}`, build: [[MARKUP]], project: [{ path: MARKUP, bytes: 1, text: MARKUP }, { path: 'b', bytes: 1, text: null }] }
  await page.route('**/api/benchmarks/code_lab/tasks', (route) => route.fulfill({ json: { benchmark: 'code_lab', tasks: [task] } }))
  await page.route('**/api/benchmarks/code_lab/tasks/*', (route) => route.fulfill({ json: details }))
  await go(page, '/benchmarks/code_lab/tasks?language=%3Cb%3E')
  await page.getByText('No task matches.').waitFor()
  await page.getByLabel('Language').selectOption('')
  await page.locator('.code-tasks summary').click()
  await page.locator('.wrong-solutions').getByText(MARKUP).first().waitFor()
  await page.getByRole('checkbox').check()
  const link = await page.getByRole('link', { name: 'New run' }).last().getAttribute('href')
  assert.match(link ?? '', /^\/new\?benchmarks=code_lab/)
  await assertFits(page, 'a hostile catalog')
  await follow(page, () => page.locator('.code-tasks th a').click())
  await page.locator('.project-files summary').first().click()
  assert.equal(await page.locator('.project-files pre').first().evaluate((element) => element.textContent), MARKUP)
  assert.equal(await page.getByRole('main').locator('img, script, a[href^="javascript"]').count(), 0)
  await assertFits(page, 'a hostile task')
  assert.doesNotMatch(await page.title(), /^broken/)
})

pageTest('one form orders chosen tasks at each level of each model, as its command does', async ({ bench, model, open }) => {
  model.answer = () => ({ text: '' })
  const { page } = await open('/new?model=openai-compatible/one&benchmarks=code_lab')
  await settled(page)
  const main = page.getByRole('main')
  await main.getByRole('button', { name: 'Choose tasks' }).click()
  const chooser = main.locator('.task-chooser')
  await chooser.getByLabel('Search').fill('heat')
  await page.keyboard.press('Enter')
  assert.match(page.url(), /\/new\?/, 'Enter in the search sends no order')
  await chooser.getByRole('checkbox', { name: `Choose ${TASK}` }).check()
  assert.equal(await main.getByLabel('Item ids').inputValue(), TASK)
  await main.getByLabel('Item ids').fill('')
  assert.ok(!await chooser.getByRole('checkbox', { name: `Choose ${TASK}` }).isChecked(), 'ids that are typed change the choice')
  await main.getByLabel('Item ids').fill(TASK)
  assert.ok(await chooser.getByRole('checkbox', { name: `Choose ${TASK}` }).isChecked())

  await main.getByText('Several models or thinking levels').click()
  await main.getByRole('button', { name: 'Add a model' }).click()
  await page.keyboard.type('openai-compatible/two')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  for (const level of ['base', 'low', 'high']) await main.getByRole('checkbox', { name: level, exact: true }).check()
  await main.getByLabel('Levels in tokens').fill('0')
  await main.getByText('Enter whole numbers').waitFor()
  await main.getByLabel('Levels in tokens').fill('')
  await main.getByLabel('Samples per item').fill('2')
  const estimate = main.getByRole('region', { name: 'Estimate' })
  await estimate.getByText('Runs', { exact: true }).waitFor()
  await estimate.getByText(/^12$/).waitFor()
  assert.equal(await estimate.getByRole('list', { name: 'Runs' }).getByRole('listitem').count(), 6)
  await estimate.getByText('openai-compatible/two (thinking high)').waitFor()
  await main.locator('summary', { hasText: 'Generation settings' }).click()
  assert.ok(!await main.getByLabel('Reasoning effort').isVisible(), 'levels replace it')
  await main.getByLabel('Temperature', { exact: true }).fill('0.5')
  assert.deepEqual(await main.getByLabel('answer_form').locator('option').allInnerTexts(), ['any (default)', 'diff', 'blocks', 'files'])
  await main.getByLabel('answer_form').selectOption('diff')
  await settled(page)
  assert.deepEqual(await seriousFindings(page), [])

  await page.reload()
  await settled(page)
  assert.equal(await main.getByRole('combobox', { name: 'Further model' }).inputValue(), 'openai-compatible/two', 'the address keeps models')
  assert.ok(await main.getByRole('checkbox', { name: 'low', exact: true }).isChecked(), 'and levels')
  await main.getByText('The same as a command').click()
  await main.locator('.commands pre').nth(1).waitFor()
  const commands = await main.locator('.commands pre').allInnerTexts()
  const command = commands.find((text) => text.startsWith('bench run')) ?? ''
  assert.match(command, /--thinking-level base,low,high/)
  await main.getByRole('button', { name: 'Start 6 runs' }).click()
  await page.waitForURL((url) => url.pathname === '/runs')
  const told = async () => {
    const { runs } = await bench.api('GET', '/api/runs')
    return runs.toReversed().map((/** @type {Api.RunView} */ run) => [run.model, run.generation.reasoning_effort, run.generation.temperature, run.items, run.samples, run.benchmark_options])
  }
  const ordered = await told()
  assert.deepEqual(ordered, ['one', 'two'].flatMap((name) => [null, 'low', 'high'].map((effort) => [`openai-compatible/${name}`, effort, 0.5, [TASK], 2, { code_lab: { answer_form: 'diff' } }])))
  for (const name of ['openai-compatible/one', 'openai-compatible/one (thinking low)', 'openai-compatible/two (thinking high)']) await page.getByRole('link', { name, exact: true }).waitFor()

  await promisify(execFile)('bash', ['-c', command.replace(/^bench /, `${JSON.stringify(COMMAND)} `)], { cwd: bench.folder, env: { ...bench.environment, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' } })
  assert.deepEqual((await told()).slice(6), ordered, 'the command orders the same runs in the same order')

  const { runs } = await bench.api('GET', '/api/runs?limit=6')
  const [high, low] = runs
  await go(page, `/compare?runs=${high.id},${low.id}`)
  for (const level of ['high', 'low']) await page.getByText(`openai-compatible/two (thinking ${level})`).first().waitFor()
}, { timeout: 180_000 })

pageTest('orders of several runs name what they lack, and go on after a refusal', async ({ bench, open }) => {
  const { page, guard } = await open('/new?model=oracle&model=nop&benchmarks=mmlu_pro&subset_count=3&demo=true')
  guard.allow(/(400|500) \(/)
  await settled(page)
  const main = page.getByRole('main')
  await main.getByText('Without a seed, each run selects other items').waitFor()
  await main.getByLabel('Seed', { exact: true }).fill('same')
  await main.getByText('Without a seed, each run selects other items').waitFor({ state: 'detached' })
  let left = 1
  await page.route('**/api/runs', async (route) => {
    if (route.request().method() !== 'POST' || left > 0) {
      if (route.request().method() === 'POST') left -= 1
      return route.continue()
    }
    left = 9
    return route.fulfill({ status: 500, json: { detail: 'the second order fails here', code: 'internal_error' } })
  })
  await main.getByRole('button', { name: 'Start 2 runs' }).click()
  await main.getByText('1 of 2 runs have started.').waitFor()
  await main.getByRole('button', { name: 'Start 2 runs' }).click()
  await page.waitForURL((url) => url.pathname === '/runs')
  const { runs } = await bench.api('GET', '/api/runs')
  assert.deepEqual(runs.map((/** @type {Api.RunView} */ run) => run.model).toSorted(), ['nop', 'oracle'], 'a second attempt doesn’t start the first run again')

  await go(page, `/new?${Array.from({ length: 25 }, (_, i) => `model=openai-compatible/m${i}`).join('&')}&benchmarks=mmlu_pro&demo=true`)
  await main.getByText('These are 25 runs. One form starts at most 24.').first().waitFor()
  await main.getByRole('button', { name: 'Start 25 runs' }).click()
  await main.locator('[data-path="thinking_levels"]').getByText('One form starts at most 24.').waitFor()
  assert.equal((await bench.api('GET', '/api/runs')).total, 2)
})

pageTest('tasks are chosen with a keyboard alone', async ({ open }) => {
  const { page } = await open('/benchmarks/code_lab/tasks?q=heat')
  await page.getByLabel('Search').focus()
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent)
  const tabTo = async (/** @type {string} */ name) => {
    for (let i = 0; i < 30; i += 1) {
      await page.keyboard.press('Tab')
      if ((await focused())?.startsWith(name)) return
    }
    throw new Error(`Tab doesn't reach ${name}`)
  }
  await tabTo(`Choose ${TASK}`)
  await page.keyboard.press('Space')
  await tabTo('Proof of')
  await page.keyboard.press('Enter')
  await page.locator('.wrong-solutions').waitFor()
  await tabTo('New run of 1 task')
  await follow(page, () => page.keyboard.press('Enter'))
  assert.equal(await page.getByLabel('Item ids').inputValue(), TASK)
})

pageTest('another protocol shows its own options, and drops those of the first one', async ({ open }) => {
  const { page, guard } = await open('/benchmarks')
  guard.allow(/ERR_FAILED/)
  await page.route('**/api/benchmarks?*', async (route) => {
    const answer = await (await route.fetch()).json()
    const lab = answer.benchmarks.find((/** @type {Api.BenchmarkView} */ { name }) => name === 'code_lab')
    const [first] = lab.protocols
    lab.protocols = [first, { ...first, name: 'second', is_default: false, options: [{ name: 'speed', description: 'how fast', default: null, values: ['slow', 'fast'] }, { name: 'agent.NAME', description: 'of the agent', default: null, values: [] }] }]
    await route.fulfill({ json: answer })
  })
  await go(page, '/new?model=oracle&benchmarks=code_lab&items=html_heat_table&option.code_lab.answer_form=diff')
  const settings = page.locator('.benchmark-settings:visible')
  assert.equal(await settings.getByLabel('answer_form').inputValue(), 'diff')
  // The server knows no second protocol, so that nothing is asked of it.
  await page.route('**/api/runs/estimate', (route) => route.abort())
  await settings.getByLabel('Protocol').selectOption('second')
  assert.equal(await settings.getByLabel('answer_form').count(), 0)
  assert.deepEqual(await settings.getByLabel('speed').locator('option').allInnerTexts(), ['not set', 'slow', 'fast'])
  await settings.getByLabel('speed').selectOption('fast')
  await settings.getByLabel('agent.NAME').fill('max_turns=3')
  await page.waitForFunction(() => location.search.includes('max_turns'))
  const asked = new URL(page.url()).searchParams
  assert.deepEqual([...asked].filter(([name]) => /^(protocol|option)\./.test(name)), [['protocol.code_lab', 'second'], ['option.code_lab.speed', 'fast'], ['option.code_lab.agent.max_turns', '3']])
})
