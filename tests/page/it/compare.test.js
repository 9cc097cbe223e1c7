/** Two runs on the items that they share. */

import assert from 'node:assert/strict'
import { settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/** Texts that a view about comparisons says, whatever the numbers are. */
const FIGURES = /[+−]\d+\.\d pp/

pageTest('two runs are selected in the list and compared item by item', async ({ bench, model, open }) => {
  model.answer = ({ model: name, text }) => ({ text: `The answer is (${'ABCDEFGHIJ'[(text.length + (name === 'one' ? 0 : text.length % 2)) % 10]}).` })
  const [first, second] = []
  const runs = [first, second]
  for (const [i, name] of ['one', 'two'].entries()) runs[i] = await bench.ended((await bench.order({ model_id: `openai-compatible/${name}`, subset_count: 28 })).id)
  const { page } = await open('/runs')
  for (const name of ['one', 'two']) await page.getByRole('checkbox', { name: new RegExp(`^Select openai-compatible/${name} `) }).check()
  await page.getByRole('link', { name: /^Compare 2/ }).or(page.getByRole('button', { name: /^Compare 2/ })).first().click()
  await page.waitForURL(/\/compare\?/)
  await settled(page)
  const main = page.getByRole('main')
  const expected = await bench.api('GET', `/api/runs/${runs[0].id}/compare/${runs[1].id}`)
  const { benchmarks: [{ items }] } = expected
  const text = await main.innerText()
  assert.match(text, FIGURES, 'the difference')
  assert.match(text, /95%/, 'its interval')
  assert.match(text, /p\s*(=|<|≈|value)/i, 'the p-value')
  if (items) assert.match(text, new RegExp(`\\b${items}\\b`), 'the number of shared items')
  // What the items disagree about leads to the item in each run.
  const link = main.locator('a[href*="/items/mmlu_pro/"]').first()
  await link.waitFor()
  await link.click()
  await page.getByRole('heading', { level: 1, name: /^Item/ }).waitFor()
})

pageTest('every chart of a comparison has a table with the same numbers', async ({ bench, model, open }) => {
  model.answer = ({ model: name }) => ({ text: `The answer is (${name === 'one' ? 'A' : 'B'}).` })
  const ids = []
  for (const name of ['one', 'two', 'three']) ids.push((await bench.ended((await bench.order({ model_id: `openai-compatible/${name}`, subset_count: 28 })).id)).id)
  const { page } = await open(`/compare?runs=${ids.join(',')}`)
  await settled(page)
  const charts = page.getByRole('main').locator('figure:has(svg)')
  assert.ok(await charts.count() >= 2, 'there are charts')
  for (let i = 0; i < await charts.count(); i += 1) {
    const chart = charts.nth(i)
    for (const summary of await chart.locator('summary').all()) await summary.click()
    assert.ok(await chart.getByRole('table').count() > 0, `chart ${i + 1} has a table: ${(await chart.innerText()).slice(0, 80)}`)
  }
})

pageTest('runs that measure different things say so', async ({ bench, open }) => {
  const one = await bench.ended((await bench.order({ subset_seed: 'a' })).id)
  const two = await bench.ended((await bench.order({ subset_seed: 'b', generation: undefined, temperature: 0.7 })).id)
  const other = await bench.ended((await bench.order({ selected_benchmarks: ['aime_2025'], subset_count: 2 })).id)
  const { page } = await open(`/compare?runs=${one.id},${two.id}`)
  await settled(page)
  assert.match(await page.getByRole('main').innerText(), /temperature|settings differ|only (one|in one)|not in both|shared/i)
  await page.goto(`/compare?runs=${one.id},${other.id}`)
  await settled(page)
  assert.match(await page.getByRole('main').innerText(), /no benchmark|not comparable|in common|share/i)
})
