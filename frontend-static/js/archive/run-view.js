/** Run and benchmarks of an archive in the form of the API's views, so that the same components show them. */

import { outcomeOf } from '../core/outcomes.js'

/** @typedef {import('../core/source.js').Run} Run */
/** @typedef {import('../core/source.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../core/source.js').Sample} Sample */
/** @typedef {import('./results.js').BenchmarkFields} BenchmarkFields */
/** @typedef {import('./results.js').Row} Row */

/**
 * Returns the view of a run. What archives don't contain is null: labels, queue, actions.
 *
 * @param {import('./results.js').Results} results
 * @returns {Run}
 */
export function runView({ run, benchmarks, rows }) {
  const provider = run.provider ?? null
  const slug = run.model_slug ?? ''
  const views = benchmarks.map((benchmark, index) => benchmarkView(benchmark, index, rows[index]))
  const sum = (/** @type {'input_tokens' | 'output_tokens' | 'planned_samples' | 'graded_samples'} */ name) =>
    views.reduce((total, view) => total + view[name], 0)
  const costs = benchmarks.map(({ cost_usd: cost }) => cost).filter((cost) => typeof cost === 'number')
  return {
    id: run.id ?? '', status: run.status ?? '', error_message: run.error_message ?? null, error_code: run.error_code ?? null,
    failure_reason: run.failure_reason ?? null,
    model: qualified(provider, slug), model_id: run.model_id ?? '', model_slug: slug, provider: provider ?? '',
    provider_metadata: run.provider_metadata ?? null, endpoint_host: run.endpoint_host ?? null,
    name: null, tags: [], notes: null,
    created_at: run.created_at ?? '', started_at: run.started_at ?? null, completed_at: run.completed_at ?? null,
    benchmarks: views, selected_benchmarks: run.selected_benchmarks ?? null, items: run.selected_items ?? null,
    subset_pct: run.subset_pct ?? 100, subset_count: run.subset_count ?? null, subset_seed: run.subset_seed ?? null,
    samples: run.samples ?? null, tasks: null, protocols: run.protocols ?? {}, benchmark_options: run.benchmark_options ?? {},
    generation: settings(run.generation), judge: judge(run.judge), ...userModel(run), limits: limits(run.limits), budget: run.budget ?? null, concurrency: null,
    generation_number: run.generation_number ?? 1, rejudges: run.rejudges ?? null,
    interrupted: false, waiting: null, queue_position: null, start_delay_seconds: null, eta_seconds: null,
    progress: progress(benchmarks),
    input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens'),
    cost: costs.length > 0 ? { total_usd: costs.reduce((total, cost) => total + cost, 0) } : null,
    overall_score: run.overall_score ?? null, overall_score_label: run.overall_score_label ?? label(benchmarks),
    coverage: run.coverage ?? (sum('planned_samples') > 0 ? sum('graded_samples') / sum('planned_samples') : null),
    coverage_min: run.coverage_min, demo: run.demo ?? false,
    software: run.software?.version ?? run.code_version ?? '',
    can: {
      cancel: false, resume: false, requeue: false, requeue_errors: false, rejudge: false, delete: false, edit: false,
      export: false, needs_key: false, needs_judge_key: false, needs_user_key: false,
    },
  }
}

/** Returns the name of a model with its provider. @param {string | null} provider @param {string} slug */
function qualified(provider, slug) {
  if (provider === null || provider === 'oracle') return slug
  return provider === 'replay' ? `replay:${slug}` : `${provider}/${slug}`
}

/** Says what the overall score of an archive without a label means. @param {BenchmarkFields[]} benchmarks */
function label(benchmarks) {
  const scored = benchmarks.filter(({ score }) => typeof score === 'number')
  return scored.length === 1 ? `score of ${scored[0].benchmark_name}` : `mean of ${scored.length} benchmark scores`
}

/**
 * Returns the view of a benchmark. Archives of compatible programs lack counts, which are taken from their items.
 *
 * @param {BenchmarkFields} benchmark
 * @param {number} index
 * @param {Row[]} rows
 * @returns {RunBenchmark}
 */
export function benchmarkView(benchmark, index, rows) {
  const { usage, judge_usage: judgeUsage, user_usage: userUsage } = benchmark
  const own = benchmark.outcomes ? benchmark : { ...counted(rows), ...benchmark }
  return {
    id: own.id ?? String(index), benchmark_name: own.benchmark_name ?? '',
    status: own.status ?? '', error_message: own.error_message ?? null, error_code: own.error_code ?? null,
    error_causes: causes(own), started_at: own.started_at ?? null, completed_at: own.completed_at ?? null,
    score: own.score ?? null, score_of_graded: own.score_of_graded ?? null, interval: interval(benchmark),
    accuracy_all: own.accuracy_all ?? null, metrics: own.metrics ?? null, outcomes: own.outcomes ?? null,
    coverage: own.coverage ?? null, coverage_min: own.coverage_min, demo: own.demo ?? false,
    total_items: own.total_items ?? 0, sampled_items: own.sampled_items ?? 0, completed_items: own.completed_items ?? 0,
    planned_samples: own.planned_samples ?? 0, completed_samples: own.completed_samples ?? 0,
    graded_samples: own.graded_samples ?? 0, correct_samples: own.outcomes?.correct ?? 0,
    samples_per_item: own.samples_per_item ?? null, dataset: dataset(own.dataset), judge: own.judge ?? null,
    protocol: own.protocol ?? null, protocol_name: own.protocol_name ?? null,
    prompt_digest: own.prompt_digest ?? null, prompt_source: own.prompt_source ?? null,
    generation: own.generation ?? null, options: own.options ?? {}, changed_settings: own.changed_settings ?? [],
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
    estimated_tokens: own.estimated_tokens ?? 0,
    judge_input_tokens: judgeUsage?.input_tokens ?? 0,
    judge_output_tokens: judgeUsage?.output_tokens ?? 0,
    judge_estimated_tokens: own.judge_estimated_tokens ?? 0,
    user_input_tokens: userUsage?.input_tokens ?? 0,
    user_output_tokens: userUsage?.output_tokens ?? 0,
    user_estimated_tokens: userUsage?.estimated_tokens ?? 0,
    cost: money(own.cost_usd),
    judge_cost: money(own.judge_cost_usd),
    user_cost: money(own.user_cost_usd),
    index: null,
  }
}

/** Counts the samples by outcome. @param {Row[]} rows */
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
 * Returns the interval that goes with the score, as the API chooses it: Wilson's for one sample per item, or a single item, if
 * each sample is right or wrong; otherwise that clustered by item.
 *
 * @param {BenchmarkFields} benchmark
 * @returns {Api.IntervalView | null}
 */
function interval({ intervals, outcomes, samples_per_item: samples, sampled_items: items, score_of_graded: score, graded_samples: graded = 0 }) {
  const isShare = typeof score !== 'number' || Math.abs(score * graded - (outcomes?.correct ?? 0)) < 1e-6
  if (intervals?.wilson_95 && (samples === 1 || items === 1) && !outcomes?.partial && isShare) return { ...intervals.wilson_95, method: 'wilson' }
  const clustered = intervals?.clustered?.interval
  return clustered && clustered.high - clustered.low > WIDTH_MIN ? { ...clustered, method: 'clustered' } : null
}

/** @param {number | null | undefined} usd */
function money(usd) {
  return typeof usd === 'number' ? { total_usd: usd } : null
}

/** @param {BenchmarkFields[]} benchmarks */
function progress(benchmarks) {
  const sum = (/** @type {'completed_items' | 'sampled_items'} */ name) => benchmarks.reduce((total, benchmark) => total + (benchmark[name] ?? 0), 0)
  const [completed, total] = [sum('completed_items'), sum('sampled_items')]
  return { completed, total, percent: total > 0 ? completed / total * 100 : 0 }
}

/**
 * Returns the sums over all samples, as the API's `summary` has them.
 *
 * @param {Row[]} rows
 * @param {BenchmarkFields} benchmark
 * @returns {Api.SummaryView}
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
    error_breakdown: causes(benchmark),
    outcomes: benchmark.outcomes ?? null, without_usage: benchmark.without_usage ?? null,
    unjudged: benchmark.unjudged_samples ?? null,
  }
}

/**
 * Returns the view of a sample.
 *
 * @param {Row} row
 * @param {Partial<Sample>} item
 * @returns {Sample}
 */
export function sampleView(row, item) {
  return {
    id: '', created_at: '', body_sha256: null, body_url: null, cut: [], hidden: false, truncated: false,
    prompt: null, response: null, reasoning: null, steps: null, expected: null, test_code: null,
    is_correct: null, reason: null, detail: null, error: null, error_code: null, judge_prompt: null, judge_output: null,
    item_metadata: null, finish_reason: null, model_reported: null,
    ...row, ...item,
  }
}

/** @param {BenchmarkFields} benchmark @returns {Api.ErrorCount[]} */
function causes({ error_causes: found = [] }) {
  return found.map(({ code = null, message, count }) => ({ code, message, count }))
}

/** @param {import('./results.js').DatasetFields | null | undefined} found @returns {Api.DatasetView | null} */
function dataset(found) {
  if (!found) return null
  return { ...found, attachments: Object.entries(found.attachments ?? {}).map(([name, file]) => ({ name, ...file })) }
}

/** @param {Partial<Api.GenerationView> | undefined} found @returns {Api.GenerationView} */
function settings(found) {
  return {
    temperature: null, top_p: null, top_k: null, max_tokens: null, max_tokens_field: null, seed: null, stop: [], system_prompt: null,
    reasoning_effort: null, thinking_budget: null, extra_body: null, omit: [], ...found,
  }
}

/** @param {Partial<Api.LimitsView> | null | undefined} found @returns {Api.LimitsView | null} */
function limits(found) {
  return found ? { requests_per_minute: null, timeout_seconds: null, max_failures: null, ...found } : null
}

/** Returns the model that simulated users, if there was one. @param {import('./results.js').RunFields} run */
function userModel(run) {
  return { user_model: judge(/** @type {{user_model?: import('./results.js').RunFields['judge']}} */ (run).user_model) }
}

/** @param {import('./results.js').RunFields['judge']} found @returns {Api.JudgeOrderView | null} */
function judge(found) {
  if (!found) return null
  const { temperature, max_tokens, seed } = settings(found.generation)
  return { model: found.model, temperature, max_tokens, seed }
}
