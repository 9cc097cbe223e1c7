/** Archives: what is valid, what was changed, what somebody else signed, and how a verified one is read offline. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { seriousFindings } from '../support/accessibility.js'
import { ROOT } from '../support/bench.js'
import { idle } from '../support/browser.js'
import { go } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'
import { readZip, writeZip } from '../support/zip.js'

/**
 * Gives a file to the view, and waits for the verdict.
 *
 * @param {import('playwright-core').Page} page
 * @param {Buffer} buffer
 * @param {string} name
 */
async function check(page, buffer, name) {
  await page.locator('input[type=file]').first().setInputFiles({ name, mimeType: 'application/zip', buffer })
  const verdict = page.getByRole('region', { name: new RegExp(name.replaceAll('.', '\\.')) })
  await verdict.waitFor()
  return verdict
}

pageTest('a changed archive is refused, and the view names what differs', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order()).id)
  const archive = await bench.archive(run.id)
  const { page } = await open('/verify')
  assert.match(await (await check(page, archive, 'good.zip')).innerText(), /^.?\s*Valid: good\.zip/)

  const members = readZip(archive)
  const change = (/** @type {string} */ member, /** @type {RegExp} */ from, /** @type {string} */ to) => {
    const text = String(members.get(member))
    assert.match(text, from)
    return writeZip(new Map([...members, [member, Buffer.from(text.replace(from, to))]]))
  }
  assert.match(await (await check(page, writeZip(members), 'repacked.zip')).innerText(), /Valid: repacked/, 'another compression changes nothing')

  const score = await check(page, change('results.json', /"score":1\.0/, '"score":0.5'), 'score.zip')
  assert.match(await score.innerText(), /Not valid/)
  assert.match(await score.innerText(), /Differs:\s*results\.json/)
  const text = await check(page, change('results.json', /"response":"[^"]/, '"response":"Z'), 'text.zip')
  assert.match(await text.innerText(), /Not valid[^]*Differs:\s*results\.json/)
  const manifest = await check(page, change('manifest.json', /"items":12/, '"items":13'), 'manifest.zip')
  assert.match(await manifest.innerText(), /Not valid[^]*Differs:\s*manifest\.json/)
  const truncated = await check(page, archive.subarray(0, archive.length - 30), 'cut.zip')
  assert.match(await truncated.innerText(), /Not valid/)
  const doubled = await check(page, Buffer.concat([archive, archive]), 'doubled.zip')
  assert.match(await doubled.innerText(), /Not valid/, 'two programs could read it differently')
  assert.equal(await page.getByRole('link', { name: /Browse the run/ }).count(), 0, 'what is not valid is not browsed')

  // The server and the command agree.
  for (const [name, buffer, valid] of /** @type {[string, Buffer, boolean][]} */ ([['good.zip', archive, true], ['score.zip', change('results.json', /"score":1\.0/, '"score":0.5'), false]])) {
    const file = path.join(bench.folder, name)
    fs.writeFileSync(file, buffer)
    assert.equal(await bench.run('verify', file).then(() => true, () => false), valid, name)
  }
})

pageTest('an archive of another installation needs its key', async ({ bench, open }) => {
  const vectors = path.join(ROOT, 'tests/data/vectors')
  const archive = fs.readFileSync(path.join(vectors, 'chutes-signed-export.zip'))
  const { public_key_base64: key, negative } = JSON.parse(fs.readFileSync(path.join(vectors, 'signed-export.json'), 'utf8'))
  const { page } = await open('/verify')
  const unknown = await check(page, archive, 'other.zip')
  assert.match(await unknown.innerText(), /unknown key/i)
  assert.equal(await page.getByRole('link', { name: /Browse the run/ }).count(), 0)
  await page.getByText('Add keys').click()
  await page.getByLabel('Public keys').fill(key)
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('region', { name: /^Valid: other\.zip/ }).waitFor()
  assert.match(await page.getByRole('region', { name: /other\.zip/ }).innerText(), /pasted here/, 'the key that signed is named')
  // Every vector of a damaged archive has the verdict of the command.
  for (const { name, zip_base64: base64 } of negative.filter((/** @type {{zip_base64?: string}} */ each) => each.zip_base64)) {
    const buffer = Buffer.from(base64, 'base64')
    const file = path.join(bench.folder, `${name}.zip`)
    fs.writeFileSync(file, buffer)
    const isValid = await bench.run('verify', file, '--public-key', key).then(() => true, () => false)
    const verdict = await check(page, buffer, `${name}.zip`)
    assert.match(await verdict.innerText(), isValid ? /Valid: / : /Not valid|unknown key/, name)
  }
})

pageTest('a verified archive is browsed offline, with the same views', async ({ bench, model, open }) => {
  model.answer = ({ text }) => ({ text: text.length % 2 ? 'The answer is (A).' : 'No idea.' })
  const run = await bench.ended((await bench.order({ model_id: 'openai-compatible/answers' })).id)
  const { page, context, guard } = await open('/verify')
  await check(page, await bench.archive(run.id), 'results.zip')
  await idle(page)
  await context.setOffline(true)
  await bench.stop()
  guard.allow(/net::ERR_(INTERNET_DISCONNECTED|CONNECTION_REFUSED)/)
  const before = guard.requests.length
  await page.getByRole('link', { name: /Browse the run/ }).click()
  await page.waitForURL(/\/verify\/run/)
  const grid = page.getByRole('grid', { name: /Samples of mmlu_pro/ })
  await grid.getByRole('row').nth(12).waitFor()
  assert.match(await page.getByRole('region', { name: 'Score' }).innerText(), /Time\s+\d+ s\s+to the second/, 'archives have whole seconds')
  const { outcomes } = run.benchmarks[0].metrics
  await page.getByRole('form', { name: 'Filter samples' }).getByLabel('Outcome').selectOption('unparsed')
  await page.waitForFunction(([element, count]) => /** @type {Element} */ (element).getAttribute('aria-rowcount') === count, /** @type {const} */ ([await grid.elementHandle(), String(outcomes.unparsed + 1)]))
  await grid.getByRole('link').first().click()
  await page.waitForURL(/\/verify\/items\/mmlu_pro\//)
  await page.getByRole('main').getByText('No idea.').first().waitFor()
  await page.keyboard.press('j')
  await page.goBack()
  await page.goBack()
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  assert.deepEqual(guard.requests.slice(before), [], 'nothing was asked')
  await bench.start()
})

pageTest('archives are compared offline, with the figures of the server', async ({ bench, model, open }) => {
  model.answer = ({ model: name, text, before }) => {
    const letter = 'ABCDEFGHIJ'[(text.length + (name === 'one' ? 0 : text.length % 3)) % 10]
    return { text: text.includes('boxed') ? `\\boxed{${(text.length + before) % 2 ? 70 : 1}}` : `The answer is (${letter}).` }
  }
  const runs = []
  for (const name of ['one', 'two']) runs.push(await bench.ended((await bench.order({ model_id: `openai-compatible/${name}`, selected_benchmarks: ['mmlu_pro', 'aime_2025'], subset_count: 27 })).id))
  const [a, b] = runs
  const expected = await bench.api('GET', `/api/runs/${a.id}/compare/${b.id}`)
  const { page, context, guard } = await open(`/compare?runs=${a.id},${b.id}`)
  const paired = page.getByRole('region', { name: 'Paired differences' })
  const online = await paired.innerText()

  await go(page, '/verify')
  const files = await Promise.all(runs.map(async ({ id }, i) => ({ name: `${i}.zip`, mimeType: 'application/zip', buffer: await bench.archive(id) })))
  await page.locator('input[type=file]').first().setInputFiles(files)
  const list = page.getByRole('region', { name: 'Verified archives in this tab' })
  await list.getByRole('link', { name: '1.zip' }).waitFor()
  assert.equal(await page.getByRole('heading', { name: /^Valid: / }).count(), 2)
  assert.deepEqual(await seriousFindings(page), [])
  await idle(page)
  await context.setOffline(true)
  guard.allow(/net::ERR_INTERNET_DISCONNECTED/)
  const before = guard.requests.length
  await list.getByRole('link', { name: 'Compare 2 archives' }).click()
  await paired.waitFor()
  assert.equal(await paired.innerText(), online, 'the same table')
  assert.deepEqual(await seriousFindings(page), [])
  const computed = await page.evaluate(async () => {
    const { openedArchives } = await import(/** @type {any} */ ('/page/js/archive/source.js'))
    const { compareArchives } = await import(/** @type {any} */ ('/page/js/archive/compare.js'))
    const sides = openedArchives().map(async (/** @type {any} */ source) => ({ run: await source.run(), rowsOf: (/** @type {string} */ name) => source.rows(name) }))
    return compareArchives(...await Promise.all(sides)).benchmarks
  })
  assert.deepEqual(computed.map(plain), expected.benchmarks.map((/** @type {any} */ each) => plain(Object.fromEntries(Object.keys(computed[0]).map((key) => [key, each[key]])))))

  // The items lead to each archive, and back.
  const item = page.getByRole('main').locator('a[href*="/verify/items/mmlu_pro/"]').first()
  await item.click()
  await page.getByRole('heading', { level: 1, name: /^Item/ }).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('run'), a.id)
  await page.goBack()
  await paired.waitFor()
  await page.getByRole('link', { name: 'Change the selection' }).click()
  await list.getByRole('button', { name: 'Close 0.zip' }).click()
  await list.getByText('Choose another archive to compare the two.').waitFor()
  await page.getByRole('link', { name: '1.zip' }).click()
  await page.getByRole('heading', { level: 1, name: 'openai-compatible/two' }).waitFor()
  assert.deepEqual(guard.requests.slice(before), [], 'nothing was asked')
  await context.setOffline(false)
})

/**
 * Rounds the numbers of a comparison: sums in another order differ in their last digits.
 *
 * @param {any} value
 * @returns {any}
 */
function plain(value) {
  if (typeof value === 'number') return Number(value.toPrecision(7))
  if (Array.isArray(value)) return value.map(plain)
  return value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)])) : value
}

pageTest('a browser without Ed25519 offers the check of the server', async ({ bench, open }) => {
  const run = await bench.ended((await bench.order()).id)
  const archive = await bench.archive(run.id)
  const { page, guard } = await open('/verify')
  await page.addInitScript(() => {
    SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException('Unrecognized name.', 'NotSupportedError'))
  })
  await page.reload()
  await page.locator('input[type=file]').first().setInputFiles({ name: 'results.zip', mimeType: 'application/zip', buffer: archive })
  const upload = page.getByRole('button', { name: /Upload it for the server’s check/ })
  await upload.click()
  await page.getByRole('heading', { name: /^Valid, says the server: results\.zip/ }).waitFor()

  // A deployed server accepts 4 MB.
  guard.allow(/413/)
  await page.route('**/api/exports/verify', (route) => route.fulfill({ status: 413, json: { code: 'body_too_large', detail: 'too large' } }))
  await page.locator('input[type=file]').first().setInputFiles({ name: 'it\'s large.zip', mimeType: 'application/zip', buffer: archive })
  await upload.click()
  await page.getByRole('heading', { name: 'Too large for the server’s check' }).waitFor()
  await page.getByText(`bench verify 'it'\\''s large.zip' --server ${new URL(page.url()).origin} --here`).waitFor()
})

pageTest('archive views without an archive say so', async ({ open }) => {
  const { page } = await open('/verify/run')
  await page.getByRole('heading', { level: 1, name: 'No archive is open' }).waitFor()
  await go(page, '/verify/items/mmlu_pro/3')
  await page.getByRole('heading', { level: 1, name: 'No archive is open' }).waitFor()
})
