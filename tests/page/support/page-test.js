/** `pageTest`: one test with its own data directory, server, model server and browser windows. */

import { after, test } from 'node:test'
import { closeBrowser, World } from './world.js'

after(closeBrowser)

/** Shortest time after which a test fails, in milliseconds. Generous: a machine may be slow. */
const TIMEOUT_MS = 300_000

/**
 * Declares a test.
 *
 * @param {string} name
 * @param {(world: World) => Promise<void>} body
 * @param {import('./world.js').Options} [options]
 */
export function pageTest(name, body, options = {}) {
  test(name, { timeout: Math.max(options.timeout ?? 0, TIMEOUT_MS), skip: options.skip }, async () => {
    const world = await World.start(options)
    try {
      await body(world)
      await world.check()
    } catch (error) {
      await world.record(name)
      throw error
    } finally {
      await world.stop()
    }
  })
}
