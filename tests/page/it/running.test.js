/** An episode while it runs: what happens in it, and its turns as they are taken. The host and the model answer from a script. */

import assert from 'node:assert/strict'
import { seriousFindings, assertFits } from '../support/accessibility.js'
import { PHONE } from '../support/browser.js'
import { scripting, typing, uploadTasks } from '../support/episodes.js'
import { episodeTest } from '../support/episode-test.js'
import { settled } from '../support/navigation.js'

/**
 * Lets a model answer as many turns as it is told.
 *
 * @param {(question: import('../support/model-server.js').Question) => import('../support/model-server.js').Reply} answer
 */
function stepwise(answer) {
  /** @type {(() => void)[]} */
  const waiting = []
  let allowed = 0
  return {
    /** @param {import('../support/model-server.js').Question} question */
    answer: async (question) => {
      const turn = question.body.messages.filter(({ role }) => role === 'assistant').length
      while (turn >= allowed) await new Promise((resolve) => { waiting.push(() => resolve(null)) })
      return answer(question)
    },
    /** @param {number} turns */
    allow: (turns) => {
      allowed = turns
      for (const wake of waiting.splice(0)) wake()
    },
  }
}

for (const agent of /** @type {const} */ (['terminus-2', 'bash'])) {
  episodeTest(`a running episode of ${agent} is followed turn by turn, until it is over`, async ({ bench, model, open }, host) => {
    host.answer = ({ before }) => `output ${before}\n`
    const texts = ['ls', 'pwd', 'date']
    const steps = stepwise(agent === 'bash' ? scripting(texts) : typing(texts.map((text) => `${text}\n`)))
    model.answer = steps.answer
    const tasks = await uploadTasks(bench, ['count'])
    const { id } = await bench.api('POST', '/api/runs', { tasks, agent, model_id: 'openai-compatible/one' })
    const { page } = await open(`/runs/${id}`)
    await page.getByRole('link', { name: /count/ }).first().click()
    const status = page.getByRole('region', { name: 'Turn by turn' }).getByRole('status')
    await status.getByText('The agent is at work.').waitFor()
    await page.getByText('The model hasn’t answered yet.').waitFor()

    // Turns appear, and the newest one is selected.
    const turns = page.getByRole('list', { name: 'Turns' })
    const screen = page.locator('.turn-screen')
    const seen = (/** @type {number} */ turn, /** @type {string} */ text) => page.locator('.turn-screen', { has: page.getByRole('heading', { name: `Terminal after turn ${turn}` }), hasText: text }).waitFor()
    steps.allow(1)
    // The terminal of the other agent is looked at before its first turn, too.
    const first = agent === 'bash' ? 0 : 1
    await seen(1, `output ${first}`)
    assert.equal(await turns.locator('.turn').count(), 1)
    await turns.locator('[aria-current]').getByRole('list', { name: 'Commands' }).or(turns.locator('[aria-current] .answer-code')).getByText(/ls/).first().waitFor()
    steps.allow(2)
    await seen(2, `output ${first + 1}`)
    assert.deepEqual(await seriousFindings(page), [])

    // A reader who looks at an earlier turn stays there.
    await page.locator('body').press('p')
    await screen.getByRole('heading', { name: 'Terminal after turn 1' }).waitFor()
    /** @type {number[]} */
    const asked = []
    page.on('request', (request) => { if (request.url().includes('/items/turns')) asked.push(Number(new URL(request.url()).searchParams.get('from'))) })
    steps.allow(3)
    await turns.locator('.turn').nth(2).waitFor()
    assert.ok(await screen.getByRole('heading', { name: 'Terminal after turn 1' }).isVisible())
    assert.ok(asked.length > 0 && asked.every((from) => from >= 2), `only new steps are asked for: ${asked}`)
    const focused = turns.locator('.turn').nth(2).getByRole('link', { name: 'Turn 3' })
    await focused.click()
    assert.match(page.url(), /turn=3/)
    await page.setViewportSize(PHONE)
    await assertFits(page, 'running episode')

    // The end shows the result without a step of the reader.
    steps.allow(9)
    await page.getByRole('region', { name: 'Result of the episode' }).waitFor()
    await screen.getByRole('heading', { name: 'Terminal after turn 3' }).waitFor()
    await settled(page)
    assert.equal(await status.count(), 0)
  })
}

episodeTest('an episode that is canceled while it is read says so, and keeps its turns', async ({ bench, model, open }) => {
  const steps = stepwise(scripting(['ls']))
  model.answer = steps.answer
  const tasks = await uploadTasks(bench, ['count'])
  const { id } = await bench.api('POST', '/api/runs', { tasks, agent: 'bash', model_id: 'openai-compatible/one' })
  const { page } = await open(`/runs/${id}/items/terminal_tasks/0`)
  await page.getByText('The agent is at work.').waitFor()
  steps.allow(1)
  await page.locator('.turn').first().waitFor()
  await bench.api('POST', `/api/runs/${id}/cancel`)
  await page.getByText('The run ended before the episode was over.').waitFor()
  await page.locator('.turn').getByText('ls', { exact: true }).first().waitFor()
  steps.allow(9)
})
