/** What a test works with: a server with its own data directory, a model server, and browser windows. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { Bench, makeFolder, ROOT } from './bench.js'
import { launchBrowser, openPage } from './browser.js'
import { ModelServer } from './model-server.js'
import { go } from './navigation.js'
import { undescribed } from './routes.js'

/** Folder for screenshots of failed tests. */
const FAILURES = path.join(ROOT, 'target/page-failures')

/** @type {Promise<import('playwright-core').Browser> | null} */
let browser = null

/** Closes the browser, if one was started. */
export async function closeBrowser() {
  await (await browser)?.close()
  browser = null
}

/** @typedef {{page: import('playwright-core').Page, context: import('playwright-core').BrowserContext, guard: import('./browser.js').Guard}} Window */

/**
 * @typedef {object} Options
 * @property {string[]} [serve] further arguments of `bench serve`
 * @property {Record<string, string>} [environment] further variables of the server
 * @property {(folder: string) => Promise<Record<string, string> | void>} [prepare] fills the folder before the server starts; may return further variables of the server
 * @property {number} [timeout] milliseconds
 * @property {string | false} [skip] reason why the test can't run here
 */

/** What a test works with. */
export class World {
  /** @type {Window[]} */
  #windows = []

  /**
   * @param {Bench} bench
   * @param {ModelServer} model
   */
  constructor(bench, model) {
    this.bench = bench
    this.model = model
  }

  /** @param {Options} options */
  static async start({ serve = [], environment = {}, prepare }) {
    const model = await new ModelServer().start()
    const bench = new Bench(makeFolder(), { OPENAI_COMPATIBLE_BASE_URL: model.url, ...environment })
    const world = new World(bench, model)
    try {
      Object.assign(bench.environment, await prepare?.(bench.folder))
      await bench.start(...serve)
      return world
    } catch (error) {
      await world.stop()
      throw error
    }
  }

  /**
   * Opens the page in a window of its own, and waits until its view is complete.
   *
   * @param {string} address path with query
   * @param {import('./browser.js').PageOptions} [options]
   * @returns {Promise<Window>}
   */
  open = async (address, options) => {
    const window = await this.window(options)
    await go(window.page, address)
    return window
  }

  /**
   * Opens an empty window.
   *
   * @param {import('./browser.js').PageOptions} [options]
   * @returns {Promise<Window>}
   */
  async window(options) {
    browser ??= launchBrowser()
    const window = await openPage(await browser, this.bench.origin, options)
    this.#windows.push(window)
    return window
  }

  /** Asserts that nothing happened in any window that must not happen. */
  async check() {
    for (const { page, guard } of this.#windows) {
      assert.deepEqual(guard.problems, [], `problems at ${page.url()}`)
      assert.deepEqual(await undescribed(this.bench, guard.requests), [], 'requests that /openapi.json does not describe')
    }
  }

  /**
   * Stores what the windows show, for a test that failed.
   *
   * @param {string} name
   */
  async record(name) {
    fs.mkdirSync(FAILURES, { recursive: true })
    const base = path.join(FAILURES, name.replace(/[^a-z0-9]+/gi, '-'))
    for (const [index, { page, guard }] of this.#windows.entries()) {
      await page.screenshot({ path: `${base}-${index}.png`, timeout: 5000 }).catch(() => {})
      fs.writeFileSync(`${base}-${index}.txt`, [page.url(), ...guard.problems, '', await page.locator('body').ariaSnapshot({ timeout: 5000 }).catch(String)].join('\n'))
    }
    fs.writeFileSync(`${base}-server.log`, this.bench.log)
    console.log(`see ${base}-*`)
  }

  async stop() {
    for (const { context } of this.#windows) await context.close().catch(() => {})
    await this.bench.stop('SIGKILL')
    this.model.stop()
    fs.rmSync(this.bench.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
