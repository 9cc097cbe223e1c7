/** Terminal tasks: upload, refusals, orders, the grid of episodes, and what an episode shows. Episodes themselves are scripted. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { DESKTOP, PHONE } from '../support/browser.js'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { EPISODE, refusedArchive, scriptedRun, serveRun, serveRuns, taskArchive, uploadTask } from '../support/tasks.js'

/** Names of 75 tasks, of which ten episodes each are 750. */
const TASKS = Array.from({ length: 75 }, (_, i) => `task-${String(i + 1).padStart(2, '0')}`)

/**
 * @param {string} name
 * @param {Buffer} buffer
 */
function file(name, buffer) {
  return { name, mimeType: 'application/zip', buffer }
}

pageTest('tasks are uploaded with live admission, listed and deleted', async ({ bench, open }) => {
  const { page, guard } = await open('/tasks')
  guard.allow(/400 \(Bad Request\)/)
  await page.getByRole('heading', { name: 'No tasks yet' }).waitFor()
  await page.locator('#task-files').setInputFiles([file('count.zip', taskArchive('count')), file('escape.zip', refusedArchive()), file('notes.zip', Buffer.from('no archive'))])

  // The refusal names file and line.
  const refused = page.locator('.upload-card').filter({ hasText: 'escape.zip' })
  await refused.getByRole('alert').waitFor()
  assert.match(await refused.innerText(), /Refused\..*privileged/s)
  assert.match(await refused.innerText(), /File\s+.*docker-compose\.yaml/)
  assert.match(await refused.innerText(), /Line\s+4/)
  await page.locator('.upload-card').filter({ hasText: 'notes.zip' }).getByRole('alert').waitFor()
  assert.equal((await bench.api('GET', '/api/tasks')).length, 0)

  const card = page.locator('.upload-card').filter({ hasText: 'count.zip' })
  await card.getByText('Admitted.').waitFor()
  assert.match(await card.innerText(), /Harbor · 5 files/)
  await card.getByLabel('Episodes').fill('4')
  await card.getByRole('button', { name: 'Add task' }).click()
  await card.getByText('Added as').waitFor()
  const row = page.getByRole('row').filter({ has: page.getByRole('rowheader') })
  await row.getByText('Not started').waitFor()
  const [task] = await bench.api('GET', '/api/tasks')
  assert.deepEqual([task.agent, task.num_runs], ['oracle', 4])

  await row.getByRole('button', { name: /^Delete/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the task' }).click()
  await page.getByRole('heading', { name: 'No tasks yet' }).waitFor()
  assert.equal((await bench.api('GET', '/api/tasks')).length, 0)
})

pageTest('tasks run on a schedule, which can be changed', async ({ bench, open }) => {
  for (const name of ['one', 'two']) await uploadTask(bench, name)
  const { page } = await open('/tasks')
  await page.getByRole('checkbox', { name: /one/ }).check()
  await page.getByRole('link', { name: 'On a schedule' }).click()
  const form = page.getByRole('form', { name: 'New schedule' })
  await form.getByLabel('Name', { exact: true }).fill('agents')
  assert.equal(await form.getByRole('checkbox', { name: /^one/ }).isChecked(), true)
  assert.equal(await form.getByLabel('Agent').inputValue(), 'oracle')
  assert.equal(await form.getByRole('combobox', { name: 'Model' }).isVisible(), false)
  // An earlier estimate is pale until the present one is there.
  await page.locator('.estimate[aria-busy=false] strong').first().waitFor()
  assert.deepEqual(await seriousFindings(page), [])
  await form.getByRole('button', { name: 'Create schedule' }).click()
  await page.getByRole('heading', { level: 1, name: 'agents' }).waitFor()
  const stored = async () => (await bench.api('GET', '/api/schedules')).schedules[0]
  const first = await stored()
  assert.match(first.tasks.join(), /^bench-runner\/one@[0-9a-f]{12}$/)
  assert.equal(first.model, 'oracle')
  assert.deepEqual(await page.locator('dt').getByText(/^(Model|Agent)$/).allInnerTexts(), ['Agent'], 'the oracle is no model')

  await page.getByRole('link', { name: 'Edit' }).click()
  const edit = page.getByRole('form', { name: 'Edit agents' })
  await edit.getByRole('checkbox', { name: /^two/ }).check()
  await edit.getByLabel('Agent').selectOption('nop')
  await edit.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'agents', exact: true }).waitFor()
  const second = await stored()
  assert.deepEqual([second.tasks.length, second.model, second.cron], [2, 'nop', first.cron])
})

pageTest('keys without effect are named at admission, and files that were there when they are added', async ({ bench, open }) => {
  const files = { 'task.toml': '[agent]\ntimout_sec = 5\n' }
  const first = await uploadTask(bench, 'typo', 1, files)
  const { page } = await open('/tasks')
  await page.locator('#task-files').setInputFiles([file('typo.zip', taskArchive('typo', files))])
  const card = page.locator('.upload-card').filter({ hasText: 'typo.zip' })
  await card.getByText('Admitted.').waitFor()
  const warning = card.getByText(/task\.toml line 2: agent\.timout_sec has no effect.*did you mean timeout_sec\?/)
  await warning.waitFor()
  await card.getByRole('button', { name: 'Add task' }).click()
  await card.getByText('Added as').waitFor()
  await warning.waitFor()
  assert.match(await card.innerText(), /The same files were there already, as task 1; their archive is used again\./)
  assert.equal(await card.getByRole('link', { name: 'task 1' }).getAttribute('href'), `/tasks/${first.id}`)
})

pageTest('a run whose errors would come again says what to change, and isn’t requeued', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ model_id: 'oracle' })).id)
  const script = scriptedRun(base, { tasks: ['a/one'], samples: 7 })
  script.run.can = { ...base.can, requeue_errors: true }
  const { page } = await open('/runs')
  await serveRun(page, script)
  const errors = script.run.benchmarks[0].outcomes['infrastructure-error']
  assert.ok(errors > 0)
  /** @type {[string, RegExp | null][]} */
  const cases = [['provider_error', null], ['task_refused', /Change the task as the error says, upload it again, and order a new run/]]
  for (const [code, advice] of cases) {
    Object.assign(script.run.benchmarks[0], { error_causes: [{ code, message: 'RUN --mount is not supported', count: errors }] })
    await go(page, '/runs')
    await go(page, `/runs/${base.id}`)
    await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
    assert.equal(await page.getByText(/Repeating the samples would change nothing/).count(), advice ? 1 : 0)
    if (advice) await page.getByText(advice).waitFor()
    assert.equal(await page.getByRole('button', { name: /^Requeue/ }).count(), advice ? 0 : 1)
  }
})

/** Digest of a prompt without any text around the item. */
const NO_TEXT = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

pageTest('prompts without a text of their own are called so', async ({ bench, open }) => {
  const order = () => bench.order({ selected_benchmarks: ['ifbench'], subset_count: 1 }).then(({ id }) => bench.ended(id))
  const [base, other] = [await order(), await order()]
  assert.equal(base.benchmarks[0].prompt_digest, NO_TEXT)
  const { page } = await open(`/runs/${base.id}?tab=settings`)
  const prompt = page.locator('dl.settings dt', { hasText: /^Prompt$/ }).locator('+ dd')
  await prompt.waitFor()
  assert.equal(await prompt.innerText(), 'the item’s text alone')
  await go(page, '/benchmarks/ifbench')
  assert.equal(await page.locator('.protocol dt', { hasText: /^Prompt$/ }).first().locator('+ dd').innerText(), 'the item’s text alone')

  // Beside a prompt with a text, in a comparison.
  await page.route((url) => url.pathname === `/api/runs/${other.id}`, async (route) => {
    const answer = await (await route.fetch()).json()
    Object.assign(answer.benchmarks[0], { prompt_source: 'own', prompt_digest: '0123456789abcdef' })
    return route.fulfill({ json: answer })
  })
  await go(page, `/compare?runs=${base.id},${other.id}`)
  const row = page.getByRole('region', { name: 'Settings that differ' }).getByRole('row', { name: /^Prompt/ })
  assert.deepEqual(await row.getByRole('cell').allInnerTexts(), ['the item’s text alone', 'own wording (0123456789ab)'])

  // An agent that asks no model has no prompt, whatever the benchmark's is.
  const script = scriptedRun(base, { tasks: ['a/one'], samples: 1 })
  await serveRun(page, script)
  await go(page, `/runs/${base.id}?tab=settings`)
  await page.locator('dl.settings').waitFor()
  assert.equal(await prompt.innerText(), 'none: the agent asks no model')
})

pageTest('lists of runs name the agent that asked the model', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const { page } = await open('/leaderboard')
  /** @type {[string, Record<string, string>][]} */
  const kinds = [['openrouter/a/b', { agent: 'bash' }], ['oracle', {}], ['openrouter/a/b', {}]]
  const scripts = kinds.map(([model, options], i) => {
    const script = scriptedRun(base, { tasks: ['a/one'], samples: 1 })
    Object.assign(script.run, { id: `00000000-0000-4000-8000-00000000000${i}`, model })
    script.run.benchmarks[0].options = options
    return script
  })
  await serveRuns(page, scripts)
  await go(page, '/runs')
  const strips = page.locator('.runs-table .strip')
  await strips.nth(2).waitFor()
  assert.deepEqual((await strips.allInnerTexts()).map((text) => text.trim()), ['terminal_tasks with bash', 'terminal_tasks', 'terminal_tasks'])
  await go(page, '/compare')
  await page.getByRole('row').getByText('terminal_tasks with bash').waitFor()
  assert.equal(await page.getByRole('row').getByText(/ with /).count(), 1)

  // In the page of a task, it stands beside the model.
  const task = await uploadTask(bench, 'one')
  await go(page, `/tasks/${task.id}`)
  await page.getByRole('link', { name: /^openrouter\/a\/b with bash, / }).waitFor()
  await page.getByRole('link', { name: /^oracle, / }).waitFor()
})

/** Causes of episodes without a grade that differ only in the time of a build's step. */
const BUILD = [0.3, 12.25].map((seconds) => `the build of \`main\` failed: #7 ${seconds} E: Unable to locate package \`curll\``)

pageTest('equal errors are counted, code in them is code, and a legend stands once', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const { page } = await open('/runs')
  const message = 'no sample was graded: 4 infrastructure-error. Resume it with `bench run --resume`'
  const scripts = [0, 1, 2].map((i) => {
    const script = scriptedRun(base, { tasks: ['a/one'], samples: 4 })
    const isBroken = i < 2
    Object.assign(script.run, { id: `00000000-0000-4000-8000-00000000000${i}`, status: isBroken ? 'failed' : 'succeeded', error_message: isBroken ? message : null, error_code: null })
    for (const [at, item] of script.items.entries()) Object.assign(item, isBroken ? { outcome: 'infrastructure-error', score: null } : { outcome: at === 0 ? 'correct' : 'incorrect' })
    script.run.benchmarks[0].error_causes = isBroken ? [{ code: 'sandbox_error', message: BUILD[i], count: 3 }, { code: 'sandbox_error', message: BUILD[1 - i], count: 1 }] : []
    return script
  })
  await serveRuns(page, scripts)
  const task = await uploadTask(bench, 'one')
  await go(page, `/tasks/${task.id}`)
  await page.getByRole('gridcell').nth(11).waitFor()
  const errors = page.getByRole('list', { name: 'Errors' }).getByRole('listitem')
  assert.deepEqual(await errors.allInnerTexts(), [
    '8 episodes of 2 runs: the build of main failed: #7 0.3 E: Unable to locate package curll (sandbox_error)',
    '2 runs: no sample was graded: 4 infrastructure errors. Resume it with bench run --resume',
  ])
  assert.deepEqual(await errors.first().locator('code').allInnerTexts(), ['main', 'curll', 'sandbox_error'])
  assert.equal(await page.getByText('no sample was graded').count(), 1)
  const legend = page.locator('.episode-legend')
  assert.equal(await legend.count(), 1)
  assert.deepEqual((await legend.locator('li').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ')), ['✓ passed', '✗ failed', '! infrastructure error, not graded'])
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'errors of a task')

  // The causes of one run are added up, too, although its samples are counted by their whole text.
  await page.setViewportSize(DESKTOP)
  const [{ run }] = scripts
  run.benchmarks[0].error_causes = BUILD.map((text) => ({ code: 'sandbox_error', message: text, count: 2 }))
  await go(page, `/runs/${run.id}?tab=errors`)
  const causes = page.getByRole('region', { name: 'Causes of errors' })
  await causes.waitFor()
  assert.deepEqual(await causes.locator('tbody tr').allInnerTexts().then((rows) => rows.map((row) => row.split('\t'))), [['4', 'sandbox_error', 'the build of main failed: #7 0.3 E: Unable to locate package curll']])
  assert.equal(await page.getByRole('main').getByText('`').count(), 0)
})

pageTest('an episode says its error once', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const { page } = await open('/runs')
  const exception = { name: 'RuntimeError', message: BUILD[0] }
  const [step] = EPISODE.judge_output.episode_steps
  const reason = `RuntimeError: ${BUILD[0]}`
  const texts = () => ({ ...EPISODE, reason, error: reason, judge_output: { ...EPISODE.judge_output, exception, episode_steps: [{ ...step, exception }] } })
  await serveRun(page, scriptedRun(base, { tasks: ['broken'], samples: 1 }), { texts })
  await go(page, `/runs/${base.id}/items/terminal_tasks/0`)
  await page.locator('.reason code', { hasText: 'curll' }).waitFor()
  assert.equal(await page.getByText(/Unable to locate package/).count(), 1)
})

pageTest('an archive can be dropped anywhere on the page', async ({ open }) => {
  const { page } = await open('/tasks')
  const data = [...taskArchive('dropped')]
  await page.evaluate((bytes) => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([new Uint8Array(bytes)], 'dropped.zip', { type: 'application/zip' }))
    document.body.dispatchEvent(new DragEvent('dragenter', { bubbles: true, dataTransfer: transfer }))
    document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: transfer }))
  }, data)
  await page.locator('.upload-card').getByText('Admitted.').waitFor()
})

pageTest('an archive above the limit of requests goes to the address that the server gives', async ({ open, bench }) => {
  const { page, guard } = await open('/tasks')
  guard.allow(/413|404/)
  await page.route('**/api/tasks/check', (route) => route.fulfill({ status: 413, json: { detail: 'the request body has more than 6 MB', code: 'body_too_large' } }))
  /** @type {any} */
  let sent = null
  let put = 0
  await page.route((url) => url.pathname === '/api/tasks', (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    if (route.request().headers()['content-type']?.startsWith('multipart')) return route.fulfill({ status: 413, json: { detail: 'too large', code: 'body_too_large' } })
    sent = route.request().postDataJSON()
    return route.fulfill({ json: { id: 7, name: sent.name } })
  })
  await page.route('**/api/tasks/uploads', (route) => {
    assert.match(route.request().postDataJSON().sha256, /^[0-9a-f]{64}$/)
    return route.fulfill({ json: { upload_url: `${bench.origin}/upload-place`, method: 'PUT', headers: { 'x-amz-checksum-sha256': 'x' }, key: 'task-key', expires: '' } })
  })
  await page.route('**/upload-place', (route) => { put = route.request().postDataBuffer()?.length ?? 0; return route.fulfill({ status: 200, body: '' }) })
  const archive = taskArchive('large')
  await page.locator('#task-files').setInputFiles([file('large.zip', archive)])
  await page.getByText('Too large to be checked first').waitFor()
  await page.getByRole('button', { name: 'Add task' }).click()
  await page.getByText('Added as').waitFor()
  assert.equal(put, archive.length)
  assert.deepEqual([sent.upload, sent.name, sent.file_name], ['task-key', 'large', 'large.zip'])
})

pageTest('episodes are ordered of one task and of several', async ({ bench, open }) => {
  const first = await uploadTask(bench, 'one', 2)
  await uploadTask(bench, 'two', 2)
  const { page } = await open(`/tasks/${first.id}`)
  await page.getByText('No episodes yet').waitFor()
  await page.getByRole('spinbutton', { name: 'Episodes' }).fill('101')
  await page.getByRole('button', { name: 'Order 101 episodes' }).click()
  assert.equal((await bench.api('GET', '/api/runs')).total, 0, 'more than 100 episodes are not ordered')
  await page.getByRole('spinbutton', { name: 'Episodes' }).fill('2')
  await page.getByRole('button', { name: 'Order 2 episodes' }).click()
  await page.getByRole('grid').getByRole('gridcell').nth(1).waitFor()
  const task = await bench.api('GET', `/api/tasks/${first.id}`)
  assert.equal(task.total_runs, 2)

  await go(page, '/tasks')
  await page.getByLabel('Select all tasks of this page').check()
  await page.getByLabel('Episodes of each task').fill('3')
  await page.getByRole('button', { name: 'Order 6 episodes of 2 tasks' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
  const id = page.url().split('/').at(-1) ?? ''
  await page.getByRole('gridcell').nth(5).waitFor()
  assert.equal(await page.getByRole('gridcell').count(), 6)
  const [b] = (await bench.api('GET', `/api/runs/${id}`)).benchmarks
  assert.deepEqual([b.benchmark_name, b.samples_per_item], ['terminal_tasks', 3])
  for (const { id: run } of (await bench.api('GET', '/api/runs')).runs) await fetch(`${bench.origin}/api/runs/${run}/cancel`, { method: 'POST' })
})

pageTest('an agent asks the model that the form names, wherever it is', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one', 2, {}, { agent: 'bash', model: 'vendor/large' })
  const { page } = await open(`/tasks/${task.id}`)
  const form = page.getByRole('form', { name: 'Order episodes' })
  const model = form.getByRole('combobox', { name: 'Model' })
  assert.equal(await model.inputValue(), 'openrouter/vendor/large', 'the task’s own model, with its provider')
  /** @type {[string, string | undefined][]} */
  const orders = []
  await page.route((url) => /execute-async$|^\/api\/runs$/.test(url.pathname), (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    orders.push([new URL(route.request().url()).pathname, route.request().postDataJSON()?.model_id])
    return route.fulfill({ json: {} })
  })
  const order = async () => {
    const before = orders.length
    await form.getByRole('button', { name: 'Order 2 episodes' }).click()
    for (let i = 0; i < 50 && orders.length === before; i += 1) await page.waitForTimeout(100)
    return orders.at(-1)
  }
  assert.deepEqual(await order(), [`/api/tasks/${task.id}/execute-async`, undefined])
  await model.fill('')
  await form.getByText('No models are listed.').waitFor()
  assert.equal(await page.locator('.model-popup [role=option]').count(), 0, 'the oracle is no model that an agent can ask')
  // The task's own order would ask OpenRouter for this one.
  await model.fill('openai/gpt-5')
  await form.getByText('No listed model contains this.').waitFor()
  await model.press('Enter')
  assert.deepEqual(await order(), ['/api/runs', 'openai/gpt-5'])
  await model.fill('')
  await model.press('Tab')
  await form.getByRole('button', { name: 'Order 2 episodes' }).click()
  assert.equal(orders.length, 2, 'an agent that asks a model needs one')
  await form.getByLabel('Agent').selectOption('oracle')
  assert.equal(await model.isVisible(), false)
  assert.deepEqual(await order(), ['/api/runs', undefined])
  await page.unrouteAll()

  // Providers on this machine can be chosen, too.
  await form.getByLabel('Agent').selectOption('terminus-2')
  await model.fill('openai-compatible/local')
  await model.press('Enter')
  await form.getByRole('button', { name: 'Order 2 episodes' }).click()
  await page.getByRole('grid').getByRole('gridcell').nth(1).waitFor()
  const { runs: [run] } = await bench.api('GET', '/api/runs')
  assert.deepEqual([run.model, run.benchmarks[0].options.agent], ['openai-compatible/local', 'terminus-2'])
  await fetch(`${bench.origin}/api/runs/${run.id}/cancel`, { method: 'POST' })
})

pageTest('the form of an order is even, also in the list of tasks', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one')
  const { page } = await open(`/tasks/${task.id}`)
  const form = page.getByRole('form', { name: 'Order episodes' })
  for (const address of [`/tasks/${task.id}`, '/tasks']) {
    await page.setViewportSize(DESKTOP)
    await go(page, address)
    if (address === '/tasks') await page.getByLabel('Select all tasks of this page').check()
    for (const agent of ['terminus-2', 'bash']) {
      await page.setViewportSize(DESKTOP)
      await form.getByLabel('Agent').selectOption(agent)
      const fields = await Promise.all([form.getByRole('combobox', { name: 'Model' }), form.getByLabel('Key for these episodes')].map((each) => each.boundingBox()))
      assert.deepEqual([fields[0]?.y, fields[0]?.width], [fields[1]?.y, fields[1]?.width], `${agent} at ${address}`)
      await page.setViewportSize(PHONE)
      await assertFits(page, `${agent} at ${address}`)
    }
  }
})

pageTest('episodes without a grade are beside the pass rate, not in it', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'count')
  const { page } = await open('/runs')
  await page.route('**/api/tasks?*', (route) => route.fulfill({ json: [{ ...task, results: { ...task.results, status: 'completed', runs: 1, episodes: 10, passed: 4, failed: 1, errors: 5 } }] }))
  await page.route('**/api/stats', (route) => route.fulfill({ json: {
    tasks: { total: 1, pending: 1, running: 0, completed: 0, failed: 0 }, runs: { total: 0, passed: 0, failed: 0, error: 0 },
    results: { tasks: { total: 1, pending: 0, running: 0, completed: 1, failed: 0 }, episodes: { total: 10, passed: 4, failed: 1, error: 5 } },
  } }))
  await page.getByRole('link', { name: 'Tasks' }).click()
  const cell = page.getByRole('row').filter({ hasText: 'count' }).getByRole('cell').filter({ hasText: '80.0%' })
  await cell.getByText('5 not graded').waitFor()
  await page.getByText('10 episodes: 4 passed, 1 failed, 5 not graded.').waitFor()
})

pageTest('a task’s page and the list of tasks count all of its orders, and only its own episodes', async ({ bench, open }) => {
  const first = await uploadTask(bench, 'one', 2)
  const second = await uploadTask(bench, 'two', 2)
  const order = (/** @type {object} */ body) => bench.api('POST', '/api/runs', { agent: 'oracle', ...body })
  const both = await order({ tasks: [first.id, second.id], samples: 3 })
  const { page } = await open('/tasks')
  const row = page.getByRole('row').filter({ hasText: 'bench-runner/one' })
  await row.getByText('Running').waitFor()
  await row.getByRole('cell', { name: '0 of 3' }).waitFor()
  await page.getByText('2 tasks, all running. 6 episodes: 0 passed').waitFor()

  await row.getByRole('link', { name: 'one' }).click()
  await page.getByRole('heading', { level: 1, name: /^one Running/ }).waitFor()
  await page.getByText('with 1 other task').waitFor()
  await page.getByRole('gridcell').nth(2).waitFor()
  assert.equal(await page.getByRole('gridcell').count(), 3, 'the other task’s episodes are in the run, not here')
  await fetch(`${bench.origin}/api/runs/${both.id}/cancel`, { method: 'POST' })
  await page.getByRole('heading', { level: 1, name: /^one Completed/ }).waitFor()
  await page.getByLabel('Pass rate').getByText('in no rate').waitFor()

  // The list of runs names the tasks.
  await go(page, `/runs?task=${second.id}`)
  await page.getByText('terminal_tasks: bench-runner/one, bench-runner/two').waitFor()
})

pageTest('episodes that are running are marked, and runs count episodes', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const script = scriptedRun(base, { tasks: ['a/one', 'a/two'], samples: 5, ended: 6 })
  const { page } = await open('/runs')
  await serveRun(page, script)
  await go(page, `/runs/${base.id}`)
  const legend = page.locator('.episode-legend li')
  await legend.filter({ hasText: 'not ended' }).waitFor()
  const progress = page.locator('.run-progress')
  assert.match(await progress.innerText(), /6 of 10 episodes, 60(\.0)?%/)

  // Two begin, and none ends.
  for (const item of script.items.slice(6, 8)) item.item_metadata = { episode_started: true }
  await page.getByText(/ 2 are running\.$/).waitFor()
  await page.waitForFunction(() => document.title.startsWith('60%'))
  assert.deepEqual((await legend.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ')).slice(-2), ['▸ running', '· waiting'])
  assert.equal(await page.getByRole('link', { name: 'a/two@0123456789ab, episode 2: Running' }).innerText(), '▸')
  assert.deepEqual(await seriousFindings(page), [])
  script.end(10)
  await legend.filter({ hasText: 'running' }).waitFor({ state: 'detached' })
})

pageTest('750 episodes stay readable, reachable and in place', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const script = scriptedRun(base, { tasks: TASKS, samples: 10, ended: 200 })
  script.run.created_at = new Date().toISOString()
  const window = await open('/runs')
  const { page } = window
  await serveRun(page, script)
  await go(page, `/runs/${base.id}`)
  const grid = page.getByRole('grid', { name: 'Episodes' })
  await grid.waitFor()
  assert.equal(await grid.getByRole('gridcell').count(), 750)
  assert.match(await page.locator('.episodes-text').innerText(), /^200 of 750 episodes are over: /)
  assert.equal(await grid.locator('a[tabindex="0"]').count(), 1, 'one cell is in the tab order')
  assert.deepEqual(await page.locator('.episode-legend li').allInnerTexts().then((texts) => texts.map((text) => text.replace(/\s+/g, ' '))),
    ['✓ passed', '◐ partial reward, doesn’t pass', '✗ failed', '! infrastructure error, not graded', '· not ended'], 'every symbol is explained')

  // Keyboard: right, down to the next line of tasks, of which two are beside each other, end.
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
  await grid.locator('a').first().focus()
  await page.keyboard.press('ArrowRight')
  assert.match(await focused() ?? '', /^task-01@\w+, episode 2: /)
  await page.keyboard.press('ArrowDown')
  assert.match(await focused() ?? '', /^task-03@\w+, episode 2: /)
  await page.keyboard.press('End')
  assert.match(await focused() ?? '', /^task-75@\w+, episode 10: Not ended/)
  const scroll = await page.evaluate(() => scrollY)

  // An update changes cells in place.
  script.end(700)
  await page.locator('.episodes-text', { hasText: /^700 of 750 episodes are over/ }).waitFor()
  assert.match(await focused() ?? '', /^task-75@\w+, episode 10: Not ended/)
  assert.equal(await page.evaluate(() => scrollY), scroll)
  assert.deepEqual(await seriousFindings(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'run of 750 episodes')
  assert.deepEqual(await page.locator('[aria-live], [role="status"]').evaluateAll((all) => all.filter((e) => e.closest('.episodes')).length), 0, 'cells are in no live region')
}, { timeout: 120_000 })

pageTest('an episode shows rewards, steps, exception, test output and logs as text', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const script = scriptedRun(base, { tasks: ['logs'], samples: 3 })
  script.items[1].outcome = 'partial'
  const { page } = await open('/runs')
  await serveRun(page, script, { texts: () => EPISODE })
  /** @type {string[]} */
  const asked = []
  await page.route((url) => url.pathname === `/api/runs/${base.id}/items/log`, (route) => {
    const query = new URL(route.request().url()).searchParams
    asked.push(['benchmark', 'position', 'sample', 'log', 'offset'].map((name) => query.get(name)).join(' '))
    const offset = Number(query.get('offset'))
    return route.fulfill({ json: { text: `page at ${offset} <b>not bold</b>`, log_files: [], log: query.get('log'), offset, next_offset: offset < 131_072 ? offset + 65_536 : null } })
  })
  await go(page, `/runs/${base.id}`)
  await page.getByRole('grid').getByRole('gridcell').nth(1).getByRole('link').click()
  await page.getByRole('heading', { level: 1, name: /^Episode 2 of logs@/ }).waitFor()
  await settled(page)
  const main = page.getByRole('main')
  const text = await main.innerText()
  for (const part of ['0.5', 'partial: it doesn’t pass', 'oracle', 'podman 5.4.2', '5 of 7', 'AgentTimeoutError', 'test_rows PASSED', '<img src=x onerror']) assert.ok(text.includes(part), `${part} is shown: ${text.slice(0, 1500)}`)
  assert.match(text, /Time\s+1 min 8 s\s+setup, agent and verifier/, 'the time of the whole episode')
  assert.doesNotMatch(await page.title(), /broken/)
  assert.equal(await main.locator('img, script').count(), 0)

  await main.getByText('agent/oracle.txt').click()
  await main.getByText('end of a long log').waitFor()
  await main.getByRole('button', { name: 'Read it from the beginning' }).click()
  await main.getByText('page at 0 <b>not bold</b>').waitFor()
  await main.getByRole('button', { name: 'Next page' }).click()
  await main.getByRole('button', { name: 'Next page' }).click()
  await main.getByText('All of it is shown.').waitFor()
  assert.deepEqual(asked, ['0', '65536', '131072'].map((offset) => `terminal_tasks 0 1 agent/oracle.txt ${offset}`))
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'episode')
})

pageTest('tasks show a lost connection and recover', async ({ bench, open }) => {
  await uploadTask(bench, 'kept')
  const { page, context, guard } = await open('/tasks')
  guard.allow(/ERR_INTERNET_DISCONNECTED/)
  await page.getByRole('rowheader', { name: /kept/ }).waitFor()
  await context.setOffline(true)
  await page.getByText(/You are offline since/).waitFor()
  await page.getByRole('rowheader', { name: /kept/ }).waitFor()
  await context.setOffline(false)
  await page.locator('.connection').waitFor({ state: 'hidden' })
})
