/** What readers can do about errors of the API, by code. Codes whose sentence says it all have no entry. */

/** @type {Record<string, string>} */
const HINTS = {
  missing_credentials: 'Enter your key or access token: the button “Key” in the header.',
  invalid_credentials: 'Enter your key again: the button “Key” in the header.',
  invalid_access_token: 'Ask the operator for a new access token, then enter it with the button “Key” in the header.',
  invalid_admin_secret: 'Enter the operator’s secret again: the button “Key” in the header.',
  not_owner: 'Enter the key that the run or schedule was made with: the button “Key” in the header.',
  invalid_key: 'Enter a key that the provider accepts.',
  key_required: 'Enter the provider’s key again; it was deleted when the run ended.',
  judge_key_required: 'Enter the key of the judge’s provider.',
  too_many_attempts: 'Wait a minute, then try again.',
  server_busy: 'Wait a few seconds, then try again.',
  order_rate_limit: 'Wait a minute, then try again.',
  open_runs_limit: 'Wait until a run is over, or cancel one.',
  concurrent_change: 'Look at the present state, then try again.',
  maintenance: 'Try again later.',
  run_not_found: 'It may have been deleted. The list of runs has those that exist.',
  route_not_found: 'This server may be older than the page.',
  budget_too_small: 'The budget counts everything that the run ever spent: give a larger one.',
  price_unknown: 'Give a budget in tokens instead.',
}

/**
 * Returns what to do about an error; empty if there is nothing to add.
 *
 * @param {string | null | undefined} code
 */
export function hintOf(code) {
  return (code && HINTS[code]) || ''
}
