/** Errors of the API at the fields that they name. */

import { session } from '../../core/session.js'

/** Fields that errors without a place concern, by code. */
const FIELDS = {
  model_not_found: 'model_id', invalid_model: 'model_id', unsupported_provider: 'model_id', provider_not_configured: 'model_id',
  no_benchmarks: 'selected_benchmarks', benchmark_not_found: 'selected_benchmarks', benchmark_not_ordered: 'selected_benchmarks',
  gated_benchmark: 'selected_benchmarks', dataset_gated: 'selected_benchmarks', dataset_unavailable: 'selected_benchmarks',
  sandbox_not_configured: 'selected_benchmarks', protocol_not_found: 'protocols',
  judge_not_usable: 'judge.model_id', judge_key_required: 'judge_key', user_key_required: 'user_key',
  invalid_credentials: 'key', invalid_access_token: 'key', invalid_key: 'key', key_required: 'key',
  key_not_confirmable: 'key', not_owner: 'key', invalid_admin_secret: 'key',
  price_unknown: 'budget_usd', budget_too_small: 'budget_tokens', samples_limit: 'subset', item_not_found: 'items',
  no_items: 'subset', schedule_name_taken: 'name',
}

/** Sentences for errors whose own sentence is about requests. @type {Record<string, (message: string) => Problem>} */
const OWN = {
  missing_credentials: () => ({ path: 'key', text: session.isOffered
    ? 'This server starts runs only with a key or after a sign-in: sign in with Chutes, or enter a key.'
    : 'This server starts runs only with a key: enter one.' }),
  scope_missing: () => ({ path: 'key',
    text: 'Your sign-in may not call models: sign in again and allow it, or enter a key of the model’s provider.' }),
  order_not_allowed: notAllowed,
  judge_missing: () => ({ path: 'judge.model_id',
    text: 'A selected benchmark needs a judge, and this server has none of its own: choose the model that grades.' }),
}

/**
 * Says in the words of the form which orders this reader may not place.
 *
 * @param {string} message
 * @returns {Problem}
 */
function notAllowed(message) {
  const [, source] = /^runs of `([^`]+)` are for admins/i.exec(message) ?? []
  if (source) return { path: 'model_id', text: `On this server, only its operator and listed callers may order runs of ${source}: choose another model.` }
  const [, provider] = /can't pay for models of `([^`]+)`/.exec(message) ?? []
  if (provider) return { path: 'key', text: `Your Chutes account pays for Chutes models only, not for those of ${provider}: enter a key of the model’s provider, or choose a Chutes model.` }
  if (/^this server takes no orders/i.test(message)) {
    return { path: 'key', text: session.isOffered ? 'This server takes no orders with such a key: sign in with Chutes, or enter another one.' : 'This server takes no such orders from you: enter another key, or ask its operator for access.' }
  }
  return { path: null, text: sentence(message.replaceAll('`', '')) }
}

/** Sentence for orders without a user model that need one. */
const NO_USER = 'A selected benchmark simulates users by a model of its own: choose the user model.'

/**
 * A problem, with the path of its field or null if it concerns the whole order.
 *
 * @typedef {{path: string | null, text: string}} Problem
 */

/**
 * Returns the problems that an error of the API states.
 *
 * @param {Error & {code?: string | null, hint?: string, fields?: {field: string, message: string}[]}} error an `ApiError` or an `OfflineError`
 * @returns {Problem[]}
 */
export function problemsOf(error) {
  const { code, fields = [], hint } = error
  if (fields.length > 0) return fields.map(({ field, message }) => ({ path: field || null, text: sentence(message) }))
  const isOfJudge = code === 'model_not_found' && /judge/i.test(error.message)
  if (/^\S+ simulates users by a model/.test(error.message)) return [{ path: 'user_model.model_id', text: NO_USER }]
  const isOfUser = code !== 'user_key_required' && /^user model: |^the user model |can't simulate users/i.test(error.message)
  const path = isOfUser ? 'user_model.model_id' : isOfJudge ? 'judge.model_id' : /** @type {Record<string, string>} */ (FIELDS)[code ?? '']
  const own = OWN[code ?? '']
  if (own) return [own(error.message)]
  const parts = path === 'key' ? [error.message] : [error.message, hint ?? '']
  return [{ path: path ?? null, text: parts.filter(Boolean).map(sentence).join(' ') }]
}

/**
 * Returns the field of a form for a path: the field itself, else the closest one around it.
 *
 * @param {Element} form
 * @param {string} path such as `judge.temperature` or `stop.0`
 * @returns {Element | null}
 */
export function fieldAt(form, path) {
  for (let parts = path.split('.'); parts.length > 0; parts = parts.slice(0, -1)) {
    const found = form.querySelector(`[data-path="${CSS.escape(parts.join('.'))}"]`)
    if (found) return found
  }
  const inside = form.querySelector(`[data-path^="${CSS.escape(path)}."]`)
  return inside ?? form.querySelector(`[data-paths~="${CSS.escape(path)}"]`)
}

/**
 * Makes a message a sentence with a capital letter and a period, and drops the type that some begin with.
 *
 * @param {string} text
 */
export function sentence(text) {
  const plain = text.replace(/^Value error, /, '').trim()
  const start = /^[a-z]/.test(plain) ? plain[0].toUpperCase() + plain.slice(1) : plain
  return start === '' || /[.!?]$/.test(start) ? start : `${start}.`
}
