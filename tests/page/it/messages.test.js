/** Messages of providers: what they say is part of a sentence, and their raw responses are collapsed and inert. */

import assert from 'node:assert/strict'
import { go } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/** Responses, with what each becomes in the sentence. The first one is markup in a usual form. @type {[string, RegExp][]} */
const RESPONSES = [
  [JSON.stringify({ error: { message: '<b>overloaded</b>', code: 17 } }), /HTTP 500 from [^{]*: “<b>overloaded<\/b>” \(after/],
  [JSON.stringify({ status: 'broken', trace: ['a', { b: 1 }] }), /HTTP 500 from [^{:]* \(after/],
  [`<!doctype html><html><title>500</title><body><script>document.title = 'broken'</script></body></html>`, /HTTP 500 from [^<:]* \(after/],
  [JSON.stringify({ trace: 'x'.repeat(3000) }), /HTTP 500 from the OpenAI-compatible server( \(after|\s)/],
  ['it is {broken}', /HTTP 500 from [^{]*: it is \{broken\} \(after/],
]

pageTest('a provider’s response is apart from the sentence', async ({ bench, model, open }) => {
  const { page } = await open('/runs')
  for (const [i, [body, sentence]] of RESPONSES.entries()) {
    model.answer = () => ({ status: 500, body })
    const run = await bench.ended((await bench.order({ model_id: `openai-compatible/broken-${i}`, subset_count: 1 })).id)
    await go(page, `/runs/${run.id}?tab=errors`)
    const failure = page.getByRole('region', { name: 'Failure' })
    const causes = page.getByRole('region', { name: 'Causes of errors' })
    assert.match(await failure.innerText(), sentence)
    assert.match(await causes.innerText(), sentence)
    const { benchmarks: [{ benchmark_name: name }] } = run
    const { items: { items: [{ item_id: item }] } } = await bench.api('GET', `/api/runs/${run.id}/benchmarks/${name}?limit=1`)
    await go(page, `/runs/${run.id}/items/${name}/${item}`)
    const main = page.getByRole('main')
    assert.match(await main.locator('.reason').innerText(), sentence)
    const response = main.locator('.raw-response')
    const isPlain = i === RESPONSES.length - 1
    assert.equal(await response.count(), isPlain ? 0 : 1)
    if (isPlain) continue
    assert.equal(await response.locator('pre').isVisible(), false, 'it is collapsed')
    await response.getByText('Response of the provider').click()
    assert.equal(await response.locator('pre *').count(), 0, 'it is only text')
    assert.ok((await response.locator('pre').innerText()).includes(i === 2 ? '<title>500' : body.slice(2, 8)))
  }
}, { environment: { WORKER_ITEM_ATTEMPTS: '1' } })
