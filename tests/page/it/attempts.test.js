/** Attempts at programming tasks: verdict, failed tests, the applied change side by side, and output. Real sandboxes run them. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { seriousFindings } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { readDiff } from '../../../frontend-static/js/text/diff.js'

const TASK = 'html_heat_table'
const FOLDER = new URL(`../../../tasks/${TASK}/`, import.meta.url)
const solution = (/** @type {string} */ name) => fs.readFileSync(new URL(`solutions/${name}.diff`, FOLDER), 'utf8')
/** Name and entry of a wrong solution. @type {[string, {fails: string[]}]} */
const [WRONG, { fails }] = /** @type {any} */ (Object.entries(JSON.parse(fs.readFileSync(new URL('metadata.json', FOLDER), 'utf8')).admission.wrong)[0])

/**
 * Runs the task with a reply, and returns the run.
 *
 * @param {import('../support/world.js').World} world
 * @param {string} reply
 */
async function attempt({ bench, model }, reply) {
  model.answer = () => ({ text: reply })
  const run = await bench.order({ model_id: 'openai-compatible/one', demo: undefined, selected_benchmarks: ['code_lab'], subset_count: undefined, subset_seed: undefined, items: [TASK] })
  await bench.ended(run.id)
  return run
}

pageTest('a wrong attempt shows its failed tests, its change side by side and its output', async (world) => {
  const { bench, open } = world
  const run = await attempt(world, `So:\n\`\`\`diff\n${solution(`wrong-${WRONG}`)}\`\`\`\n`)
  const { page } = await open(`/runs/${run.id}/items/code_lab/${TASK}`)
  const result = page.getByRole('region', { name: 'Result of the attempt' })
  await result.getByText('Tests failed').waitFor()
  const failed = page.getByRole('region', { name: 'Failed tests' })
  assert.deepEqual((await failed.locator('li > code').allInnerTexts()).sort(), [...fails].sort())

  // The table has the lines of the patch that the API returns.
  const { text } = await bench.api('GET', `/api/runs/${run.id}/artifacts?benchmark=code_lab&log=patch.diff&limit=1048576`)
  const files = readDiff(text)
  const change = page.getByRole('region', { name: 'Applied change' })
  await change.locator('details').nth(files.length - 1).waitFor()
  assert.deepEqual(await change.locator('summary code').allInnerTexts(), files.map(({ path }) => path))
  const first = change.locator('details').first()
  const rows = files[0].hunks.flat()
  assert.equal(await first.locator('tbody tr').count(), rows.length)
  const changed = rows.find((row) => row.kind === 'changed' && row.after?.trim())
  assert.ok(changed)
  const cells = first.locator('tbody tr').nth(rows.indexOf(changed)).locator('td')
  assert.equal((await cells.nth(3).textContent())?.replace(/^added: /, ''), changed.after)

  await page.getByText('Test output').click()
  await page.getByText(`=== ${fails[0]}`).waitFor()
  await settled(page)
  assert.deepEqual(await seriousFindings(page), [])
  assert.equal(await page.getByRole('heading', { name: 'Executed code' }).count(), 0)
})

pageTest('attempts that pass, and those that are not applied, say so on a phone', async (world) => {
  const { open } = world
  const right = await attempt(world, `\`\`\`diff\n${solution('reference')}\`\`\`\n`)
  const { page } = await open(`/runs/${right.id}/items/code_lab/${TASK}`, PHONE)
  await page.getByRole('region', { name: 'Result of the attempt' }).getByText('Tests passed').waitFor()
  assert.equal(await page.getByRole('region', { name: 'Failed tests' }).count(), 0)
  await page.getByRole('region', { name: 'Applied change' }).locator('details').first().waitFor()
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'the page is as wide as the phone')

  const other = await attempt(world, '```diff\n--- a/none.js\n+++ b/none.js\n@@ -1 +1 @@\n-<img src=x onerror=alert(1)>\n+b\n```')
  await page.goto(new URL(`/runs/${other.id}/items/code_lab/${TASK}`, page.url()).href)
  await page.getByText('Not applied').waitFor()
  await page.getByText('there is no file none.js in the workspace').or(page.getByText('there is no file `none.js` in the workspace')).first().waitFor()
  await page.getByRole('region', { name: 'Applied change' }).getByText('Nothing was applied.').waitFor()
  assert.equal(await page.getByRole('main').locator('img').count(), 0)
})

pageTest('an agent’s attempt shows its turns beside the change that was graded', async (world) => {
  const { bench, model, open } = world
  const commands = ['ls -a; echo seen > note.txt']
  model.answer = ({ body }) => {
    const turn = body.messages.filter(({ role }) => role === 'assistant').length
    return { text: turn < commands.length ? `I look.\n\`\`\`bash\n${commands[turn]}\n\`\`\`\n` : '```done\n```\n' }
  }
  const run = await bench.order({ model_id: 'openai-compatible/one', demo: undefined, selected_benchmarks: ['code_lab'], protocols: { code_lab: 'agent' }, subset_count: undefined, subset_seed: undefined, items: [TASK] })
  await bench.ended(run.id)
  const { page } = await open(`/runs/${run.id}/items/code_lab/${TASK}`)
  const result = page.getByRole('region', { name: 'Result of the attempt' })
  await result.getByText('Tests failed').waitFor()
  await result.getByText('2 turns').waitFor()
  const change = page.getByRole('region', { name: 'Applied change' })
  await change.locator('summary code').first().waitFor()
  assert.deepEqual(await change.locator('summary code').allInnerTexts(), ['note.txt'])
  const turns = page.getByRole('region', { name: 'Turn by turn' })
  await turns.getByText('ls -a; echo seen > note.txt').first().waitFor()
  assert.equal(await turns.locator('.turn-list > li').count(), 2)
  await page.getByText('Test output').click()
  await settled(page)
  assert.deepEqual(await seriousFindings(page), [])
  // The list of runs says that an agent worked, as for terminal tasks.
  await page.goto(new URL('/runs', page.url()).href)
  await page.getByText('code_lab with bash').first().waitFor()
})
