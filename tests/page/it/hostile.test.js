/** Texts of models and datasets can't do anything, however large they are. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from '../support/bench.js'
import { writeLines } from '../support/dataset.js'
import { go } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/** Markup that would act if it were inserted as HTML or followed as a link. */
const PIECES = [
  '<script>fetch("https://example.com/steal")</script>', '<img src=x onerror="alert(1)">', '<iframe src="https://example.com"></iframe>',
  '<style>body{display:none}</style>', '<svg onload=alert(1)><a xlink:href="javascript:alert(1)">x</a></svg>', '<form action="https://example.com"><button>Go</button></form>',
  '[link](javascript:alert(1))', '[link](https://example.com/x)', '![picture](https://example.com/p.png)', '<https://example.com>', 'https://example.com/plain',
  '</main></body></html>', '<!--', '-->', '&lt;b&gt;', '$\\href{javascript:alert(1)}{x}$', '$$\\frac{', '```html\n<script>alert(1)</script>\n', '`<b>`', '\u202Eright to left', '\u0000\uFFFF',
  '**'.repeat(40), '_*'.repeat(40), '['.repeat(60), '('.repeat(60), '{'.repeat(60), '$'.repeat(41), '> '.repeat(60), '- '.repeat(60), '|'.repeat(60), '#'.repeat(40), '\\left('.repeat(30),
]

/** Makes text of a length from these pieces. @param {number} length */
function hostile(length) {
  const block = [...PIECES, '\uD800'].join('\n')
  return block.repeat(Math.ceil(length / block.length)).slice(0, length)
}

/** Longest text that a page shows of an item at once, in characters. */
const SHOWN_MAX = 50_000

/** Texts of 1 MiB that are slow for a careless parser. */
const LARGE = {
  mixed: hostile(1 << 20), brackets: '['.repeat(1 << 20), stars: '**a '.repeat(1 << 18), math: '$\\frac{1}{'.repeat(1 << 17).slice(0, 1 << 20),
  'one line': 'a'.repeat(1 << 20), fences: '```\n'.repeat(1 << 18), lists: '- a\n'.repeat(1 << 18), quotes: '>'.repeat(1 << 20),
}

pageTest('an item with 1 MiB of hostile markup shows little of it at once and stays text', async ({ bench, model, open }) => {
  const names = Object.keys(LARGE)
  const texts = Object.values(LARGE)
  const items = names.map((name, i) => ({
    question_id: i + 1, question: `Case ${i}: ${PIECES.join(' ')}`, options: [PIECES[0], PIECES[1], 'c', 'd'], answer: 'A', answer_index: 0, cot_content: '',
    category: '<img src=x onerror=alert(1)>', src: 'own',
  }))
  const dataset = path.join(bench.folder, 'hostile')
  fs.mkdirSync(dataset)
  writeLines(path.join(dataset, 'test.jsonl'), items)
  writeLines(path.join(dataset, 'validation.jsonl'), [{ ...items[0], question_id: 0, question: 'Worked', cot_content: 'A: Let\'s think step by step. The answer is (A).' }])
  model.answer = ({ text }) => ({ text: `${texts[Number(/Case (\d+):(?![^]*Case \d+:)/.exec(text)?.[1] ?? 0)]}\nThe answer is (A).`, reasoning: PIECES.join('\n') })
  await bench.run('run', '--model', 'openai-compatible/<img src=x>', '--base-url', bench.environment.OPENAI_COMPATIBLE_BASE_URL, '--benchmark', 'mmlu_pro',
    '--dataset', `mmlu_pro=${dataset}`, '--yes', '--name', '<script>alert(1)</script>', '--out', path.join(bench.folder, 'out'))
  const { runs: [run] } = await bench.api('GET', '/api/runs')
  const { page, guard } = await open('/runs')
  page.on('dialog', (dialog) => { guard.add(`dialog: ${dialog.message()}`); void dialog.dismiss() })
  await page.getByText('<script>alert(1)</script>').first().waitFor()
  const length = () => page.getByRole('main').evaluate((main) => main.textContent?.length ?? 0)
  for (const [index, name] of names.entries()) {
    await page.goto(`/runs/${run.id}/items/mmlu_pro/${index}`, { waitUntil: 'commit' })
    await page.getByRole('heading', { level: 1, name: /^Item/ }).waitFor()
    await page.locator('main .view[data-ready]').waitFor({ state: 'attached' })
    await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)) }))
    const shown = await length()
    assert.ok(shown < SHOWN_MAX, `${name}: ${shown} characters are shown at once`)
    await assertInert(page, name)
  }
  // The whole text of the first one is there when the reader asks for it.
  await go(page, `/runs/${run.id}/items/mmlu_pro/0`)
  const all = page.getByRole('button', { name: /^Show all \(/ })
  await all.waitFor()
  await all.click()
  for (let i = 0; i < 1_200 && await length() < 1_000_000; i += 1) await sleep(100)
  assert.ok(await length() > 1_000_000, `the document has ${await length()} characters`)
  await assertInert(page, 'whole text')
}, { timeout: 120_000 })

/**
 * Asserts that texts made no element that acts.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
async function assertInert(page, name) {
  const found = await page.evaluate(() => {
    const main = /** @type {Element} */ (document.querySelector('main'))
    const acting = [...main.querySelectorAll('script, img, iframe, object, embed, style, link, base, meta, video, audio')].map((element) => element.outerHTML.slice(0, 100))
    const links = [...main.querySelectorAll('a[href]')].filter((a) => /** @type {HTMLAnchorElement} */ (a).origin !== location.origin).map((a) => a.outerHTML.slice(0, 100))
    const handlers = [...main.querySelectorAll('*')].flatMap((e) => [...e.attributes].filter(({ name }) => name.startsWith('on')).map(({ name }) => name))
    return [...acting, ...links, ...handlers]
  })
  assert.deepEqual(found, [], name)
}

pageTest('a served page has no inline script and no inline style', async ({ bench }) => {
  const response = await fetch(`${bench.origin}/`, { headers: { accept: 'text/html' } })
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /script-src 'self'(;|$)/)
  assert.match(policy, /style-src 'self'(;|$)/)
  assert.match(policy, /frame-ancestors 'none'/)
  const html = await response.text()
  assert.doesNotMatch(html, /<script(?![^>]*src=)|<style|\sstyle=|\son\w+=/i)
  const folder = path.join(ROOT, 'frontend-static/js')
  for (const file of fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))) {
    const found = /\.(innerHTML|outerHTML)\s*\+?=(?!=)|insertAdjacentHTML|document\.write|new Function|\beval\(/.exec(fs.readFileSync(path.join(folder, file), 'utf8'))
    assert.equal(found?.[0], undefined, `${file} makes elements or code from text`)
  }
})
