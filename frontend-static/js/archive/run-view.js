/** Run and benchmarks of an archive in the form of the API's views, so that the same components show them. */

import { outcomeOf } from '../core/outcomes.js'

/** @typedef {Record<string, any>} Fields */

/**
 * Returns the view of a run. What archives don't contain is null: labels, queue, actions.
 *
 * @param {import('./results.js').Results} results
 * @returns {Fields}
 */
export function runView({ run, benchmarks, rows }) {
  const provider = run.provider ?? null
  const slug = run.model_slug ?? ''
  const views = benchmarks.map((benchmark, index) => benchmarkView(benchmark, index, rows[index]))
  const sum = (/** @type {string} */ name) => views.reduce((total, view) => total + (view[name] ?? 0), 0)
  const costs = benchmarks.map(({ cost_usd: cost }) => cost).filter((cost) => typeof cost === 'number')
  return {
    ...run,
    model: qualified(provider, slug),
    benchmarks: views,
    name: null, tags: [], notes: null,
    items: run.selected_items ?? null,
    benchmark_options: run.benchmark_options ?? {},
    changed_settings: [],
    limits: null, interrupted: false, waiting: null, queue_position: null, start_delay_seconds: null, eta_seconds: null,
    progress: progress(benchmarks),
    input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens'),
    cost: costs.length > 0 ? { total_usd: costs.reduce((total, cost) => total + cost, 0) } : null,
    overall_score_label: run.overall_score_label ?? label(benchmarks),
    coverage: run.coverage ?? (sum('planned_samples') > 0 ? sum('graded_samples') / sum('planned_samples') : null), demo: run.demo ?? false, rejudges: run.rejudges ?? null,
    software: run.software?.version ?? run.code_version ?? null,
    error_code: run.error_code ?? null,
    can: {
      cancel: false, resume: false, requeue: false, requeue_errors: false, rejudge: false, delete: false, edit: false,
      export: false, needs_key: false, needs_judge_key: false,
    },
  }
}

/** Returns the name of a model with its provider. @param {string | null} provider @param {string} slug */
function qualified(provider, slug) {
  if (provider === null || provider === 'oracle') return slug
  return provider === 'replay' ? `replay:${slug}` : `${provider}/${slug}`
}

/** Says what the overall score of an archive without a label means. @param {Fields[]} benchmarks */
function label(benchmarks) {
  const scored = benchmarks.filter(({ score }) => typeof score === 'number')
  return scored.length === 1 ? `score of ${scored[0].benchmark_name}` : `mean of ${scored.length} benchmark scores`
}

/**
 * Returns the view of a benchmark. Archives of compatible programs lack counts, which are taken from their items.
 *
 * @param {Fields} benchmark
 * @param {number} index
 * @param {import('./results.js').Row[]} rows
 * @returns {Fields}
 */
export function benchmarkView(benchmark, index, rows) {
  const { usage, judge_usage: judgeUsage } = benchmark
  const own = benchmark.outcomes ? benchmark : { ...counted(rows), ...benchmark }
  return {
    id: String(index),
    ...own,
    interval: interval(benchmark),
    error_causes: benchmark.error_causes ?? [],
    error_code: benchmark.error_code ?? null,
    options: benchmark.options ?? {},
    changed_settings: benchmark.changed_settings ?? [],
    correct_samples: own.outcomes.correct ?? 0,
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
    estimated_tokens: benchmark.estimated_tokens ?? 0,
    judge_input_tokens: judgeUsage?.input_tokens ?? 0,
    judge_output_tokens: judgeUsage?.output_tokens ?? 0,
    judge_estimated_tokens: benchmark.judge_estimated_tokens ?? 0,
    cost: money(benchmark.cost_usd),
    judge_cost: money(benchmark.judge_cost_usd),
    index: null,
  }
}

/** Counts the samples by outcome. @param {import('./results.js').Row[]} rows */
function counted(rows) {
  /** @type {Record<string, number>} */
  const outcomes = {}
  for (const { outcome } of rows) if (outcome) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  const graded = rows.filter(({ outcome }) => outcome && outcomeOf(outcome).graded).length
  return {
    outcomes, planned_samples: rows.length, completed_samples: rows.length, graded_samples: graded, samples_per_item: 1,
    coverage: rows.length > 0 ? graded / rows.length : null, demo: false,
  }
}

/** Width below which an interval would claim false certainty, because all scores are equal. */
const WIDTH_MIN = 1e-9

/**
 * Returns the interval that goes with the score, as the API chooses it: Wilson's for one sample per item, each right or
 * wrong, otherwise that clustered by item.
 *
 * @param {Fields} benchmark
 */
function interval({ intervals, outcomes, samples_per_item: samples, score_of_graded: score, graded_samples: graded }) {
  const isShare = typeof score !== 'number' || Math.abs(score * graded - (outcomes?.correct ?? 0)) < 1e-6
  if (intervals?.wilson_95 && samples === 1 && !outcomes?.partial && isShare) return { ...intervals.wilson_95, method: 'wilson' }
  const clustered = intervals?.clustered?.interval
  return clustered && clustered.high - clustered.low > WIDTH_MIN ? { ...clustered, method: 'clustered' } : null
}

/** @param {unknown} usd */
function money(usd) {
  return typeof usd === 'number' ? { total_usd: usd } : null
}

/** @param {Fields[]} benchmarks */
function progress(benchmarks) {
  const sum = (/** @type {string} */ name) => benchmarks.reduce((total, benchmark) => total + (benchmark[name] ?? 0), 0)
  const [completed, total] = [sum('completed_items'), sum('sampled_items')]
  return { completed, total, percent: total > 0 ? completed / total * 100 : 0 }
}

/**
 * Returns the sums over all samples, as the API's `summary` has them.
 *
 * @param {import('./results.js').Row[]} rows
 * @param {Fields} benchmark
 */
export function summaryView(rows, benchmark) {
  const graded = rows.filter(({ score, outcome }) => score !== null && outcome !== 'infrastructure-error').length
  const correct = rows.filter(({ outcome }) => outcome === 'correct').length
  const latencies = rows.flatMap(({ latency_ms: latency }) => latency ?? [])
  const input = benchmark.usage?.input_tokens ?? 0
  const output = benchmark.usage?.output_tokens ?? 0
  return {
    total_items: rows.length, correct, graded, incorrect: graded - correct,
    errors: rows.filter(({ outcome }) => outcome === 'infrastructure-error').length,
    avg_latency_ms: latencies.length > 0 ? latencies.reduce((total, one) => total + one, 0) / latencies.length : null,
    input_tokens: input, output_tokens: output, total_tokens: input + output,
    input_cost_usd: null, output_cost_usd: null, total_cost_usd: benchmark.cost_usd ?? null,
    pricing_input_per_million_usd: null, pricing_output_per_million_usd: null,
    error_breakdown: (benchmark.error_causes ?? []).map((/** @type {Fields} */ { message, count }) => ({ message, count })),
    outcomes: benchmark.outcomes ?? null, without_usage: benchmark.without_usage ?? null,
    unjudged: benchmark.unjudged_samples ?? null,
  }
}
