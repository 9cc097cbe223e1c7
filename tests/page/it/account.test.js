/** The sign-in in the header, whose account pays, and what belongs to the reader, with answers of a server to each. */

import assert from 'node:assert/strict'
import { seriousFindings } from '../support/accessibility.js'
import { follow, go, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

const NONE = { idp_configured: true, authenticated: false, user: null, has_invoke_scope: false, pays: null }
const USER = { idp_configured: true, authenticated: true, user: { id: 'u-1', username: 'mira' }, has_invoke_scope: true, pays: 'user' }
/** The browser's own note about a refused sign-out. */
const CONFLICT = /409 \(Conflict\)/

/**
 * Answers questions about the sign-in.
 *
 * @param {import('playwright-core').Page} page
 * @param {() => unknown} status
 */
function answerStatus(page, status) {
  return page.route('**/api/auth/status', (route) => route.fulfill({ json: status() }))
}

pageTest('a reader signs in from where they are, and out again', async (world) => {
  const { page, guard } = await world.window()
  guard.allow(CONFLICT)
  let state = NONE
  /** @type {unknown[]} */
  const sent = []
  await answerStatus(page, () => state)
  await page.route('**/api/auth/logout', (route) => {
    const body = route.request().postDataJSON()
    sent.push(body)
    if (!body?.end_runs) {
      return route.fulfill({ status: 409, json: { code: 'runs_open', detail: '2 open runs are paid by your account: sign out with `end_runs` to end them' } })
    }
    state = NONE
    return route.fulfill({ json: { success: true, message: 'Logged out successfully' } })
  })
  await page.route('**/api/auth/login?**', (route) => { state = USER; return route.fulfill({ status: 307, headers: { location: new URL(route.request().url()).searchParams.get('return_to') ?? '/' } }) })
  await go(page, '/runs?search=a%20b')
  const banner = page.getByRole('banner')
  const link = banner.getByRole('link', { name: 'Sign in with Chutes' })
  await link.waitFor()
  // The address follows the view, and comes back to it.
  await follow(page, () => banner.getByRole('link', { name: 'Leaderboard' }).click())
  await link.click()
  await page.waitForURL(/\/leaderboard$/)
  await banner.getByRole('button', { name: 'Sign out' }).waitFor()
  assert.match(await banner.innerText(), /^M$/m)
  assert.match(await banner.innerText(), /mira/)
  assert.match(await banner.innerText(), /Runs use your Chutes account/)
  assert.equal(await link.count(), 0)

  // Runs that the account pays for are not ended unasked.
  await banner.getByRole('button', { name: 'Sign out' }).click()
  const dialog = page.getByRole('dialog', { name: 'Sign out and end your runs?' })
  await dialog.getByText(/2 open runs are paid by your account, which needs the sign-in\./).waitFor()
  assert.doesNotMatch(await dialog.innerText(), /end_runs/)
  assert.deepEqual(await seriousFindings(page), [])
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await banner.getByText('mira').waitFor()
  await banner.getByRole('button', { name: 'Sign out' }).click()
  await dialog.getByRole('button', { name: 'End the runs and sign out' }).click()
  await page.getByText('Signed out.', { exact: true }).waitFor()
  await link.waitFor()
  assert.deepEqual(sent, [null, null, { end_runs: true }])
})

pageTest('the demo is for readers who may order the oracle', async (world) => {
  for (const [status, isAllowed, isSignedIn] of /** @type {[object, boolean, boolean][]} */ ([
    [{ ...NONE, may_order_oracle: false }, false, false], [{ ...USER, may_order_oracle: false }, false, true],
    [{ ...USER, may_order_oracle: true }, true, true], [NONE, true, false],
  ])) {
    const { page } = await world.window()
    await answerStatus(page, () => status)
    await go(page, '/')
    await settled(page)
    await page.getByRole('banner').getByText(isSignedIn ? 'mira' : 'Sign in with Chutes').waitFor()
    const main = page.getByRole('region', { name: 'No runs yet' })
    const demo = main.getByRole('button', { name: 'Run the demo' })
    assert.equal(await demo.isEnabled(), isAllowed, JSON.stringify(status))
    assert.equal(await main.getByText('On this server, only its operator and listed callers may run the demo.').count(), isAllowed ? 0 : 1)
    assert.equal(await main.getByRole('link', { name: 'Sign in with Chutes' }).count(), isAllowed || isSignedIn ? 0 : 1)
    assert.deepEqual(await seriousFindings(page), [])
  }
})

pageTest('the header says whose account pays', async (world) => {
  const cases = [
    [USER, /Runs use your Chutes account/, /none needed: your Chutes account pays/],
    [{ ...USER, pays: 'operator', has_invoke_scope: false }, /Runs are paid by the operator/, /none needed: the operator of this server pays/],
    [{ ...USER, pays: null, has_invoke_scope: false }, /May not pay for runs/, /needed: your account may not pay/],
    // A compatible server doesn't name the payer.
    [{ idp_configured: true, authenticated: true, user: USER.user, has_invoke_scope: true }, /Runs use your Chutes account/, /none needed: your Chutes account pays/],
    [{ idp_configured: true, authenticated: true, user: USER.user, has_invoke_scope: false }, /May not pay for runs/, /your account may not pay/],
  ]
  for (const [state, said, phrase] of /** @type {[object, RegExp, RegExp][]} */ (cases)) {
    const { page } = await world.window()
    await answerStatus(page, () => state)
    await go(page, '/new')
    await settled(page)
    await page.getByRole('banner').getByText(said).waitFor()
    await page.getByRole('main').getByText(phrase).waitFor()
    // A key or an admin secret counts before the account: header and form agree.
    for (const name of ['bench-key', 'bench-admin-secret']) {
      // As another window of this browser stores them.
      await page.evaluate((name) => {
        localStorage.clear()
        localStorage.setItem(name, 'secret-1')
        dispatchEvent(new StorageEvent('storage', { key: name }))
      }, name)
      await page.getByRole('banner').getByText('Your key is used instead').waitFor()
      await page.getByRole('main').getByText(/only if you pay yourself/).waitFor()
    }
    await page.close()
  }
})

pageTest('the form says in its own words which models the account pays for', async (world) => {
  const { page, guard } = await world.window()
  guard.allow(/403 \(Forbidden\)|401 \(Unauthorized\)/)
  let state = /** @type {object} */ (USER)
  let refusal = { status: 403, code: 'order_not_allowed', detail: 'the account of a signed-in user can\'t pay for models of `openrouter`; order them with a key of your own, as `Authorization: Bearer KEY`' }
  await answerStatus(page, () => state)
  await page.route(/\/api\/runs$/, (route) => route.request().method() === 'POST' ? route.fulfill({ status: refusal.status, json: refusal }) : route.continue())
  const main = page.getByRole('main')
  const address = '/new?model=openrouter/a/b&benchmarks=mmlu_pro&subset_count=2&demo=true'
  await go(page, address)
  await settled(page)
  await main.getByText('needed, unless the operator pays: your Chutes account pays for Chutes models only').waitFor()
  const key = main.locator('[data-path="key"] .form-problem')
  const start = main.getByRole('button', { name: 'Start run' })
  /** @type {[typeof refusal, string, RegExp][]} */
  const cases = [
    [refusal, 'key', /^Your Chutes account pays for Chutes models only, not for those of openrouter: enter a key/],
    [{ status: 403, code: 'scope_missing', detail: 'Chutes session missing chutes:invoke scope' }, 'key', /^Your sign-in may not call models: sign in again/],
    [{ status: 403, code: 'order_not_allowed', detail: 'runs of `oracle` are for admins and listed callers on this server' }, 'model_id', /listed callers may order runs of oracle/],
  ]
  for (const [answer, path, text] of cases) {
    refusal = answer
    await start.click()
    const problem = main.locator(`[data-path="${path}"] .form-problem`).filter({ hasText: text })
    await problem.waitFor()
    assert.doesNotMatch(await problem.innerText(), /`|Authorization/)
  }
  // The phrase follows the model of the form.
  await main.getByRole('combobox', { name: 'Model' }).fill('chutes/a/b')
  await main.getByRole('combobox', { name: 'Model' }).press('Tab')
  await main.getByText('none needed: your Chutes account pays for models of Chutes').waitFor()

  // Programs don't have the sign-in.
  await main.getByText('The same as a command').click()
  await main.getByText('Programs don’t have your sign-in.').waitFor()
  const [bench, curl] = await main.locator('.commands pre').allInnerTexts()
  assert.match(bench, /--api-key-env BENCH_API_KEY/)
  assert.match(curl, /\/api\/runs\/api'.*-H "authorization: Bearer \$BENCH_API_KEY"/s)

  state = NONE
  refusal = { status: 401, code: 'missing_credentials', detail: 'a key is needed' }
  await go(page, address)
  await settled(page)
  await start.click()
  await key.filter({ hasText: 'only with a key or after a sign-in: sign in with Chutes' }).waitFor()
})

pageTest('a server without models of a provider says how this reader gets some', async (world) => {
  /** @type {[object, RegExp][]} */
  const cases = [
    [{}, /Start it with a provider’s key, such as OPENROUTER_API_KEY/],
    [USER, /Type a Chutes model as chutes\/NAME: your Chutes account pays/],
    [NONE, /Sign in with Chutes to run its models, or type a model as PROVIDER\/NAME/],
  ]
  for (const [state, text] of cases) {
    const { page } = await world.window()
    await answerStatus(page, () => state)
    await page.route('**/api/models?**', (route) => route.fulfill({ json: { models: [], total: 0 } }))
    await go(page, '/new')
    const note = page.getByRole('main').getByText('This server lists no models of a provider yet.')
    await note.filter({ hasText: text }).waitFor()
    if (state !== cases[0][0]) assert.doesNotMatch(await note.innerText(), /Start it with/)
    await page.close()
  }
})

pageTest('a server without a sign-in shows none, whatever it answers', async (world) => {
  for (const status of [{}, { idp_configured: false, authenticated: false, user: null, has_invoke_scope: false }, [], null, 'text', { authenticated: true }, { idp_configured: true, authenticated: true, user: null }]) {
    const { page } = await world.window()
    await answerStatus(page, () => status)
    await go(page, '/runs')
    await settled(page)
    const banner = page.getByRole('banner')
    await page.waitForFunction(() => !document.querySelector('header [aria-busy]'))
    assert.equal(await banner.getByRole('button', { name: 'Sign out' }).count(), 0, JSON.stringify(status))
    const isOffered = Boolean(/** @type {{idp_configured?: boolean} | null} */ (status)?.idp_configured)
    assert.equal(await banner.getByRole('link', { name: 'Sign in with Chutes' }).count(), isOffered ? 1 : 0, JSON.stringify(status))
    await page.close()
  }
  const { page, guard } = await world.window()
  guard.allow(/404 \(Not Found\)/)
  await page.route('**/api/auth/status', (route) => route.fulfill({ status: 404, body: 'nothing' }))
  await go(page, '/runs')
  await settled(page)
  await page.waitForFunction(() => !document.querySelector('header [aria-busy]'))
  const banner = page.getByRole('banner')
  assert.doesNotMatch(await banner.innerText(), /Sign|Using/)
  await banner.getByRole('button', { name: 'Key' }).click()
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  await dialog.getByRole('textbox', { name: 'Key or access token' }).fill('sk-mine')
  await dialog.getByRole('button', { name: 'Use' }).click()
  await banner.getByText('Using API Key').waitFor()
})

pageTest('names of any length and script fit the header', async (world) => {
  for (const username of ['مريم الأندلسية', 'สมชาย ใจดี', '👩‍🔬 Dr. Emoji', 'x'.repeat(300), '<img src=x onerror=alert(1)>', '\u202Eevil']) {
    const { page } = await world.window()
    await answerStatus(page, () => ({ ...USER, user: { id: 'u', username } }))
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      await go(page, '/runs')
      await settled(page)
      const banner = page.getByRole('banner')
      await banner.getByRole('button', { name: 'Sign out' }).waitFor()
      const { right, scroll } = await page.evaluate(() => ({
        right: Math.max(...[...document.querySelectorAll('header.frame .tools *')].map((e) => e.getBoundingClientRect().right)), scroll: document.documentElement.scrollWidth,
      }))
      assert.ok(right <= width && scroll <= width, `${username.slice(0, 20)}: ${right} and ${scroll} of ${width}`)
      assert.ok((await banner.innerText()).includes(username.slice(0, 5)))
      assert.deepEqual(await seriousFindings(page), [])
    }
    await page.close()
  }
})

pageTest('all links of the navigation are in sight beside an account', async (world) => {
  const { page } = await world.window()
  await answerStatus(page, () => USER)
  await go(page, '/runs')
  const banner = page.getByRole('banner')
  await banner.getByRole('button', { name: 'Sign out' }).waitFor()
  const lines = []
  for (const width of [1440, 1366, 1280, 1201, 1200, 1024, 820]) {
    await page.setViewportSize({ width, height: 800 })
    const { inside, all, height } = await page.evaluate(() => {
      const nav = /** @type {HTMLElement} */ (document.querySelector('header.frame nav'))
      return { inside: nav.clientWidth, all: nav.scrollWidth, height: /** @type {HTMLElement} */ (nav.closest('header')).offsetHeight }
    })
    assert.ok(all <= inside, `${width}: ${all} pixels of links in ${inside}`)
    lines.push(height > 60 ? 2 : 1)
  }
  assert.deepEqual(lines, [1, 1, 1, 1, 2, 2, 2])
  // What stays beside the page's content is below the header.
  await go(page, '/docs')
  const { bottom, top } = await page.evaluate(() => {
    scrollTo(0, 2000)
    const [header, aside] = ['header.frame', '.docs-nav'].map((name) => /** @type {HTMLElement} */ (document.querySelector(name)).getBoundingClientRect())
    return { bottom: header.bottom, top: aside.top }
  })
  assert.ok(top >= bottom, `${top} and ${bottom}`)
})

pageTest('a failed sign-in says why, and how to go on', async (world) => {
  const { page } = await world.window()
  await answerStatus(page, () => NONE)
  const unknown = 'The sign-in failed for a reason that this site doesn’t know.'
  /** @type {[string, string, string | null][]} query, sentence of the site, quotation */
  const texts = [
    ['?error=access_denied&description=Call%20555.', 'The sign-in was canceled or not allowed.', null],
    ['?error=too_many_attempts', 'Too many sign-ins were begun from this address. Try again in a minute.', null],
    ['?error=missing_params', 'The sign-in came back without its code or state. Sign in again.', null],
    ['?error=slow_down', unknown, 'slow_down'],
    ['?error=toString&description=Call%20555.', unknown, 'Call 555.'],
    ['?description=Call%20555.', unknown, 'Call 555.'],
    ['?error=x&description=%3Cb%3Ebold%3C%2Fb%3E', unknown, '<b>bold</b>'],
    ['', 'The provider gave no reason.', null],
  ]
  for (const [query, text, quotation] of texts) {
    await go(page, `/auth/error${query}`)
    await page.getByRole('heading', { level: 1, name: 'Sign-in failed' }).waitFor()
    const main = page.getByRole('main')
    await main.getByText(text, { exact: true }).waitFor()
    assert.deepEqual(await main.locator('blockquote').allInnerTexts(), quotation === null ? [] : [quotation])
    assert.equal(await main.getByText('Call 555.').count(), quotation === 'Call 555.' ? 1 : 0)
    assert.equal(await main.getByRole('link', { name: 'Try Again' }).getAttribute('href'), '/api/auth/login?return_to=%2F')
    assert.equal(await main.getByRole('link', { name: 'Home' }).getAttribute('href'), '/')
    assert.deepEqual(await seriousFindings(page), [])
  }
  const unsigned = page.getByRole('main').getByText('You are not signed in.')
  await unsigned.waitFor()
  const signedIn = await world.window()
  await answerStatus(signedIn.page, () => USER)
  await go(signedIn.page, '/auth/error?error=access_denied')
  await signedIn.page.getByRole('main').getByText('You are still signed in.').waitFor()
  assert.equal(await signedIn.page.getByRole('main').getByText('You are not signed in').count(), 0)
  await go(page, `/auth/error?description=${'long '.repeat(200)}`)
  assert.ok((await page.getByRole('main').innerText()).length < 600)
})

pageTest('readers who are signed out are led to the sign-in', async (world) => {
  const run = await world.bench.ended((await world.bench.order({ subset_count: 2 })).id)
  const missing = `/runs/${crypto.randomUUID()}`
  for (const isOffered of [true, false]) {
    const { page, guard } = await world.window()
    guard.allow(/404 \(Not Found\)/)
    await answerStatus(page, () => (isOffered ? NONE : {}))
    const main = page.getByRole('main')
    const link = main.getByRole('link', { name: 'Sign in with Chutes' })
    await page.goto(missing)
    await main.getByRole('heading', { name: 'Not found' }).waitFor()
    await main.getByText(isOffered ? 'It may have been deleted, or is private: sign in as its owner.' : 'It may have been deleted. The list of runs has those that exist.').waitFor()
    assert.equal(await link.count(), isOffered ? 1 : 0)
    // A run of somebody else, without any action.
    await page.route(new RegExp(`/api/runs/${run.id}$`), async (route) => {
      const response = await route.fetch()
      return route.fulfill({ response, json: { ...await response.json(), can: {} } })
    })
    await go(page, `/runs/${run.id}?q=x`)
    await main.getByRole('button', { name: 'Enter key for actions' }).waitFor()
    if (isOffered) {
      await link.waitFor()
      await link.hover()
      await link.dispatchEvent('contextmenu')
      assert.equal(await link.getAttribute('href'), `/api/auth/login?return_to=${encodeURIComponent(`/runs/${run.id}${new URL(page.url()).search}`)}`)
    } else {
      await page.waitForFunction(() => !document.querySelector('header [aria-busy]'))
      assert.equal(await link.count(), 0)
    }
    await page.close()
  }
})

pageTest('the form offers each visibility once', async (world) => {
  const { page } = await world.open('/new?model=oracle&benchmarks=mmlu_pro&subset_count=2&demo=true')
  await page.getByRole('heading', { name: 'Name, tags, visibility' }).click()
  const select = page.getByRole('combobox', { name: 'Who can see it' })
  assert.deepEqual(await select.locator('option').allInnerTexts(), ['public', 'unlisted', 'private'])
  assert.equal(await select.inputValue(), 'public')
  await select.selectOption('unlisted')
  const sent = page.waitForRequest((request) => request.method() === 'POST' && new URL(request.url()).pathname === '/api/runs')
  await page.getByRole('button', { name: 'Start run' }).click()
  assert.equal((await sent).postDataJSON().visibility, 'unlisted')
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
})

pageTest('runs that not everybody can find are marked, and changed by their owner', async (world) => {
  const run = await world.bench.ended((await world.bench.order({ subset_count: 2 })).id)
  const { page } = await world.window()
  let visibility = 'private'
  /** @type {unknown[]} */
  const sent = []
  await page.route(/\/api\/runs(\?.*)?$/, async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    return route.fulfill({ response, json: { ...body, runs: body.runs.map((/** @type {object} */ each) => ({ ...each, visibility, is_mine: true })) } })
  })
  await page.route(new RegExp(`/api/runs/${run.id}$`), async (route) => {
    if (route.request().method() === 'PATCH') {
      const body = route.request().postDataJSON()
      sent.push(body)
      visibility = body.visibility
    }
    const response = await route.fetch({ method: 'GET', postData: undefined })
    return route.fulfill({ response, json: { ...await response.json(), visibility, is_mine: true } })
  })
  await go(page, '/runs')
  await page.getByRole('row', { name: /oracle/ }).getByText('Private', { exact: true }).waitFor()
  await go(page, `/runs/${run.id}`)
  const title = page.getByRole('heading', { level: 1 })
  await title.getByText('Private', { exact: true }).waitFor()
  assert.deepEqual(await seriousFindings(page), [])
  await page.getByRole('main').getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: /^Visibility/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Who can see this run' })
  assert.ok(await dialog.getByRole('radio', { name: /^Private/ }).isChecked())
  assert.deepEqual(await seriousFindings(page), [])
  await dialog.getByRole('radio', { name: /^Unlisted/ }).check()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await title.getByText('Unlisted', { exact: true }).waitFor()
  visibility = 'public'
  await go(page, `/runs/${run.id}`)
  await settled(page)
  assert.doesNotMatch(await title.innerText(), /public|private|unlisted/i)
  assert.deepEqual(sent, [{ visibility: 'unlisted' }])
})
