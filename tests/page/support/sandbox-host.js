/**
 * A sandbox host that speaks Sandy's protocol and starts no processes: every command is answered from a script. An agent's
 * terminal shows what the test wants, and is recorded. It does what `tests/src/scripted_host.rs` does for the tests in Rust.
 */

import http from 'node:http'

const WORKSPACE = '/workspace'
const ELAPSED_MS = 1_000
/** Run time of what an agent does, in milliseconds: hundreds of turns stay within a task's limit. */
const ACT_MS = 50
const RESULT = 'result.json'
const NOTHING = { head: '', tail: '', omitted: 0 }

/** @typedef {{keys: string | null, command: string | null, before: number}} Act what an agent did: keys that it typed, or a command; `before` counts its earlier acts in the sandbox */
/** @typedef {{acts: Map<string, any>, screen: string, events: [number, string][], began: number, reward: number | null}} Sandbox `began` is a whole second, as recordings have it */

export class SandboxHost {
  /** @type {Map<string, Sandbox>} */
  #sandboxes = new Map()
  #created = 0
  #server = http.createServer((request, response) => {
    this.#serve(request, response).catch((error) => response.writeHead(500).end(JSON.stringify({ detail: String(error) })))
  })

  /** Returns what an act prints. Tests may replace it. @type {(act: Act) => string} */
  answer = () => ''
  /** Reward of an episode by what was done in its sandbox, asked once. @type {(acts: Act[]) => number} */
  reward = () => 1
  /** First command that the script has no answer to. @type {string | null} */
  problem = null

  async start() {
    await new Promise((resolve) => { this.#server.listen(0, '127.0.0.1', () => resolve(null)) })
    return this
  }

  /** Value of `SANDY_BASE_URL`. */
  get url() { return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#server.address()).port}` }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
  async #serve(request, response) {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const { pathname } = new URL(request.url ?? '/', 'http://host')
    const send = (/** @type {number} */ status, /** @type {object} */ body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (pathname === '/api/resources') return send(200, { canCreateSandbox: true })
    if (pathname === '/api/sandboxes') {
      const id = `sb-${this.#created += 1}`
      this.#sandboxes.set(id, { acts: new Map(), screen: '$ ', events: [], began: Math.floor(Date.now() / 1000) * 1000, reward: null })
      return send(201, { sandboxId: id })
    }
    const [, id, action] = /^\/api\/sandboxes\/([^/]+)(?:\/(.+))?$/.exec(pathname) ?? []
    const sandbox = this.#sandboxes.get(id ?? '')
    if (!sandbox) return send(404, { detail: 'Sandbox not found' })
    if (action === 'exec') {
      const { command } = JSON.parse(Buffer.concat(chunks).toString())
      try {
        return send(200, { stdout: this.#output(id, sandbox, command), stderr: '', exitCode: 0 })
      } catch (error) {
        this.problem ??= String(error)
        return send(500, { detail: String(error) })
      }
    }
    if (action === 'terminate') this.#sandboxes.delete(id)
    return send(200, action ? { success: true } : { sandboxId: id })
  }

  /** @param {string} id @param {Sandbox} sandbox @param {string} command a program in Python with arguments */
  #output(id, sandbox, command) {
    const words = shellWords(command)
    const at = words.indexOf('-c') + 1
    const [code, mark, ...rest] = words.slice(at)
    const parameters = /.*def main\((.*?)\):/s.exec(code)?.[1]
    const query = (/** @type {unknown} */ done) => `${mark} ${base64({ done })}\n`
    if (parameters === 'job, path, sha, length') return `${mark} ready\n`
    if (parameters?.startsWith('job, why=')) return `${mark} stopped\n`
    if (parameters === 'request, workspace') {
      if (code.includes('"host_workspace":')) return query({ engine: 'docker', version: '0.0.0', compose: '0.0.0', builder: 'buildkit', workspace: WORKSPACE, host_workspace: WORKSPACE })
      if (code.includes('{"environments":')) return query({ environments: [] })
      if (code.includes('{"removed":')) return query({ removed: 1 })
    }
    if (!parameters?.startsWith('job, limit_ms,')) throw new Error(`no answer to a program with main(${parameters})`)
    const [job, , , , bundle, , ...asked] = rest
    const operation = requestOf(bundle)
    /** @type {Record<string, string>} */
    const files = job.includes('-do-') ? { [RESULT]: JSON.stringify({ done: this.#act(sandbox, job, operation) }) } : this.#files(id, sandbox, operation)
    const lines = [`over exited 0 ${ELAPSED_MS}`, 'isolation :', `noted exited 0 ${ELAPSED_MS}`, 'tail out :', 'tail err :',
      ...asked.filter((_, i) => i % 2 === 0).map((name, i) => {
        if (!(name in files)) throw new Error(`no file ${name} of ${job}`)
        return `file ${i} text :${Buffer.from(files[name]).toString('base64')}`
      }), 'end']
    return lines.map((line) => `${mark} ${line}\n`).join('')
  }

  /** Does what an agent asks for, once. @param {Sandbox} sandbox @param {string} job @param {any} operation */
  #act(sandbox, job, operation) {
    const known = sandbox.acts.get(job)
    if (known) return known.done
    const before = sandbox.acts.size
    if (!operation.strokes) {
      const act = { keys: null, command: String(operation.command?.at(-1) ?? ''), before }
      const done = { exit_code: 0, started: true, stdout: { ...NOTHING, head: this.answer(act) }, stderr: NOTHING, elapsed_ms: ACT_MS }
      sandbox.acts.set(job, { act, done })
      return done
    }
    const keys = operation.strokes.flatMap((/** @type {any} */ { commands }) => commands ?? []).map((/** @type {string} */ line) => { const words = shellWords(line); return words.slice(words.indexOf('--') + 1).join('') }).join('')
    const act = { keys, command: null, before }
    const printed = keys === '' ? '' : `${keys}${this.answer(act)}$ `
    sandbox.screen += printed
    if (printed) sandbox.events.push([(Date.now() - sandbox.began) / 1000, printed.replaceAll('\n', '\r\n')])
    const plain = sandbox.screen.replaceAll(/\x1b\[[\d;]*m/g, '')
    const done = { alive: true, typed: 1, history: plain, screen: plain.split('\n').slice(-40).join('\n'), elapsed_ms: ACT_MS }
    sandbox.acts.set(job, { act, done })
    return done
  }

  /** Result files of an operation of the runner, which is recognized by its fields. @param {string} id @param {Sandbox} sandbox @param {any} operation @returns {Record<string, string>} */
  #files(id, sandbox, operation) {
    const done = (/** @type {unknown} */ value, /** @type {Record<string, string>} */ others = {}) => ({ ...others, [RESULT]: JSON.stringify({ done: value }) })
    if ('base' in operation) return done({}, { 'config.json': JSON.stringify(projectOf(operation)) })
    if ('images' in operation) return done({ built: 0 })
    if ('folders' in operation && 'service' in operation) return done({ containers: { [operation.service]: id.slice(3).padStart(64, '0') } })
    if ('files_max' in operation) return done({ found: true, skipped: [], cut: false }, { 'fetched.b64': this.#fetched(sandbox, operation.path) })
    if ('retries' in operation || 'upload' in operation || 'replace' in operation) return done({})
    if ('command' in operation) return done({ exit_code: 0, started: true, stdout: NOTHING, stderr: NOTHING, elapsed_ms: ELAPSED_MS })
    throw new Error(`no answer to the operation ${JSON.stringify(operation)}`)
  }

  /** Files below a folder: the length of a header, the header, and their bytes. @param {Sandbox} sandbox @param {string} folder */
  #fetched(sandbox, folder) {
    const acts = [...sandbox.acts.values()].map(({ act }) => act)
    /** @type {[string, string][]} */
    let files = []
    if (folder === '/logs/verifier') files = [['reward.txt', `${sandbox.reward ??= this.reward(acts)}\n`], ['test-stdout.txt', 'collected 1 item\n1 passed\n']]
    if (folder === '/logs/agent' && sandbox.events.length > 0) {
      const header = { version: 2, width: 80, height: 24, timestamp: sandbox.began / 1000, env: { TERM: 'screen' } }
      files = [['recording.cast', [header, ...sandbox.events.map(([time, data]) => [time, 'o', data])].map((line) => `${JSON.stringify(line)}\n`).join('')], ['terminus_2.pane', sandbox.screen]]
    }
    const entries = JSON.stringify(files.map(([path, text]) => ({ path, mode: 0o644, bytes: Buffer.byteLength(text) })))
    return Buffer.from(`${Buffer.byteLength(entries)}\n${entries}${files.map(([, text]) => text).join('')}`).toString('base64')
  }
}

/** Returns what `docker compose config` makes of a task without compose files. @param {any} operation */
function projectOf({ project: name, folder = '', base }) {
  const project = JSON.parse(base.replaceAll('@FOLDER@', `${WORKSPACE}/environments/${name}/task/${folder}`))
  for (const service of Object.values(project.services ?? {})) Object.assign(service, { entrypoint: null, networks: { default: null } })
  return { ...project, name, networks: { default: { name: `${name}_default`, ipam: {} } } }
}

/** Reads an operation's own request from a bundle: the number of files, length and path of each, then their bytes. @param {string} bundle */
function requestOf(bundle) {
  const bytes = Buffer.from(bundle, 'base64')
  let at = 0
  const line = () => { const end = bytes.indexOf(10, at); const text = bytes.toString('utf8', at, end); at = end + 1; return text }
  const headers = Array.from({ length: Number(line()) }, line)
  for (const header of headers) {
    const length = Number(header.split(' ', 1)[0])
    if (header.endsWith(' request.json')) return JSON.parse(bytes.toString('utf8', at, at + length))
    at += length
  }
  throw new Error('the bundle has no request.json')
}

/** Splits a line of plain words, single quotes and escaped quotes, as the client writes it. @param {string} line */
export function shellWords(line) {
  return Array.from(line.matchAll(/(?:[^ '\\]|\\[^]|'[^']*')+/g), ([word]) => word.replaceAll(/'([^']*)'|\\([^])/g, (_, quoted, escaped) => quoted ?? escaped))
}

/** @param {unknown} value */
function base64(value) { return Buffer.from(JSON.stringify(value)).toString('base64') }
