/** Chromium, and pages that report everything that must not happen in them. */

import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium } from 'playwright-core'

/** Places of Debian's Chromium and of common other builds. */
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome']

/** Size of a laptop's and of a phone's window in CSS pixels. */
export const DESKTOP = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }

/** Finds Chromium. `CHROMIUM` names another one. */
export function findChromium() {
  const found = process.env.CHROMIUM || PLACES.find((place) => fs.existsSync(place))
  if (!found) throw new Error('Chromium is missing: apt-get install chromium, or set CHROMIUM to its path')
  return found
}

/** Starts a headless Chromium that uses no proxy and asks no other host for anything. */
export function launchBrowser() {
  return chromium.launch({
    executablePath: findChromium(),
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--no-proxy-server', '--disable-background-networking', '--disable-component-update', '--disable-dev-shm-usage'],
  })
}

/**
 * @typedef {object} PageOptions
 * @property {{width: number, height: number}} [viewport] by default that of a laptop
 * @property {'light' | 'dark'} [colorScheme]
 * @property {boolean} [reducedMotion]
 */

/** What happened in a page that must not happen. */
export class Guard {
  /** @type {string[]} */
  problems = []
  /** Requests of the page to the API: `GET /api/runs`. @type {string[]} */
  requests = []
  /** Requests on their way. @type {Set<import('playwright-core').Request>} */
  pending = new Set()
  /** Time at which a request was sent or answered last. */
  changed = 0
  /** Another process on this machine has made or removed a network interface, as container engines do; Chromium repeats the request. @type {RegExp[]} */
  #allowed = [/net::ERR_NETWORK_CHANGED/]

  /**
   * Lets messages of this form pass, such as the browser's own note about a request that a test makes fail.
   *
   * @param {RegExp} form
   */
  allow(form) { this.#allowed.push(form) }

  /** @param {string} problem */
  add(problem) {
    if (!this.#allowed.some((form) => form.test(problem))) this.problems.push(problem)
  }
}

/** @type {WeakMap<import('playwright-core').Page, Guard>} */
const guards = new WeakMap()

/** Time without a request after which a page counts as idle, in milliseconds. */
const QUIET_MS = 300
/** Longest time to wait for that, in milliseconds. A run that is watched never becomes idle. */
const BUSY_MS = 2000

/**
 * Waits until a page has no request on its way.
 *
 * @param {import('playwright-core').Page} page
 */
export async function idle(page) {
  const guard = /** @type {Guard} */ (guards.get(page))
  const end = Date.now() + BUSY_MS
  while (Date.now() < end && (guard.pending.size > 0 || Date.now() - guard.changed < QUIET_MS)) await sleep(50)
}

/**
 * Opens an empty page whose console errors, uncaught errors, violations of the Content-Security-Policy, failed files and
 * requests to other origins are recorded.
 *
 * @param {import('playwright-core').Browser} browser
 * @param {string} origin the only one that may be asked
 * @param {PageOptions} [options]
 */
export async function openPage(browser, origin, { viewport = DESKTOP, colorScheme = 'light', reducedMotion = true } = {}) {
  const context = await browser.newContext({
    baseURL: origin, viewport, colorScheme, reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
    locale: 'en-US', timezoneId: 'Europe/Berlin', acceptDownloads: true, hasTouch: viewport.width < 600, isMobile: viewport.width < 600,
  })
  // Generous: a machine may be slow.
  context.setDefaultTimeout(120_000)
  const guard = new Guard()
  await context.exposeBinding('reportViolation', (_, text) => guard.add(`CSP: ${text}`))
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      // @ts-ignore: exposed above
      reportViolation(`${event.violatedDirective} blocked ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}`)
    })
  })
  context.on('request', (request) => {
    const address = new URL(request.url())
    if (['data:', 'blob:'].includes(address.protocol)) return
    if (address.origin !== origin) guard.add(`request to another origin: ${request.url()}`)
    else if (/^\/(api|\.well-known)\//.test(address.pathname)) guard.requests.push(`${request.method()} ${address.pathname}`)
  })
  for (const event of /** @type {const} */ (['request', 'requestfinished', 'requestfailed'])) {
    context.on(event, (request) => {
      if (event === 'request') guard.pending.add(request)
      else guard.pending.delete(request)
      guard.changed = Date.now()
    })
  }
  const page = await context.newPage()
  guards.set(page, guard)
  page.on('console', (message) => {
    if (message.type() === 'error') guard.add(`console: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => guard.add(`uncaught: ${error.stack ?? error}`))
  return { page, context, guard }
}
