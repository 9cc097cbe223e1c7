/** Custom agents in the form for episodes: upload, refusals, and the order. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { DESKTOP, PHONE } from '../support/browser.js'
import { go } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { uploadTask } from '../support/tasks.js'
import { writeZip } from '../support/zip.js'

/**
 * Uploads an agent over HTTP.
 *
 * @param {{origin: string}} bench
 * @param {string} config
 * @returns {Promise<{id: string, buffer: Buffer}>}
 */
async function uploadAgent({ origin }, config) {
  const { name, buffer } = agentFile(config)
  const body = new FormData()
  body.append('file', new Blob([new Uint8Array(buffer)]), name)
  const response = await fetch(`${origin}/api/agents`, { method: 'POST', body })
  assert.equal(response.status, 200)
  return { ...await response.json(), buffer }
}

/** @param {string} config */
function agentFile(config) {
  const buffer = writeZip(new Map([['tiny/agent.toml', Buffer.from(config)], ['tiny/go.sh', Buffer.from('touch done\n')]]))
  return { name: 'tiny.zip', mimeType: 'application/zip', buffer }
}

pageTest('a custom agent is uploaded and ordered without a model', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one', 2)
  const { page, guard } = await open(`/tasks/${task.id}`)
  guard.allow(/400 \(Bad Request\)/)
  const form = page.getByRole('form', { name: 'Order episodes' })
  const files = form.getByLabel('Its folder as a ZIP archive')
  assert.equal(await files.isVisible(), false)
  await form.getByLabel('Agent').selectOption('custom')
  assert.equal(await form.getByRole('combobox', { name: 'Model' }).isVisible(), false)
  await files.setInputFiles([agentFile('name = "tiny"\nrun = "x"\nmodel = "m"\n')])
  const refusal = form.getByRole('alert')
  await refusal.waitFor()
  assert.match(await refusal.innerText(), /Refused\. the key model is not known|agent\.toml line 3: the key model is not known/)
  assert.match(await refusal.innerText(), /Line\s+3/)
  const submit = form.getByRole('button', { name: 'Order 2 episodes' })
  await submit.click()
  await form.getByText('The agent’s archive wasn’t accepted.').waitFor()
  assert.equal((await bench.api('GET', '/api/runs')).runs.length, 0)

  await files.setInputFiles([agentFile('name = "tiny"\nversion = "1.0"\nrun = "sh /installed-agent/go.sh"\n[env]\nA = "${WHO:-me}"\n')])
  await form.getByText('tiny', { exact: true }).waitFor()
  const [agent] = await bench.api('GET', '/api/agents/custom')
  assert.match(await form.innerText(), new RegExp(`tiny 1\\.0 · 2 files .* hash ${agent.id.slice(0, 12)}`))
  assert.equal(await form.getByText('The agent’s archive wasn’t accepted.').count(), 0)
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'the form with a custom agent')
  await submit.click()
  await page.getByRole('link', { name: /^custom\/tiny@1\.0/ }).first().waitFor()
  const [run] = (await bench.api('GET', '/api/runs')).runs
  assert.deepEqual([run.model, run.benchmarks[0].options['agent.content_hash']], ['custom/tiny@1.0', agent.id])
  await fetch(`${bench.origin}/api/runs/${run.id}/cancel`, { method: 'POST' })
  await go(page, `/runs/${run.id}?tab=settings`)
  await page.getByText('custom/tiny@1.0').first().waitFor()
  await page.getByText('none: the agent asks no model').first().waitFor()
  await page.locator('dl.settings dt').getByText('Option agent.content_hash').waitFor()
})

pageTest('an uploaded agent is chosen with its variables, downloaded and removed', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one', 2)
  const old = await uploadAgent(bench, 'name = "old"\nrun = "true"\n')
  const agent = await uploadAgent(bench, 'name = "tiny"\nrun = "true"\n[env]\nA = "${WHO}"\nB = "${PLACE:-here}"\n')
  const { page, guard } = await open(`/tasks/${task.id}`)
  guard.allow(/409 \(Conflict\)/)
  const form = page.getByRole('form', { name: 'Order episodes' })
  const clearText = form.getByText('Values are stored with the run as they are')
  assert.equal(await clearText.isVisible(), false)
  await form.getByLabel('Agent', { exact: true }).selectOption('custom')
  const chooser = form.getByLabel('Its files')
  const who = form.getByLabel('WHO (required)')
  // The agents are loaded then.
  await who.waitFor()
  assert.equal(await chooser.inputValue(), agent.id, 'the newest one')
  assert.equal(await form.getByLabel('Its folder as a ZIP archive').isVisible(), false)
  await clearText.waitFor()
  assert.match(await form.innerText(), /Enter no keys and no passwords/)

  // An order without a required value stays in the form.
  const submit = form.getByRole('button', { name: 'Order 2 episodes' })
  await submit.click()
  assert.equal(await who.evaluate((/** @type {HTMLInputElement} */ input) => input.matches(':invalid') && input === document.activeElement), true)
  await who.fill(' me ')
  // It needs none, and its form comes back with what was given before.
  await chooser.selectOption(old.id)
  assert.equal(await who.count(), 0)
  assert.equal(await clearText.isVisible(), false)
  await chooser.selectOption(agent.id)
  assert.equal(await who.inputValue(), ' me ')
  await form.getByRole('button', { name: 'Add a variable' }).click()
  await form.getByLabel('Name of the variable').fill('PLACE')
  await form.getByLabel('Value of the variable').fill('there')
  await form.getByRole('button', { name: 'Add a variable' }).click()
  await form.getByRole('button', { name: 'Remove the variable' }).nth(1).click()
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'the form with variables')
  await page.setViewportSize(DESKTOP)
  await submit.click()
  await page.getByRole('link', { name: /^custom\/tiny/ }).first().waitFor()
  const [run] = (await bench.api('GET', '/api/runs')).runs
  assert.deepEqual(run.benchmarks[0].options, { agent: 'custom', 'agent.content_hash': agent.id, 'env.PLACE': 'there', 'env.WHO': 'me' })

  const started = page.waitForEvent('download')
  await form.getByRole('button', { name: 'Download the agent' }).click()
  const download = await started
  assert.equal(download.suggestedFilename(), `agent-${agent.id.slice(0, 12)}.zip`)
  const bytes = fs.readFileSync(await download.path())
  assert.equal(Buffer.compare(bytes, agent.buffer), 0)

  // A schedule needs the agent. The run may have ended, since there is no host for its episodes.
  const order = { name: 'nightly', cron: '0 0 * * *', tasks: [task.id], agent: 'custom', agent_options: { content_hash: agent.id }, benchmark_options: { terminal_tasks: { 'env.WHO': 'me' } } }
  const response = await fetch(`${bench.origin}/api/schedules`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(order) })
  assert.equal(response.status, 201)
  const schedule = await response.json()
  await fetch(`${bench.origin}/api/runs/${run.id}/cancel`, { method: 'POST' })
  await form.getByRole('button', { name: 'Remove the agent' }).click()
  const dialog = page.getByRole('dialog')
  const remove = dialog.getByRole('button', { name: 'Remove the agent' })
  await remove.click()
  await dialog.getByText(/schedule nightly runs this agent/).waitFor()
  await fetch(`${bench.origin}/api/schedules/${schedule.id}`, { method: 'DELETE' })
  await remove.click()
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await chooser.inputValue(), old.id)
  assert.deepEqual((await bench.api('GET', '/api/agents/custom')).map((/** @type {{id: string}} */ { id }) => id), [old.id])
})

pageTest('a schedule has a custom agent, which can be changed with its variables', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one', 2)
  const agent = await uploadAgent(bench, 'name = "tiny"\nrun = "true"\n[env]\nA = "${WHO}"\n')
  const { page } = await open(`/schedules/new?tasks=${task.id}`)
  const form = page.getByRole('form', { name: 'New schedule' })
  await form.getByLabel('Name', { exact: true }).fill('nightly')
  await form.getByLabel('Agent', { exact: true }).selectOption('custom')
  const create = form.getByRole('button', { name: 'Create schedule' })
  await form.getByLabel('WHO (required)').waitFor()
  await create.click()
  assert.equal((await bench.api('GET', '/api/schedules')).schedules.length, 0, 'a required value is missing')
  await form.getByLabel('WHO (required)').fill('me')
  await page.locator('.estimate[aria-busy=false] strong').first().waitFor()
  assert.deepEqual(await seriousFindings(page), [])
  await form.getByText('The same as a command').click()
  await form.locator('.order-commands pre, .order-commands code').first().waitFor()
  assert.match(await form.locator('.order-commands').innerText(), new RegExp(`--agent custom[^]*--agent-option content_hash=${agent.id}[^]*--option terminal_tasks\\.env\\.WHO=me`))
  await create.click()
  await page.getByRole('heading', { level: 1, name: 'nightly' }).waitFor()
  const stored = async () => (await bench.api('GET', '/api/schedules')).schedules[0]
  const first = await stored()
  assert.deepEqual([first.model, first.benchmark_options.terminal_tasks], ['custom/tiny', { agent: 'custom', 'agent.content_hash': agent.id, 'env.WHO': 'me' }])

  // Another agent is uploaded in the form; a change of its files or variables names all of them.
  await page.getByRole('link', { name: 'Edit' }).click()
  const edit = page.getByRole('form', { name: 'Edit nightly' })
  await edit.getByLabel('WHO (required)').waitFor()
  assert.equal(await edit.getByLabel('WHO (required)').inputValue(), 'me')
  await edit.getByLabel('WHO (required)').fill('you')
  await edit.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'nightly', exact: true }).waitFor()
  const second = await stored()
  assert.deepEqual(second.benchmark_options.terminal_tasks, { ...first.benchmark_options.terminal_tasks, 'env.WHO': 'you' })

  await page.getByRole('link', { name: 'Edit' }).click()
  await edit.getByLabel('Its files').selectOption('')
  await edit.getByLabel('Its folder as a ZIP archive').setInputFiles([agentFile('name = "next"\nversion = "2"\nrun = "true"\n')])
  await edit.getByText('next', { exact: true }).waitFor()
  await edit.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'nightly', exact: true }).waitFor()
  assert.equal((await stored()).model, 'custom/next@2')

  await page.getByRole('link', { name: 'Edit' }).click()
  await edit.getByLabel('Agent', { exact: true }).selectOption('oracle')
  assert.equal(await edit.getByLabel('Its files').isVisible(), false)
  await edit.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'nightly', exact: true }).waitFor()
  const last = await stored()
  assert.deepEqual([last.model, last.benchmark_options], ['oracle', {}])
})
