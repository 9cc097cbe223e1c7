/** The server under test: `bench serve` with its own data directory, and `bench` commands in it. */

import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** Root of the repository. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** The command under test. `BENCH_UNDER_TEST` names another build. */
export const COMMAND = path.resolve(ROOT, process.env.BENCH_UNDER_TEST || 'target/debug/bench')
/** Further arguments of `bench serve`. `BENCH_PAGE_FOLDER` names a folder to serve the page from instead of the built-in one. */
const PAGE = process.env.BENCH_PAGE_FOLDER ? ['--page', path.resolve(ROOT, process.env.BENCH_PAGE_FOLDER)] : []

/** Time in which the server must answer after its start, in milliseconds. */
const START_MS = 120_000
/** Time in which it must end after SIGINT, in milliseconds. */
const STOP_MS = 60_000

/** Processes that are ended with this one. @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set()
process.on('exit', () => { for (const child of children) child.kill('SIGKILL') })
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => process.exit(130))

/** Makes a folder of its own for one test. */
export function makeFolder() {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'bench-page-'))
}

export class Bench {
  /** The server. @type {import('node:child_process').ChildProcess | null} */
  #process = null
  /** Commands that run. @type {Set<import('node:child_process').ChildProcess>} */
  #commands = new Set()
  #log = ''

  /**
   * @param {string} folder working folder of the command; the data directory is `data` in it
   * @param {Record<string, string>} environment further variables
   */
  constructor(folder, environment = {}) {
    this.folder = folder
    // Nothing of the caller's environment: no proxy, no key and no `.env` of the current folder.
    this.environment = {
      PATH: process.env.PATH ?? '', HOME: folder, LANG: 'C.UTF-8', BENCH_HOME: path.join(folder, 'data'),
      BENCH_DURABILITY: 'normal', HF_HUB_OFFLINE: 'true', SKIP_MODEL_SYNC: 'true',
      // The same on machines with and without a container engine.
      BENCH_SANDBOX_ENGINE: 'none', ...environment,
    }
    this.port = 0
  }

  /** Address of the server. */
  get origin() { return `http://127.0.0.1:${this.port}` }

  /** What the server printed. */
  get log() { return this.#log }

  /** Process id of the server. */
  get pid() { return this.#process?.pid ?? 0 }

  /**
   * Starts `bench serve`, on the same port as before if it ran already.
   *
   * @param {...string} args further arguments
   */
  async start(...args) {
    this.port ||= await freePort()
    const child = spawn(COMMAND, ['serve', '--port', String(this.port), ...(args.includes('--page') ? [] : PAGE), ...args], { cwd: this.folder, env: this.environment })
    this.#process = child
    children.add(child)
    child.on('exit', () => children.delete(child))
    child.on('error', (error) => { this.#log += `${error}\n` })
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => { this.#log = (this.#log + data).slice(-100_000) })
    const end = Date.now() + START_MS
    while (!await this.#answers()) {
      if (child.exitCode !== null || child.pid === undefined) throw new Error(`${COMMAND} serve ended:\n${this.#log}`)
      if (Date.now() > end) throw new Error(`${COMMAND} serve didn't answer in ${START_MS / 1000} s:\n${this.#log}`)
      await sleep(50)
    }
    return this
  }

  async #answers() {
    try { return (await fetch(`${this.origin}/api/health`)).ok } catch { return false }
  }

  /**
   * Stops the server.
   *
   * @param {NodeJS.Signals} [signal]
   */
  async stop(signal = 'SIGINT') {
    this.killCommands()
    const child = this.#process
    this.#process = null
    if (!child || child.exitCode !== null || child.pid === undefined) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(timer)
  }

  /**
   * Runs a `bench` command in this data directory, and returns what it printed.
   *
   * @param {...string} args
   * @returns {Promise<string>}
   */
  run(...args) {
    return new Promise((resolve, reject) => {
      const child = execFile(COMMAND, args, { cwd: this.folder, env: this.environment, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        children.delete(child)
        this.#commands.delete(child)
        if (error) reject(new Error(`bench ${args.join(' ')}: ${error.message}\n${stderr}`))
        else resolve(stdout)
      })
      children.add(child)
      this.#commands.add(child)
    })
  }

  /** Kills the commands that still run. */
  killCommands() {
    for (const child of this.#commands) child.kill('SIGKILL')
  }

  /**
   * Sends a request to the API and returns its JSON.
   *
   * @param {string} method
   * @param {string} address path with query
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async api(method, address, body) {
    const response = await fetch(this.origin + address, {
      method, headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${address}: ${response.status} ${text}`)
    return text ? JSON.parse(text) : null
  }

  /**
   * Orders a run. By default the oracle answers 12 demo items of one benchmark.
   *
   * @param {Partial<Api.Order>} [order]
   * @returns {Promise<Api.CreatedView>}
   */
  order(order = {}) {
    return this.api('POST', '/api/runs', {
      model_id: 'oracle', selected_benchmarks: ['mmlu_pro'], demo: true, subset_count: 12, subset_seed: 'page', ...order,
    })
  }

  /**
   * Waits until a run is over, and returns it.
   *
   * @param {string} id
   * @param {number} [limit] milliseconds
   * @returns {Promise<Api.RunView>}
   */
  ended(id, limit) {
    return this.until(id, (run) => Boolean(run.completed_at), limit)
  }

  /**
   * Waits until a run is in some state, and returns it.
   *
   * @param {string} id
   * @param {(run: Api.RunView) => boolean} isSo
   * @param {number} [limit] milliseconds
   * @returns {Promise<Api.RunView>}
   */
  async until(id, isSo, limit = 180_000) {
    const end = Date.now() + limit
    for (;;) {
      const run = await this.api('GET', `/api/runs/${id}`)
      if (isSo(run)) return run
      if (Date.now() > end) throw new Error(`the run ${id} isn't there after ${limit / 1000} s: ${run.status}`)
      await sleep(100)
    }
  }

  /**
   * Downloads the signed archive of a run.
   *
   * @param {string} id
   */
  async archive(id) {
    const response = await fetch(`${this.origin}/api/runs/${id}/export?format=zip`)
    if (!response.ok) throw new Error(`the archive of ${id}: ${response.status} ${await response.text()}`)
    return Buffer.from(await response.arrayBuffer())
  }
}

/** Finds a free port. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close(() => resolve(port))
    })
  })
}
