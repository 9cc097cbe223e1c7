/** The provider of accounts: `oidc-provider`, with the paths and scopes of the public one, and models that its access tokens pay for. */

import http from 'node:http'
import { ModelServer } from './model-server.js'

/** Scope of a token that pays for answers. */
const INVOKE = 'chutes:invoke'
/** Id and secret of the server under test. */
export const CLIENT = { id: 'bench-runner', secret: 'secret-of-the-client-0123456789' }

export class IdentityProvider {
  #models = new ModelServer()
  #server = http.createServer((request, response) => { void this.#serve(request, response) })
  /** @type {import('oidc-provider').default | null} */
  #provider = null
  /** Tokens that were asked for by grant: `authorization_code`, `refresh_token`. @type {string[]} */
  grants = []
  /** Access tokens that paid for answers, each once. @type {Set<string>} */
  payers = new Set()
  /** Tokens that were revoked. */
  revoked = 0

  /** Starts the server. Nobody can sign in until {@link register} names the server under test. */
  async start() {
    await this.#models.start()
    await new Promise((resolve) => { this.#server.listen(0, '127.0.0.1', () => resolve(null)) })
    return this
  }

  get url() {
    return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#server.address()).port}`
  }

  /** The models that access tokens pay for. */
  get models() { return this.#models }

  /** Variables of a server under test that offers this sign-in. */
  get environment() {
    return { CHUTES_IDP_URL: this.url, CHUTES_CLIENT_ID: CLIENT.id, CHUTES_CLIENT_SECRET: CLIENT.secret }
  }

  /**
   * Lets a server under test sign people in.
   *
   * @param {string} origin
   * @param {{tokenSeconds?: number}} [options] life of an access token
   */
  async register(origin, { tokenSeconds = 3600 } = {}) {
    // Loaded here, since it writes notes for people who deploy it.
    const { warn, info } = console
    console.warn = console.info = () => {}
    try {
      const { default: Provider } = await import('oidc-provider')
      this.#provider = new Provider(this.url, this.#settings(origin, tokenSeconds))
    } finally {
      Object.assign(console, { warn, info })
    }
    this.#provider.on('grant.success', (/** @type {{oidc: {params: {grant_type: string}}}} */ context) => { this.grants.push(context.oidc.params.grant_type) })
    for (const kind of ['access_token', 'refresh_token']) this.#provider.on(`${kind}.destroyed`, () => { this.revoked += 1 })
  }

  /**
   * @param {string} origin
   * @param {number} tokenSeconds
   */
  #settings(origin, tokenSeconds) {
    return {
      clients: [{
        client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [`${origin}/api/auth/callback`],
        grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'client_secret_post',
      }],
      // What a person types as login is the account's id and name.
      findAccount: (/** @type {unknown} */ _, /** @type {string} */ id) => ({ accountId: id, claims: () => ({ sub: id, username: id }) }),
      claims: { openid: ['sub'], profile: ['username'] },
      scopes: ['openid', 'profile', INVOKE, 'account:read'],
      features: { devInteractions: { enabled: true }, revocation: { enabled: true, allowedPolicy: isOwn } },
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      pkce: { required: () => true },
      ttl: { AccessToken: tokenSeconds, AuthorizationCode: 60, IdToken: 300, RefreshToken: 86_400, Grant: 86_400, Session: 86_400, Interaction: 600 },
      cookies: { keys: ['not a secret'] },
      routes: { authorization: '/idp/authorize', token: '/idp/token', userinfo: '/idp/userinfo', revocation: '/idp/token/revoke', jwks: '/idp/keys' },
    }
  }

  /**
   * @param {http.IncomingMessage} request
   * @param {http.ServerResponse} response
   */
  async #serve(request, response) {
    const provider = this.#provider
    if (!provider) { response.writeHead(503).end(); return }
    if (!request.url?.startsWith('/v1/')) { provider.callback()(request, response); return }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const found = await provider.AccessToken.find(token)
    if (!found?.scope?.split(' ').includes(INVOKE)) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"the token may not invoke models"}}')
      return
    }
    this.payers.add(token)
    const answered = await fetch(this.#models.url + request.url.slice('/v1'.length), {
      method: request.method, headers: { 'content-type': 'application/json' }, body: request.method === 'POST' ? await bodyOf(request) : undefined,
    })
    response.writeHead(answered.status, { 'content-type': answered.headers.get('content-type') ?? 'application/json' }).end(Buffer.from(await answered.arrayBuffer()))
  }

  stop() {
    this.#models.stop()
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/**
 * Lets a client revoke its own tokens only.
 *
 * @param {unknown} _
 * @param {{clientId: string}} client
 * @param {{clientId: string}} token
 */
function isOwn(_, client, token) {
  return client.clientId === token.clientId
}

/** @param {http.IncomingMessage} request */
async function bodyOf(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/**
 * Signs in at the provider's own pages, which the browser shows, and agrees to what the server under test asks for.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
export async function signInAs(page, name) {
  await page.locator('input[name=login]').fill(name)
  await page.locator('input[name=password]').fill('any')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}
