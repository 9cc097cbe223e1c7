/** Two runs on the items that they share. */

import assert from 'node:assert/strict'
import path from 'node:path'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { writeLines } from '../support/dataset.js'
import { runAgent, scripting, startHost, typing, uploadTasks } from '../support/episodes.js'
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

pageTest('no line of an interval chart crosses a label, and long names are whole on a phone', async ({ open }) => {
  const { page } = await open('/compare')
  for (const width of [358, 560, 736]) {
    const { crossed, cut, outside } = await page.evaluate(async (width) => {
      const { intervalChart } = await import(/** @type {any} */ ('/page/js/charts/interval-chart.js'))
      const place = document.createElement('div')
      place.style.width = `${width}px`
      document.querySelector('main')?.append(place)
      const format = (/** @type {number} */ value) => `${value < 0 ? '−' : '+'}${Math.abs(value * 100).toFixed(1)} pp`
      const row = (/** @type {string} */ label, /** @type {number} */ value) => ({ label, values: [{ value, low: value - 0.055, high: value + 0.055 }] })
      place.append(intervalChart({
        title: 'Difference', column: 'Run', series: ['Difference'], reference: 0, format, formatTick: (/** @type {number} */ value) => `${value < 0 ? '−' : ''}${Math.abs(value * 100)} pp`,
        formatInterval: (/** @type {number} */ low, /** @type {number} */ high) => `${format(low)} to ${format(high)}`,
        rows: [row('B openai-compatible/atlas-8b-instruct', -0.2), row('C openai-compatible/lumen-mini', 0.01)],
      }))
      await new Promise((resolve) => setTimeout(resolve, 100))
      const texts = [...place.querySelectorAll('svg .chart-text')].map((element) => ({ text: element.textContent, box: element.getBoundingClientRect() }))
      const lines = [...place.querySelectorAll('svg .chart-grid, svg .chart-reference')].map((element) => element.getBoundingClientRect())
      const left = place.getBoundingClientRect().left
      const result = {
        crossed: texts.filter(({ box }) => lines.some((l) => l.left > box.left + 1 && l.left < box.right - 1 && l.top < box.bottom - 3 && l.bottom > box.top + 3)).map(({ text }) => text),
        cut: texts.filter(({ text }) => text?.includes('…')).map(({ text }) => text),
        outside: texts.filter(({ box }) => box.left < left - 1 || box.right > left + width + 1).map(({ text }) => text),
      }
      place.remove()
      return result
    }, width)
    assert.deepEqual({ crossed, outside }, { crossed: [], outside: [] }, `at ${width} px`)
    if (width < 400) assert.deepEqual(cut, [], 'a name that fits into a line is whole')
  }
})

pageTest('labels of close points in a chart cover neither each other nor a point', async ({ open }) => {
  const { page } = await open('/compare')
  for (const width of [320, 560, 736]) {
    const covered = await page.evaluate(async (width) => {
      const { scatterChart } = await import(/** @type {any} */ ('/page/js/charts/scatter-chart.js'))
      const place = document.createElement('div')
      place.style.width = `${width}px`
      document.querySelector('main')?.append(place)
      const format = String
      const points = [[0.010, 0.615], [0.022, 0.681], [0.023, 0.684], [0.093, 0.844], [0.091, 0.842]]
        .map(([x, y], series) => ({ label: `${'ABCDE'[series]} provider/model`, x, y, low: y - 0.06, high: y + 0.05, series }))
      place.append(scatterChart({ title: 'Close', x: { label: 'Cost', format }, y: { label: 'Score', format, formatInterval: format }, points }))
      const boxes = [...place.querySelectorAll('text')].filter((text) => /provider|…/.test(text.textContent ?? '')).map((text) => ({ name: text.textContent, box: text.getBoundingClientRect() }))
      const marks = [...place.querySelectorAll('svg .chart-mark')].map((mark, i) => ({ name: `point ${i}`, box: mark.getBoundingClientRect() }))
      const isOver = (/** @type {DOMRect} */ a, /** @type {DOMRect} */ b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
      const found = boxes.flatMap((one, i) => [...boxes.slice(i + 1), ...marks].filter((other) => isOver(one.box, other.box)).map((other) => `${one.name} and ${other.name}`))
      place.remove()
      if (width > 500) found.push(...boxes.filter(({ name }) => name?.includes('…')).map(({ name }) => `${name} is cut`))
      return boxes.length === points.length ? found : [`${boxes.length} labels`]
    }, width)
    assert.deepEqual(covered, [], `${width} px`)
  }
})

pageTest('runs without a common item have no difference', async ({ bench, model, open }) => {
  model.answer = () => ({ text: 'The answer is (A).' })
  const runs = []
  for (const items of [['0', '1'], ['2', '3']]) runs.push(await bench.ended((await bench.order({ subset_count: undefined, subset_seed: undefined, items: items.map((item) => `#${item}`) })).id))
  const { page } = await open(`/compare?runs=${runs.map(({ id }) => id).join(',')}`)
  await settled(page)
  const main = page.getByRole('main')
  await main.getByText(/no graded item in common, so there is no difference to state/).waitFor()
  assert.equal(await main.getByRole('region', { name: 'Paired differences' }).count(), 0)
  assert.equal(await main.getByRole('heading', { name: 'Agreement' }).count(), 0)
  assert.match(await main.getByLabel('Show').locator('option:checked').innerText(), /Graded in some runs only \(4\)/, 'the list shows what there is')
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

/** More samples than those whose texts the page loads without asking. */
const MANY = 210

/**
 * Runs the oracle on two revisions of a dataset, in which three of the items have different questions.
 *
 * @param {import('../support/bench.js').Bench} bench
 * @returns {Promise<string[]>} ids of the runs
 */
async function runsOfTwoRevisions(bench) {
  const items = Array.from({ length: MANY }, (_, i) => ({ id: `q${i + 1}`, problem: `What is ${i} plus one?`, answer: i + 1 }))
  const later = items.map((item, i) => ([4, 100, 209].includes(i) ? { ...item, problem: `${item.problem} Think twice.` } : item))
  for (const [name, rows] of /** @type {const} */ ([['first', items], ['second', later]])) {
    writeLines(path.join(bench.folder, `${name}.jsonl`), rows)
    await bench.run('run', '--model', 'oracle', '--benchmark', 'aime_2025', '--dataset', `aime_2025=${name}.jsonl`, '--samples', '1', '--yes', '--name', name, '--out', path.join(bench.folder, name))
  }
  const { runs } = await bench.api('GET', '/api/runs')
  return ['first', 'second'].map((name) => runs.find((/** @type {Api.RunView} */ run) => run.name === name).id)
}

pageTest('items whose question differs between revisions of a dataset are named from the indexes', async ({ bench, open }) => {
  const ids = await runsOfTwoRevisions(bench)
  const { page } = await open('/runs')
  /** @type {string[]} */
  const withTexts = []
  page.on('request', (request) => { if (/\/benchmarks\/aime_2025\?.*cursor/.test(request.url())) withTexts.push(request.url()) })
  await page.goto(`/compare?runs=${ids.join(',')}`)
  await settled(page)
  const main = page.getByRole('main')
  await main.getByText('3 items with different questions: q5, q101, q210.').waitFor()
  assert.deepEqual(withTexts, [], 'no texts were loaded')
  await main.getByLabel('Show', { exact: true }).selectOption({ label: 'Different questions (3)' })
  const list = main.getByRole('region', { name: 'Item by item' })
  for (const item of ['q5', 'q101', 'q210']) await list.getByRole('button', { name: item, exact: true }).waitFor()
  await list.getByText('3 items', { exact: true }).waitFor()
  // They count for no figure.
  await main.getByText(`A and B agree on 100.0% of ${MANY - 3} items`).waitFor()
})

pageTest('indexes of earlier versions say that the items whose question differs aren’t known', async ({ bench, open }) => {
  const ids = await runsOfTwoRevisions(bench)
  const { page } = await open('/runs')
  await page.route('**/items/index?*', async (route) => {
    const response = await route.fetch()
    const index = await response.json()
    const at = index.columns.indexOf('item_hash')
    const without = (/** @type {unknown[]} */ values) => values.filter((_, i) => i !== at)
    await route.fulfill({ response, json: { ...index, columns: without(index.columns), rows: index.rows.map(without) } })
  })
  await page.goto(`/compare?runs=${ids.join(',')}`)
  await settled(page)
  const main = page.getByRole('main')
  await main.getByRole('button', { name: 'Find them' }).waitFor()
  assert.equal(await main.getByText(/different questions/i).count(), 0)
  await main.getByRole('button', { name: 'Find them' }).click()
  await main.getByText('3 items with different questions: q5, q101, q210.').waitFor()
})

/** Rewards of the episodes of each task, by run. */
const REWARDS = [{ first: [1, 1, 0, 1], second: [0, 0, 0, 0], third: [1, 1, 1, 1] }, { first: [0, 1, 0, 0], second: [1, 0, 0, 0], third: [1, 1, 1, 1] }]

pageTest('two agents are compared task by task, with both episodes side by side', async ({ bench, model, open }) => {
  const { host, environment } = await startHost()
  try {
    await bench.stop()
    Object.assign(bench.environment, environment)
    await bench.start()
    const names = Object.keys(REWARDS[0])
    const tasks = await uploadTasks(bench, names)
    const runs = []
    for (const [at, agent] of ['terminus-2', 'bash'].entries()) {
      const left = structuredClone(REWARDS[at])
      // What the agent does names its task, so that each episode gets a reward that is meant for it.
      model.answer = (question) => {
        const [, task] = /Work on (\w+)\./.exec(JSON.stringify(question.body.messages)) ?? []
        return agent === 'bash' ? scripting([`ls ${task}`])(question) : typing([`ls ${task}\n`])(question)
      }
      host.reward = (acts) => {
        const done = acts.map(({ keys, command }) => keys ?? command).join('')
        return /** @type {Record<string, number[]>} */ (left)[names.find((name) => done.includes(name)) ?? 'first'].shift() ?? 0
      }
      runs.push(await runAgent(bench, { tasks, agent, model: 'same', samples: 4 }))
    }
    const { page } = await open(`/compare?runs=${runs.map(({ id }) => id).join(',')}`)
    await settled(page)
    const main = page.getByRole('main')
    await main.getByRole('link', { name: 'openai-compatible/same · terminus-2' }).waitFor()
    await main.getByRole('link', { name: 'openai-compatible/same · bash' }).waitFor()
    const table = main.getByRole('grid', { name: 'Tasks' })
    const lines = async () => (await table.locator('.line').evaluateAll((all) => all.toSorted((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((line) => [...line.children].map((cell) => /** @type {HTMLElement} */ (cell).innerText.replace(/^bench-runner\/|@.*$/g, '').trim()))))
    // The table draws its lines with the next picture.
    const first = (/** @type {string} */ name) => page.waitForFunction((wanted) => {
      const all = [...document.querySelectorAll('bench-table .line')]
      return all.toSorted((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0]?.textContent?.includes(wanted)
    }, `bench-runner/${name}@`)
    // The largest differences are first.
    await first('first')
    assert.deepEqual(await lines(), [['first', '75.0% 3/4', '25.0% 1/4', '−50.0 pp'], ['second', '0.0% 0/4', '25.0% 1/4', '+25.0 pp'], ['third', '100.0% 4/4', '100.0% 4/4', '0.0 pp']])
    await table.getByRole('button', { name: 'B', exact: true }).click()
    await first('third')
    await table.getByRole('button', { name: /^B − A/ }).click()
    await first('first')
    await main.getByLabel('Show').selectOption({ label: 'A passes most often (1)' })
    await main.getByText('1 task', { exact: true }).waitFor()
    await first('first')

    // The episodes of a task, each with a link in both runs.
    await table.getByRole('button', { name: /first/ }).click()
    const side = main.getByRole('region', { name: 'Episodes side by side' })
    const rows = side.getByRole('row')
    assert.equal(await rows.count(), 5)
    const { items } = await bench.api('GET', `/api/runs/${runs[0].id}/benchmarks/terminal_tasks?sample=2&limit=10`)
    const item = items.items.find((/** @type {any} */ { source_id: id }) => id.startsWith('bench-runner/first'))
    const links = rows.nth(3).getByRole('link')
    assert.deepEqual(await links.evaluateAll((all) => all.map((a) => a.getAttribute('href'))), runs.map(({ id }) => `/runs/${id}/items/terminal_tasks/${item.item_id}?sample=2`))
    assert.match(await rows.nth(3).innerText(), new RegExp(`reward ${item.score}\\.00 · ${item.input_tokens} → ${item.output_tokens} tokens`))
    assert.deepEqual(await seriousFindings(page), [])
    await page.emulateMedia({ colorScheme: 'dark' })
    assert.deepEqual(await seriousFindings(page), [])
    // The address has the filter and the task.
    await page.reload()
    await rows.nth(4).waitFor()
    await page.setViewportSize(PHONE)
    await assertFits(page, 'comparison of tasks')
    await links.nth(1).click()
    await page.getByRole('heading', { level: 1, name: /^Episode 3 of .*first/ }).waitFor()
    await page.locator('.turn.drawn').first().waitFor()
    assert.equal(host.problem, null)
  } finally {
    host.stop()
  }
}, { timeout: 120_000 })
