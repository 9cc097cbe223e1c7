/** Runs that are continued, and views that are linked, reloaded, gone back to and open twice. */

import assert from 'node:assert/strict'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { follow, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

pageTest('an interrupted run is resumed', async ({ bench, model, open }) => {
  await bench.stop()
  const release = model.hold()
  const command = bench.run('run', '--model', 'openai-compatible/held', '--base-url', bench.environment.OPENAI_COMPATIBLE_BASE_URL, '--benchmark', 'mmlu_pro',
    '--demo', '--subset-count', '6', '--yes', '--out', path.join(bench.folder, 'out'))
  command.catch(() => {})
  while (model.total === 0) await sleep(50)
  bench.killCommands()
  await command.catch(() => {})
  await bench.start()
  const { page } = await open('/runs?status=interrupted')
  const main = page.getByRole('main')
  await main.getByText('Interrupted').nth(1).waitFor()
  await follow(page, () => main.getByRole('link', { name: 'openai-compatible/held' }).click())
  await main.getByRole('heading', { level: 1, name: 'Interrupted' }).waitFor()
  await main.getByText(/Resume continues it on this server/).waitFor()
  release()
  await main.getByRole('button', { name: 'Resume…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await main.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
}, { timeout: 150_000 })

pageTest('a link to an item opens it, and back and forward lead through the same views', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order()).id)
  const { items: { items: [first, second] } } = await bench.api('GET', `/api/runs/${run.id}/benchmarks/mmlu_pro?limit=2`)
  const { page } = await open(`/runs/${run.id}/items/mmlu_pro/${first.item_id}`)
  const heading = page.getByRole('heading', { level: 1 })
  await heading.getByText(`Item ${first.source_id}`).waitFor()
  await settled(page)
  await follow(page, () => page.getByRole('link', { name: 'Next', exact: true }).click())
  await heading.getByText(`Item ${second.source_id}`).waitFor()
  await page.reload()
  await heading.getByText(`Item ${second.source_id}`).waitFor()
  await follow(page, () => page.goBack())
  await heading.getByText(`Item ${first.source_id}`).waitFor()
  await follow(page, () => page.goForward())
  await heading.getByText(`Item ${second.source_id}`).waitFor()
  // The dataset's own id works in a link too, and an unknown one says so with a way out.
  await go(page, `/runs/${run.id}/items/mmlu_pro/${second.source_id}`)
  await heading.getByText(`Item ${second.source_id}`).waitFor()
  await go(page, `/runs/${run.id}/items/mmlu_pro/none`)
  await page.getByRole('heading', { level: 1, name: 'Item not found' }).waitFor()
  await follow(page, () => page.getByRole('link', { name: 'All items' }).click())
  await page.getByRole('grid', { name: /Samples of mmlu_pro/ }).waitFor()
})

pageTest('a mistyped address is said on the page, and leads to the runs', async ({ bench, open }) => {
  const { page, guard } = await open('/runs')
  guard.allow(/404 \(Not Found\)/)
  const response = await page.goto('/unknown/address')
  assert.equal(response?.status(), 404)
  await page.getByRole('heading', { level: 1, name: 'Nothing is here' }).waitFor()
  await page.getByText('The page has no view at /unknown/address.').waitFor()
  await page.getByRole('link', { name: 'All runs' }).click()
  await page.waitForURL((url) => url.pathname === '/')
  // Programs get an error with a code.
  const refused = await fetch(`${bench.origin}/unknown/address`)
  assert.deepEqual([refused.status, (await refused.json()).code], [404, 'route_not_found'])
})

pageTest('filters, tabs and the selection are in the address and survive a reload', async ({ bench, open }) => {
  const runs = []
  for (const seed of ['a', 'b']) runs.push(await bench.ended((await bench.order({ subset_seed: seed, tags: ['kept'] })).id))
  const { page } = await open('/runs')
  await settled(page)
  for (const { id } of runs) await page.getByRole('checkbox', { name: new RegExp(`${id.slice(0, 8)} for a comparison`) }).check()
  await page.getByLabel('Tag').fill('kept')
  await page.waitForURL(/tag=kept/)
  await page.reload()
  await settled(page)
  assert.equal(await page.getByLabel('Tag').inputValue(), 'kept')
  await follow(page, () => page.getByRole('link', { name: 'Compare 2 runs' }).click())
  await follow(page, () => page.goBack())
  await settled(page)
  assert.equal(await page.getByRole('checkbox', { name: / for a comparison$/, checked: true }).count(), 2, 'the selection is kept')
  await go(page, `/runs/${runs[0].id}`)
  await settled(page)
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.reload()
  await page.getByRole('tab', { name: 'Settings', selected: true }).waitFor()
})

pageTest('a run is watched in two tabs, reloaded in the middle, and canceled in one of them', async ({ bench, model, open }) => {
  let asked = 0
  const release = model.hold()
  const held = model.answer
  model.answer = (question) => (++asked > 5 ? held(question) : { text: 'The answer is (A).' })
  const run = await bench.order({ model_id: 'openai-compatible/slow' })
  const { page } = await open(`/runs/${run.id}`)
  const other = await open('/runs')
  await page.getByText(/5 of 12 items/).first().waitFor()
  await page.reload()
  await page.getByText(/5 of 12 items/).first().waitFor()
  await page.getByText(/^Provisional: of 5 graded samples so far/).waitFor()
  await page.getByRole('main').getByRole('button', { name: 'Cancel…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click()
  await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
  await other.page.getByRole('row', { name: /slow/ }).getByText('Canceled').waitFor()
  // What the other tab still offers is refused with a sentence, and the tab catches up.
  release()
  await bench.api('DELETE', `/api/runs/${run.id}`)
  other.guard.allow(/404 \(Not Found\)/)
  await follow(other.page, () => other.page.getByRole('link', { name: 'openai-compatible/slow' }).click())
  await other.page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor()
  await follow(other.page, () => other.page.getByRole('link', { name: 'List of runs' }).click())
}, { timeout: 120_000 })
