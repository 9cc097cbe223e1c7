/** The whole way of an account: sign-in at a provider, a run that it pays for, what others see of it, and the sign-out. */

import assert from 'node:assert/strict'
import { IdentityProvider, signInAs } from '../support/identity-provider.js'
import { follow, go, ready, settled } from '../support/navigation.js'
import { pageTest } from '../support/page-test.js'

/** The browser's own notes about requests that the server refuses. */
const REFUSED = /40[1349] \((Unauthorized|Forbidden|Not Found|Conflict)\)/

/** Font of the provider's own pages, which isn't loaded here. */
const FONTS = /fonts\.googleapis\.com/

/**
 * Declares a test with a provider of accounts.
 *
 * @param {string} name
 * @param {(world: import('../support/world.js').World, provider: IdentityProvider) => Promise<void>} body
 * @param {{tokenSeconds?: number, environment?: Record<string, string>}} [options]
 */
function signInTest(name, body, { tokenSeconds, environment } = {}) {
  /** @type {IdentityProvider | null} */
  let provider = null
  pageTest(name, async (world) => {
    if (!provider) throw new Error('the provider has not started')
    try {
      await provider.register(world.bench.origin, { tokenSeconds })
      await body(world, provider)
    } finally {
      provider.stop()
    }
  }, {
    environment, timeout: 120_000, prepare: async () => { provider = await new IdentityProvider().start(); return provider.environment },
  })
}

/**
 * Opens the page in a window that may go to the provider.
 *
 * @param {import('../support/world.js').World} world
 * @param {IdentityProvider} provider
 * @param {string} address
 */
async function open(world, provider, address) {
  const window = await world.window()
  for (const form of [REFUSED, new RegExp(`^request to another origin: ${provider.url}`), new RegExp(`\\(${provider.url}`), FONTS]) window.guard.allow(form)
  await go(window.page, address)
  return window
}

/**
 * Signs in from the present view.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
async function signIn(page, name) {
  await page.getByRole('banner').getByRole('link', { name: 'Sign in with Chutes' }).click()
  await signInAs(page, name)
  await page.getByRole('banner').getByRole('button', { name: 'Sign out' }).waitFor()
}

signInTest('an account signs in, pays for a private run, and signs out', async (world, provider) => {
  const { page, context } = await open(world, provider, '/leaderboard?benchmark=mmlu_pro')
  const banner = page.getByRole('banner')
  await signIn(page, 'mira')
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, '/leaderboard?benchmark=mmlu_pro', 'back where the reader was')
  await banner.getByText('mira', { exact: true }).waitFor()
  await banner.getByText('Runs use your Chutes account').waitFor()
  const cookies = await context.cookies(world.bench.origin)
  const cookie = cookies.find(({ name }) => name === 'bench_session')
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.secure, cookie?.path, cookie?.value.length], [true, 'Lax', false, '/', 43])
  assert.deepEqual(cookies.filter(({ name }) => name.startsWith('bench_sign_in')), [], 'nothing is left of the attempt')
  assert.doesNotMatch(await page.evaluate(() => document.cookie), /bench_/, 'scripts can\'t read the session')

  // The account pays, without a key in the page.
  await go(page, '/new?model=chutes/lab/example-7b&benchmarks=mmlu_pro&subset_count=2&demo=true&visibility=private')
  await settled(page)
  const main = page.getByRole('main')
  await main.getByText(/none needed: your Chutes account pays/).waitFor()
  await main.getByRole('button', { name: 'Start run' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
  const address = page.url()
  await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  await page.getByRole('heading', { level: 1, name: 'Private' }).waitFor()
  assert.equal(provider.payers.size, 1, 'one token paid for all answers')
  assert.ok(provider.models.total >= 2)
  await go(page, '/runs?mine=true')
  await main.getByRole('link', { name: 'chutes/lab/example-7b' }).waitFor()

  // Others neither find nor read it, before and after a sign-in of their own.
  const other = await open(world, provider, '/runs')
  for (const name of ['', 'noah']) {
    if (name) await signIn(other.page, name)
    await go(other.page, '/runs')
    await settled(other.page)
    assert.equal(await other.page.getByRole('link', { name: 'chutes/lab/example-7b' }).count(), 0, name)
    await go(other.page, address)
    await other.page.getByRole('heading', { name: 'Not found' }).waitFor()
  }

  // Unlisted: readable by its address only. Then public.
  await go(page, address)
  for (const [label, isListed] of /** @type {[string, boolean][]} */ ([['Unlisted', false], ['Public', true]])) {
    await main.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: /^Visibility/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Who can see this run' })
    await dialog.getByRole('radio', { name: new RegExp(`^${label}`) }).check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await go(other.page, address)
    await other.page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
    await go(other.page, '/runs')
    await settled(other.page)
    assert.equal(await other.page.getByRole('link', { name: 'chutes/lab/example-7b' }).count(), isListed ? 1 : 0, label)
    await go(other.page, '/runs?mine=true')
    await other.page.getByText(/No run matches these filters/).waitFor()
  }

  await go(page, address)
  await banner.getByRole('button', { name: 'Sign out' }).click()
  await banner.getByRole('link', { name: 'Sign in with Chutes' }).waitFor()
  assert.equal((await context.cookies(world.bench.origin)).some(({ name }) => name === 'bench_session'), false)
  assert.ok(provider.revoked > 0, 'the tokens are revoked at the provider')
  await ready(page)
  await main.getByRole('button', { name: 'More' }).click()
  assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), ['Commands for this run'], 'the run is another\'s now')
}, { environment: { BENCH_ACCESS: 'session,admin' } })

signInTest('a sign-out ends the runs that the account pays for, if the reader agrees', async (world, provider) => {
  const release = provider.models.hold()
  const { page } = await open(world, provider, '/runs')
  const banner = page.getByRole('banner')
  await signIn(page, 'mira')
  await go(page, '/new?model=chutes/lab/held&benchmarks=mmlu_pro&subset_count=2&demo=true')
  await settled(page)
  await page.getByRole('main').getByRole('button', { name: 'Start run' }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
  await banner.getByRole('button', { name: 'Sign out' }).click()
  const dialog = page.getByRole('dialog', { name: 'Sign out and end your runs?' })
  assert.match(await dialog.innerText(), /\b1\b|one/i)
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await banner.getByText('mira', { exact: true }).waitFor()
  await banner.getByRole('button', { name: 'Sign out' }).click()
  await dialog.getByRole('button', { name: 'End the runs and sign out' }).click()
  await banner.getByRole('link', { name: 'Sign in with Chutes' }).waitFor()
  release()
  await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
}, { environment: { BENCH_ACCESS: 'session,admin' } })

signInTest('a canceled, a stolen and a late sign-in are explained, and two tabs sign in at once', async (world, provider) => {
  const { page, context } = await open(world, provider, '/runs')
  const banner = page.getByRole('banner')
  const main = page.getByRole('main')
  await banner.getByRole('link', { name: 'Sign in with Chutes' }).click()
  await page.getByRole('link', { name: /Cancel/ }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign-in failed' }).waitFor()
  assert.match(page.url(), /\/auth\/error\?error=access_denied/)

  // The address that the provider sends a browser back to is of no use in another browser, or for a second time.
  const used = page.waitForRequest((request) => request.url().includes('/api/auth/callback?code='))
  await main.getByRole('link', { name: 'Try Again' }).click()
  await signInAs(page, 'mira')
  const callback = (await used).url()
  await banner.getByText('mira', { exact: true }).waitFor()
  const thief = await open(world, provider, '/runs')
  for (const each of [thief.page, page]) {
    await each.goto(callback)
    await each.getByRole('heading', { level: 1, name: 'Sign-in failed' }).waitFor()
  }
  await thief.page.getByRole('banner').getByRole('link', { name: 'Sign in with Chutes' }).waitFor()

  // Two tabs at the provider at once.
  await go(page, '/runs')
  await banner.getByRole('button', { name: 'Sign out' }).click()
  const link = banner.getByRole('link', { name: 'Sign in with Chutes' })
  await link.waitFor()
  await context.clearCookies({ name: /^_/ })
  const second = await context.newPage()
  await second.goto(`${world.bench.origin}/ops`)
  await ready(second)
  await second.getByRole('banner').getByRole('link', { name: 'Sign in with Chutes' }).waitFor()
  await Promise.all([link.click(), second.getByRole('banner').getByRole('link', { name: 'Sign in with Chutes' }).click()])
  await signInAs(second, 'noah')
  await second.getByRole('banner').getByText('noah', { exact: true }).waitFor()
  assert.equal(new URL(second.url()).pathname, '/ops')
  // The form of the first tab is from before, and may be signed in already: either way it ends in an account, not in an error.
  await page.goto(`${world.bench.origin}/api/auth/login?return_to=%2Fruns`)
  await banner.getByText('noah', { exact: true }).waitFor()
}, { environment: { BENCH_ACCESS: 'session,admin' } })

signInTest('addresses of other sites are no way back', async (world, provider) => {
  const { page, context } = await open(world, provider, '/runs')
  const places = ['https://evil.example/', '//evil.example/x', '/\\evil.example', 'javascript:alert(1)', '/\t/evil.example', 'runs', '/api/auth/logout']
  for (const [index, back] of places.entries()) {
    await page.goto(`${world.bench.origin}/api/auth/login?return_to=${encodeURIComponent(back)}`)
    await signInAs(page, `mira ${index}`)
    await page.waitForURL((url) => url.origin !== provider.url)
    await ready(page)
    await page.getByRole('banner').getByText(`mira ${index}`, { exact: true }).waitFor()
    assert.equal(new URL(page.url()).origin, world.bench.origin, back)
    assert.equal(new URL(page.url()).pathname, '/', back)
    // The provider forgets the browser, and asks again.
    await context.clearCookies({ name: /^_/ })
  }
  await follow(page, () => page.getByRole('banner').getByRole('link', { name: 'Runs', exact: true }).click())
})

signInTest('an account that signs in again in the same browser still pays', async (world, provider) => {
  const { page } = await open(world, provider, '/runs')
  await signIn(page, 'mira')
  for (let round = 0; round < 2; round += 1) {
    // The provider knows the browser, and may ask for nothing.
    await page.goto(`${world.bench.origin}/api/auth/login?return_to=%2Fruns`)
    if (page.url().startsWith(provider.url)) await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('banner').getByText('mira', { exact: true }).waitFor()
    await go(page, '/new?model=chutes/lab/example-7b&benchmarks=mmlu_pro&subset_count=2&demo=true')
    await settled(page)
    await page.getByRole('main').getByRole('button', { name: 'Start run' }).click()
    await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
    await page.getByRole('heading', { level: 1, name: /Succeeded|Failed/ }).waitFor()
    await page.getByRole('heading', { level: 1, name: 'Succeeded' }).waitFor()
  }
}, { environment: { BENCH_ACCESS: 'session,admin' } })
