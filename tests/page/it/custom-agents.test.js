/** Custom agents in the form for episodes: upload, refusals, and the order. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { go } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { uploadTask } from '../support/tasks.js'
import { writeZip } from '../support/zip.js'

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

pageTest('forms without files of an agent don’t offer a custom one', async ({ bench, open }) => {
  const task = await uploadTask(bench, 'one', 2)
  const { page } = await open(`/schedules/new?tasks=${task.id}`)
  const form = page.getByRole('form', { name: 'New schedule' })
  await form.getByLabel('Agent').waitFor()
  assert.deepEqual(await form.getByLabel('Agent').locator('option').evaluateAll((all) => all.map((option) => /** @type {HTMLOptionElement} */ (option).value).filter(Boolean)), ['oracle', 'nop', 'terminus-2', 'bash'])
})
