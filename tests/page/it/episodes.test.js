/** Episodes of agents that ask a model: turn by turn, their terminal, the recording, and comparisons. The episodes are real; the host and the model answer from a script. */

import assert from 'node:assert/strict'
import { assertFits, seriousFindings } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { episodeTest } from '../support/episode-test.js'
import { HOSTILE, runAgent, scripting, typing, uploadTasks } from '../support/episodes.js'
import { go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { EPISODE, scriptedRun, serveRun } from '../support/tasks.js'

/** Elements that a step from one turn to the next may draw. */
const DRAWN_MAX = 300
/** Colors in the output of a command, and a title that only a real terminal would show. */
const COLORED = '\x1b[32mgreen\x1b[0m \x1b]0;title\x07plain\n'

/** @param {Api.RunView} run @param {string} [query] */
const episodeOf = (run, query = '') => `/runs/${run.id}/items/terminal_tasks/0${query}`

episodeTest('an episode is read turn by turn, beside the terminal at that turn', async ({ bench, model, open }, host) => {
  const long = `echo ${'x'.repeat(5_000)}\n`
  host.answer = ({ before }) => (before === 2 ? `${'line\n'.repeat(450)}${HOSTILE}\n` : `output ${before}\n`)
  model.answer = typing(['ls\n', 'cat data.txt\n', long, 'C-c'])
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['count']), agent: 'terminus-2', model: 'one' })
  const window = await open(episodeOf(run))
  const { page } = window
  const turns = page.getByRole('list', { name: 'Turns' })
  await turns.locator('.turn.drawn').first().waitFor()
  await settled(page)
  assert.equal(await turns.locator('.turn').count(), 6, 'four turns, and two that end the episode')

  // Figures are those of the trajectory.
  const { text } = await bench.api('GET', `/api/runs/${run.id}/items/log?benchmark=terminal_tasks&log=agent/trajectory.json&limit=1048576`)
  const { steps, final_metrics: sums } = JSON.parse(text)
  const [, first, second] = steps
  const whole = (/** @type {number} */ n) => n.toLocaleString('en-US')
  const section = page.getByRole('region', { name: 'Turn by turn' })
  assert.ok((await section.innerText()).includes(`${whole(sums.total_prompt_tokens)} → ${whole(sums.total_completion_tokens)}`))
  const figures = await turns.locator('.turn').nth(1).locator('.turn-figures').innerText()
  assert.match(figures, new RegExp(`^${second.metrics.prompt_tokens} → ${second.metrics.completion_tokens} tokens · ${second.metrics.cached_tokens} cached · \\d+ ms$`))

  // The first turn is selected: what the agent was told, wrote and did, all of it as text.
  const current = turns.locator('[aria-current]')
  await current.getByText(/^Task, [\d,]+ characters/).click()
  await current.getByText('Write the number of lines of /app/data.txt').waitFor()
  await current.getByText(HOSTILE).waitFor()
  await current.getByRole('list', { name: 'Commands' }).getByText('ls⏎').waitFor()
  assert.equal(await page.getByRole('main').locator('img, script').count(), 0)
  assert.doesNotMatch(await page.title(), /broken/)
  const screen = page.locator('.turn-screen')
  assert.equal((await screen.locator('.terminal-lines').innerText()).trim(), first.observation.results[0].content.trim())

  // Keys, buttons and the field move; the address names the turn.
  await page.locator('body').press('n')
  await screen.getByRole('heading', { name: 'Terminal after turn 2' }).waitFor()
  assert.match(page.url(), /[?&]turn=2$/)
  assert.equal(await screen.locator('.terminal-line').count(), 200, 'a long output is shown in part')
  await screen.getByRole('button', { name: /^Show more/ }).click()
  await screen.getByText(HOSTILE).waitFor()
  await page.getByRole('button', { name: 'Next turn' }).click()
  await current.getByText('Turn 3', { exact: true }).waitFor()
  const command = current.getByRole('list', { name: 'Commands' }).locator('pre')
  assert.equal((await command.innerText()).length, 2_000)
  await current.getByRole('button', { name: /^Show more \(5,0\d\d characters\)/ }).click()
  assert.ok((await command.innerText()).length > 5_000)
  await page.locator('body').press('p')
  await page.getByRole('spinbutton', { name: 'Turn' }).fill('4')
  await page.getByRole('spinbutton', { name: 'Turn' }).press('Enter')
  await current.getByText('C-c').waitFor()
  await current.getByRole('link', { name: 'Turn 4' }).focus()
  await page.keyboard.press('ArrowUp')
  await screen.getByRole('heading', { name: 'Terminal after turn 3' }).waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Turn 3', 'the focus moves along')
  await page.keyboard.press('End')
  await current.getByText('Says that the task is complete.').waitFor()

  // A link leads to the turn again.
  await go(page, episodeOf(run, '?turn=2'))
  await screen.getByRole('heading', { name: 'Terminal after turn 2' }).waitFor()
  assert.ok(await current.isVisible())
  for (const odd of ['0', '99', 'x', '-1', '1e9']) {
    await go(page, episodeOf(run, `?turn=${odd}`))
    await screen.getByRole('heading', { name: /^Terminal after turn [16]$/ }).waitFor()
  }
  assert.deepEqual(await seriousFindings(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'episode')
  assert.equal(await turns.locator('.turn:visible').count(), 1, 'a phone shows one turn at a time')
})

episodeTest('hundreds of turns are drawn only where they are in sight', async ({ bench, model, open }, host) => {
  const COUNT = 300
  host.answer = ({ before }) => `output ${before}\n`
  model.answer = typing(Array.from({ length: COUNT }, (_, i) => `echo ${i}\n`))
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['long']), agent: 'terminus-2', model: 'one' })
  const { page } = await open(episodeOf(run, '?turn=250'))
  const turns = page.getByRole('list', { name: 'Turns' })
  await page.getByRole('heading', { name: 'Terminal after turn 250' }).waitFor()
  await settled(page)
  assert.equal(await turns.locator('.turn').count(), COUNT + 2)
  assert.ok(await turns.locator('.turn.drawn').count() < 60, 'few are drawn')
  const isInSight = () => page.evaluate(() => {
    const list = document.querySelector('.turn-list')
    const [box, item] = [list, list?.querySelector('[aria-current]')].map((e) => e?.getBoundingClientRect())
    return Boolean(box && item && item.top >= box.top - 2 && item.top < box.bottom)
  })
  assert.ok(await isInSight(), 'the turn of the address is in sight')
  // A step draws no more than what it shows.
  const drawn = await page.evaluate(async () => {
    let [count, most] = [0, 0]
    const observer = new MutationObserver((changes) => {
      for (const node of changes.flatMap(({ addedNodes }) => [...addedNodes])) count += 1 + (node instanceof Element ? node.querySelectorAll('*').length : 0)
    })
    observer.observe(document.body, { subtree: true, childList: true })
    for (let i = 0; i < 40; i += 1) {
      count = 0
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true }))
      await new Promise((resolve) => { requestAnimationFrame(resolve) })
      most = Math.max(most, count)
    }
    observer.disconnect()
    return most
  })
  assert.ok(drawn < DRAWN_MAX, `a step draws ${drawn} elements`)
  await page.getByRole('heading', { name: 'Terminal after turn 290' }).waitFor()
  assert.ok(await isInSight())
})

episodeTest('a recording is loaded on request, played, and joined with the turns', async ({ bench, model, open }, host) => {
  host.answer = ({ before }) => (before === 1 ? COLORED : `output ${before}\n`)
  const type = typing(['ls\n', 'cat data.txt\n', 'pwd\n'])
  model.answer = async (question) => ({ ...await type(question), delay: 1_500 })
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['count']), agent: 'terminus-2', model: 'one' })
  const { page, guard } = await open(episodeOf(run))
  guard.allow(/500 \(Internal Server Error\)/)
  await page.locator('.turn.drawn').first().waitFor()
  const loaded = () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/terminal/player.js')).length)
  assert.equal(await loaded(), 0, 'the player is loaded on request')

  // A failure can be tried again.
  const recording = page.getByRole('region', { name: 'Recording' })
  const isRecording = (/** @type {URL} */ url) => url.pathname.endsWith('/items/log') && url.searchParams.get('log') === 'agent/recording.cast'
  await page.route(isRecording, (route) => route.fulfill({ status: 500, json: { detail: 'out of order' } }))
  await recording.getByRole('button', { name: /^Load the recording/ }).click()
  await recording.getByRole('alert').getByText('Out of order.').waitFor()
  await page.unroute(isRecording)
  await recording.getByRole('button', { name: 'Try again' }).click()
  const play = recording.getByRole('button', { name: 'Play' })
  await play.waitFor()
  const terminal = recording.getByRole('group', { name: 'Terminal of the recording' })
  const shown = async () => (await terminal.locator('.terminal-line').allInnerTexts()).map((line) => line.trimEnd()).join('\n').trim()
  assert.equal(await shown(), '', 'it begins with an empty screen')
  assert.equal(await terminal.locator('.terminal-line').count(), 24)

  // Jumping to a turn moves both; colors are colors, and titles nothing.
  await recording.getByLabel('Jump to turn').selectOption('2')
  await page.getByRole('heading', { name: 'Terminal after turn 2' }).waitFor()
  assert.equal(await shown(), 'ls\ngreen plain\n$', 'what is on the screen when turn 2 begins')
  assert.equal(await terminal.locator('span', { hasText: 'green' }).evaluate((e) => getComputedStyle(e).color), 'rgb(107, 196, 109)')
  await page.locator('body').press('n')
  assert.equal(await shown(), 'ls\ngreen plain\n$ cat data.txt\noutput 2\n$')

  // Position by keys, and the label of the time.
  await terminal.focus()
  await page.keyboard.press('End')
  assert.match(await shown(), /\$ pwd\noutput 3\n\$$/)
  const position = recording.getByLabel('Position')
  assert.match(await position.getAttribute('aria-valuetext') ?? '', /^0:0\d of 0:0\d$/)
  await page.keyboard.press('Home')
  assert.equal(await shown(), '')

  // Playing ends at the end, and pauses when asked.
  await recording.getByLabel('Speed').selectOption('4')
  await play.click()
  await recording.getByRole('button', { name: 'Pause' }).click()
  const paused = await position.inputValue()
  await page.waitForTimeout(400)
  assert.equal(await position.inputValue(), paused, 'a paused recording stands still')
  await terminal.focus()
  await page.keyboard.press('Space')
  await terminal.getByText('output 3').waitFor()
  await play.waitFor()

  // Pauses are shortened.
  const duration = async () => Number(await position.getAttribute('max'))
  const short = (await recording.getByLabel('Longest pause').selectOption('1'), await duration())
  await recording.getByLabel('Longest pause').selectOption('0')
  assert.ok(await duration() > short + 1, `${await duration()} and ${short} seconds`)
  assert.match(await shown(), /output 3/, 'the screen stays')
  assert.deepEqual(await seriousFindings(page), [])
  await page.setViewportSize(PHONE)
  await assertFits(page, 'recording')
})

episodeTest('with reduced motion, a recording changes at most once a second', async ({ bench, model, open }, host) => {
  host.answer = () => 'output\n'
  model.answer = typing(['ls\n'])
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['count']), agent: 'terminus-2', model: 'one' })
  const { page } = await open(episodeOf(run), { reducedMotion: true })
  const events = Array.from({ length: 200 }, (_, i) => JSON.stringify([i / 10, 'o', `${i}\r\n`])).join('\n')
  await page.route((url) => url.searchParams.get('log') === 'agent/recording.cast', (route) => route.fulfill({ json: { text: `{"version":2,"width":80,"height":24}\n${events}\n`, next_offset: null } }))
  await page.getByRole('button', { name: /^Load the recording/ }).click()
  await page.getByRole('button', { name: 'Play' }).waitFor()
  assert.equal(await page.getByLabel('Jump to turn').count(), 0, 'without a time of day, turns have no place in it')
  // However late a machine draws, each picture is at least a second of the recording later than the one before.
  const positions = await page.evaluate(async () => {
    const seen = [0]
    const [position, play] = ['.position', '.play'].map((part) => document.querySelector(`.player ${part}`))
    if (!(play instanceof HTMLElement) || !(position instanceof HTMLInputElement)) throw new Error('there is no player')
    play.click()
    while (seen.length < 4 && Number(position.value) < Number(position.max)) {
      await new Promise((resolve) => { requestAnimationFrame(resolve) })
      if (Number(position.value) > seen[seen.length - 1]) seen.push(Number(position.value))
    }
    return seen
  })
  const steps = positions.slice(1).map((at, i) => at - positions[i])
  assert.ok(steps.length === 3 && steps.every((step) => step > 0.85), `pictures at ${positions}`)
})

episodeTest('recordings and trajectories that can’t be read say so, and the rest stays', async ({ bench, model, open }, host) => {
  host.answer = () => 'output\n'
  model.answer = typing(['ls\n'])
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['count']), agent: 'terminus-2', model: 'one' })
  const { page } = await open('/runs')
  const serve = (/** @type {string} */ log, /** @type {string} */ text) => page.route((url) => url.searchParams.get('log') === log, (route) => route.fulfill({ json: { text, next_offset: null } }))
  await serve('agent/recording.cast', 'no recording')
  await go(page, episodeOf(run))
  await page.getByRole('button', { name: /^Load the recording/ }).click()
  await page.getByText('isn’t a recording in the format asciicast 2 or 3').waitFor()
  const hostile = { steps: [null, 7, { source: 'agent', message: [{ type: 'text', text: HOSTILE }], tool_calls: [null, { function_name: HOSTILE, arguments: { a: HOSTILE } }], observation: { results: [null, { content: `\x1b[2J\x1b[9999;9999H${HOSTILE}\x1b[?1049h` }] }, metrics: { prompt_tokens: 'x' }, timestamp: 'never' }] }
  for (const [text, expected] of [['{', 'isn’t valid JSON'], ['[]', 'isn’t a trajectory'], ['{"steps":[]}', 'ended before its first turn'], [JSON.stringify(hostile), 'Turn 1']]) {
    await serve('agent/trajectory.json', text)
    await go(page, episodeOf(run))
    await page.getByRole('main').getByText(expected).first().waitFor()
    await page.getByRole('heading', { name: 'Test output' }).waitFor()
  }
  await page.locator('.turn.drawn').waitFor()
  assert.equal(await page.getByRole('main').locator('img, script').count(), 0)
  assert.doesNotMatch(await page.title(), /broken/)
})

episodeTest('commands of the agent bash stand beside their output, also in an archive', async ({ bench, model, open }, host) => {
  host.answer = ({ before }) => (before === 0 ? COLORED : 'two\n')
  model.answer = scripting(['ls -la', 'wc -l < data.txt'])
  const run = await runAgent(bench, { tasks: await uploadTasks(bench, ['count']), agent: 'bash', model: 'one' })
  const { page } = await open(episodeOf(run))
  const check = async () => {
    await page.locator('.turn.drawn').first().waitFor()
    assert.equal(await page.locator('.turn').count(), 3)
    await page.locator('.turn[aria-current]').getByText('ls -la').first().waitFor()
    const screen = page.locator('.turn-screen .terminal-lines')
    assert.match(await screen.innerText(), /green plain/)
    assert.doesNotMatch(await screen.innerText(), /title|\x1b/)
    assert.equal(await screen.locator('span', { hasText: 'green' }).evaluate((e) => getComputedStyle(e).color), 'rgb(107, 196, 109)')
    await page.locator('body').press('n')
    await page.getByRole('heading', { name: 'Terminal after turn 2' }).waitFor()
    assert.match(await screen.innerText(), /two/)
    assert.equal(await page.getByRole('region', { name: 'Recording' }).count(), 0)
  }
  await check()
  await go(page, '/verify')
  await page.locator('input[type=file]').setInputFiles({ name: 'results.zip', mimeType: 'application/zip', buffer: await bench.archive(run.id) })
  await page.getByRole('link', { name: /Browse the run/ }).click()
  await page.getByRole('gridcell').or(page.locator('bench-table .line')).first().getByRole('link').first().click()
  await page.getByRole('heading', { level: 1, name: /^Episode 1 of/ }).waitFor()
  await check()
})

episodeTest('code in a reply says what it is, and not the name of an agent', async ({ bench, model, open }) => {
  const tasks = await uploadTasks(bench, ['count'])
  const command = `echo ${'word '.repeat(40)}`
  model.answer = scripting([command])
  const bash = await runAgent(bench, { tasks, agent: 'bash', model: 'one' })
  const type = typing(['ls\n'])
  let count = 0
  model.answer = (question) => (count++ === 0 ? { text: 'I run this:\n```bash\nls -la\n```\n' } : type(question))
  const terminal = await runAgent(bench, { tasks, agent: 'terminus-2', model: 'one' })
  const { page } = await open(episodeOf(bash))
  const labels = page.locator('.turn .answer-language')
  await page.locator('.turn.drawn').nth(1).waitFor()
  assert.deepEqual(await labels.allInnerTexts(), ['Command'])
  // A label is above the code, not on it.
  const [label, code] = await Promise.all([labels.first(), page.locator('.turn .answer-block').first()].map((each) => each.boundingBox()))
  assert.ok(label && code && label.y + label.height <= code.y, JSON.stringify([label, code]))
  assert.match(await page.getByRole('region', { name: 'Result of the episode' }).innerText(), /End of the agent: it said that the task is complete, after 2 turns\./)
  await go(page, episodeOf(terminal))
  await labels.first().waitFor()
  assert.deepEqual(await labels.allInnerTexts(), ['Language: bash'], 'nothing of it ran')
})

pageTest('every end of an agent is said in words', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const { page } = await open('/runs')
  let end = ''
  await serveRun(page, scriptedRun(base, { tasks: ['ends'], samples: 1 }), { texts: () => ({ ...EPISODE, detail: { agent: 'bash', agent_end: end, turns: 1 } }) })
  for (const [name, words] of Object.entries({
    completed: 'it said that the task is complete', turn_limit: 'it reached its limit of turns', token_limit: 'its budget of tokens was spent',
    cost_limit: 'its budget of dollars was spent', time_limit: 'its time was over', context_exceeded: 'the conversation no longer fit into the model’s context',
    output_exceeded: 'too many replies in a row were cut by the length limit', format_errors: 'too many replies in a row had no valid form',
    terminal_ended: 'its terminal session had ended', model_failed: 'the model couldn’t be asked', 'of a later version': 'of a later version',
  })) {
    end = name
    await go(page, '/runs')
    await go(page, `/runs/${base.id}/items/terminal_tasks/0`)
    await page.getByText(`End of the agent: ${words}, in the last step, after 1 turn.`).waitFor()
  }
})

pageTest('each step of a task has its turns', async ({ bench, open }) => {
  const base = await bench.ended((await bench.order({ subset_count: 4 })).id)
  const { page } = await open('/runs')
  const log = (/** @type {string} */ name) => ({ name, bytes: 100, end: '', cut: true })
  const script = scriptedRun(base, { tasks: ['steps'], samples: 1 })
  await serveRun(page, script, { texts: () => ({ ...EPISODE, judge_output: { ...EPISODE.judge_output, logs: ['repair', 'report'].map((step) => log(`steps/${step}/agent/trajectory.json`)) } }) })
  await page.route((url) => url.pathname.endsWith('/items/log'), (route) => {
    const [, step] = new URL(route.request().url()).searchParams.get('log')?.split('/') ?? []
    const steps = [1, 2, 3].map((turn) => ({ source: 'agent', message: `${step} ${turn}`, observation: { results: [{ content: `screen of ${step} ${turn}` }] }, metrics: { prompt_tokens: 1_200, completion_tokens: 30, cached_tokens: 1_000, cost_usd: 0.0053, extra: { latency_ms: 2_300 } } }))
    // The second page is another request.
    const text = JSON.stringify({ steps })
    const offset = Number(new URL(route.request().url()).searchParams.get('offset'))
    return route.fulfill({ json: offset === 0 ? { text: text.slice(0, 40), next_offset: 40 } : { text: text.slice(40), next_offset: null } })
  })
  await go(page, `/runs/${base.id}/items/terminal_tasks/0`)
  const [repair, report] = ['repair', 'report'].map((step) => page.getByRole('region', { name: `Turn by turn: ${step}` }))
  for (const [step, section] of [['repair', repair], ['report', report]]) await /** @type {typeof repair} */ (section).getByText(`screen of ${step} 1`).waitFor()
  assert.equal(await repair.locator('[aria-current] .turn-figures').innerText(), '1,200 → 30 tokens · 1,000 cached · $0.0053 · 2.3 s')
  await page.locator('body').press('n')
  await repair.getByText('screen of repair 2').waitFor()
  assert.match(page.url(), /turn=2&step=repair$/)
  await report.getByRole('link', { name: 'Turn 3' }).click()
  await report.getByText('screen of report 3').waitFor()
  await page.locator('body').press('p')
  await report.getByText('screen of report 2').waitFor()
  assert.match(page.url(), /turn=2&step=report$/)
  await page.reload()
  await report.getByText('screen of report 2').waitFor()
  await repair.getByText('screen of repair 1').waitFor()
})
