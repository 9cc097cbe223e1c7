/** Tests with a scripted sandbox host, in which episodes run. */

import assert from 'node:assert/strict'
import { startHost } from './episodes.js'
import { pageTest } from './page-test.js'

/**
 * Declares a test with a sandbox host of its own.
 *
 * @param {string} name
 * @param {(world: import('./world.js').World, host: import('./sandbox-host.js').SandboxHost) => Promise<void>} body
 * @param {import('./world.js').Options} [options]
 */
export function episodeTest(name, body, options = {}) {
  /** @type {Awaited<ReturnType<typeof startHost>> | null} */
  let started = null
  /** @type {Record<string, string>} */
  const environment = { ...options.environment }
  pageTest(name, async (world) => {
    started = await startHost()
    try {
      await world.bench.stop()
      Object.assign(world.bench.environment, started.environment)
      await world.bench.start()
      await body(world, started.host)
      assert.equal(started.host.problem, null)
    } finally {
      started.host.stop()
    }
  }, { timeout: 120_000, ...options, environment })
}
