/** Asks the server about the reader's key, so that a wrong one is noticed before it is needed. */

import { api } from '../core/api.js'

/** Small order whose estimate is asked for. Reading ignores a wrong access token; an estimate refuses it and changes nothing. */
const ORDER = { model_id: 'oracle', selected_benchmarks: ['mmlu_pro'], demo: true, subset_count: 1 }

/**
 * Checks a key or access token. Says nothing about a provider's key, which only its provider knows.
 *
 * @param {string} key
 * @returns {Promise<number>} number of runs that belong to it
 * @throws {Error} if the server refuses it, or can't be reached
 */
export async function checkKey(key) {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error('This is not a key: keys have no spaces, and only letters, digits and signs of ASCII.')
  const options = { withoutKey: true, headers: { authorization: `Bearer ${key}` } }
  await api.post('/api/runs/estimate', ORDER, options)
  /** @type {Api.RunsView} */
  const { total } = await api.get('/api/runs', { ...options, query: { owner: 'me', limit: 1 } })
  return total
}

/**
 * Checks the operator's secret.
 *
 * @param {string} secret
 */
export async function checkSecret(secret) {
  await api.get('/api/admin/access', { withoutKey: true, headers: { 'x-admin-secret': secret } })
}

/** Asks about the key and the secret that this browser has kept. A refusal is the event `refused`. */
export async function checkStored() {
  if (api.adminSecret) await api.get('/api/admin/access')
  else if (api.key) await api.post('/api/runs/estimate', ORDER)
}
