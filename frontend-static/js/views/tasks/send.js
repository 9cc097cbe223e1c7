/** Uploads of tasks and agents. Archives of tasks that are too large for a request go to an address that the server gives. */

import { api } from '../../core/api.js'

/** @typedef {{name: string, agent: string, model: string, num_runs: number}} Description what the uploader says about a task */

/**
 * Checks an archive.
 *
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {Promise<Api.CheckedTask>}
 */
export function checkTask(file, signal) {
  return api.post('/api/tasks/check', formOf(file), { signal })
}

/**
 * Uploads a task.
 *
 * @param {File} file
 * @param {Description} description
 * @param {AbortSignal} signal
 * @returns {Promise<Api.AddedTask>}
 */
export async function sendTask(file, description, signal) {
  const query = { ...description, model: description.model || null }
  try {
    return await api.post(`/api/tasks?${new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]))}`, formOf(file), { signal })
  } catch (error) {
    if (!isTooLarge(error)) throw error
  }
  /** @type {Api.TaskUploadAddress} */
  const place = await api.post('/api/tasks/uploads', { bytes: file.size, sha256: await sha256(file) }, { signal })
  const answer = await fetch(place.upload_url, { method: place.method, headers: place.headers, body: file, signal, credentials: 'omit' })
  if (!answer.ok) throw new Error(`The upload failed with HTTP ${answer.status}.`)
  return api.post('/api/tasks', { ...query, upload: place.key, file_name: file.name }, { signal })
}

/**
 * Uploads a custom agent. The same files again are the same agent.
 *
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {Promise<Api.CustomAgent>}
 */
export function sendAgent(file, signal) {
  return api.post('/api/agents', formOf(file), { signal })
}

/**
 * True if a request was too large for the server.
 *
 * @param {unknown} error
 */
export function isTooLarge(error) {
  const { code, status } = /** @type {{code?: string, status?: number}} */ (error)
  return code === 'body_too_large' || status === 413
}

/** @param {File} file */
function formOf(file) {
  const form = new FormData()
  form.append('file', file)
  return form
}

/** @param {File} file */
async function sha256(file) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', await file.arrayBuffer()))
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
