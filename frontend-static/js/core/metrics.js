/** Labels of metrics for readers, and intervals of shares. The API names metrics as the compatible system and the protocols do. */

/** Labels that aren't the name with spaces. */
const LABELS = new Map(Object.entries({
  accuracy_all: 'Correct of all', accuracy_chance_adjusted: 'Accuracy, adjusted for chance', accuracy_official: 'Accuracy of the official program, %',
  score_of_graded: 'Score of graded samples', mean_of_items: 'Mean of the items’ scores', clustered: 'Clustered by item', wilson_95: 'Wilson 95% interval',
  latency_ms: 'Time of an answer, ms', p50: 'median', p95: '95th percentile', samples_per_item: 'Samples per item', truncated_answers: 'Answers cut off by the token limit',
  without_usage: 'Answers without token counts', spent: 'Tokens that count toward the budget', judge_usage: 'Tokens of the judge', judge_cost: 'Cost of the judge',
  judge_spent: 'Tokens of the judge that count toward the budget', input_usd: 'input, $', output_usd: 'output, $', total_usd: 'total, $',
  user_tokens: 'Tokens of the user model', user_cost_usd: 'Cost of the user model, $', tasks_counted: 'Tasks with all samples', tasks_left_out: 'Tasks with missing samples, not counted',
  terminations: 'Ends of conversations', pass_hat_1: 'pass^1', pass_hat_2: 'pass^2', pass_hat_3: 'pass^3', pass_hat_4: 'pass^4',
  total_items: 'Items of the dataset', sampled_items: 'Planned items', sampled_pct: 'Ordered share of the items, %', items: 'Items',
  calibration_error: 'Calibration error, %', calibration_error_all_bins: 'Calibration error with all bins, %', half_width: 'Half width of the 95% interval, %', judged: 'Judged answers',
  instruction_level_loose: 'Instructions followed, loose', instruction_level_strict: 'Instructions followed, strict',
  prompt_level_loose: 'Prompts with all instructions followed, loose', prompt_level_strict: 'Prompts with all instructions followed, strict',
  omniscience_index: 'Omniscience index', problem_rate: 'Problems solved', problem_rate_old_script: 'Problems solved, by the older script',
  subproblem_rate: 'Steps solved', subproblem_rate_gradable: 'Steps solved, without given ones', early_exits: 'early exits',
  'pass@1': 'pass@1', 'pass@5': 'pass@5', 'pass@1_by_difficulty': 'pass@1 by difficulty', 'pass@5_by_difficulty': 'pass@5 by difficulty',
}))

/** Metrics by number of tries. */
const BY_TRIES = new Map([['pass_at', 'pass@'], ['pass_hat', 'pass^']])

/**
 * Returns the label of a metric.
 *
 * @param {string[]} path name of the metric, and names of the figure within it
 */
export function metricLabel([name = '', ...inner]) {
  const byTries = BY_TRIES.get(name)
  if (byTries && inner.length > 0) return [byTries + inner[0], ...inner.slice(1).map(innerLabel)].join(' · ')
  return [LABELS.get(name) ?? capitalize(words(name)), ...inner.map(innerLabel)].join(' · ')
}

/** @param {string} name */
function innerLabel(name) {
  const label = LABELS.get(name)
  return label ? label.charAt(0).toLowerCase() + label.slice(1) : words(name)
}

/** @param {string} name */
function words(name) {
  return name.replaceAll('_', ' ')
}

/** @param {string} text */
function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Quantile of the normal distribution for 95% intervals. */
const Z = 1.959964

/**
 * Wilson's 95% interval of a share.
 *
 * @param {number} correct
 * @param {number} n
 * @returns {{low: number, high: number} | null} null without samples
 */
export function wilson(correct, n) {
  if (n === 0) return null
  const p = correct / n
  const center = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
  const half = Z / (1 + Z * Z / n) * Math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
  return { low: Math.max(0, center - half), high: Math.min(1, center + half) }
}
