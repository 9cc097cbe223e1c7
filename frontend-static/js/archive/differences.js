/**
 * Comparison of the signed facts in `manifest.json` with `results.json`, to say which part of a tampered file differs.
 *
 * The digest proves that something differs. This finds where, as far as signed facts reach: texts of items are signed
 * only by the digest.
 */

/**
 * @typedef {object} Difference
 * @property {string} what place, such as `mmlu_pro: score`
 * @property {string} signed value that was signed
 * @property {string} found value in `results.json`
 */

/**
 * Facts of a benchmark in the manifest that are compared with its items.
 *
 * @typedef {{benchmark_name: string, items: number, samples_per_item: number, outcomes?: Record<string, number>, score?: number | null}} SignedFacts
 */

/** Most differences that are listed. */
const LISTED_MAX = 50

/** Facts of the run: label, path in the manifest, path in `results.run`. @type {[string, string, string][]} */
const RUN_FACTS = [
  ['run', 'run_id', 'id'],
  ['status', 'run_status', 'status'],
  ['model', 'model.slug', 'model_slug'],
  ['provider', 'model.provider', 'provider'],
  ['host of the provider', 'model.endpoint_host', 'endpoint_host'],
  ['models that the provider reported', 'model.reported', 'models_reported'],
  ['overall score', 'overall_score', 'overall_score'],
  ['meaning of the overall score', 'overall_score_label', 'overall_score_label'],
  ['coverage', 'coverage', 'coverage'],
  ['lowest coverage with a score', 'coverage_min', 'coverage_min'],
  ['demo data', 'demo', 'demo'],
  ['rejudged run', 'rejudges', 'rejudges'],
  ['percentage of items', 'sampling.subset_pct', 'subset_pct'],
  ['number of items', 'sampling.subset_count', 'subset_count'],
  ['seed', 'sampling.subset_seed', 'subset_seed'],
  ['samples per item', 'sampling.samples', 'samples'],
  ['protocols', 'sampling.protocols', 'protocols'],
  ['judge', 'sampling.judge', 'judge'],
  ['generation settings', 'sampling.generation', 'generation'],
]

/** Facts of a benchmark: label, and path in both documents. @type {[string, string, string][]} */
const BENCHMARK_FACTS = [
  ['status', 'status', 'status'],
  ['score', 'score', 'score'],
  ['coverage', 'coverage', 'coverage'],
  ['outcomes', 'outcomes', 'outcomes'],
  ['number of items', 'items', 'sampled_items'],
  ['samples per item', 'samples_per_item', 'samples_per_item'],
  ['dataset', 'dataset', 'dataset'],
  ['demo data', 'demo', 'demo'],
  ['protocol', 'protocol', 'protocol'],
  ['name of the protocol', 'protocol_name', 'protocol_name'],
  ['prompt', 'prompt_digest', 'prompt_digest'],
  ['source of the prompt', 'prompt_source', 'prompt_source'],
  ['judge', 'judge', 'judge'],
  ['generation settings', 'generation', 'generation'],
  ['options', 'options', 'options'],
  ['changed settings', 'changed_settings', 'changed_settings'],
  ['causes of errors', 'error_causes', 'error_causes'],
]

/**
 * Lists where results differ from the signed facts.
 *
 * @param {import('./verify.js').Manifest} manifest Manifest with a valid signature.
 * @param {import('./results.js').Results} results
 * @returns {Difference[]}
 */
export function differences(manifest, results) {
  const found = compare('', RUN_FACTS, manifest, results.run)
  /** @type {SignedFacts[]} */
  const signed = Array.isArray(manifest.benchmarks) ? manifest.benchmarks : []
  for (const facts of signed) {
    const name = String(facts?.benchmark_name)
    const at = results.benchmarks.findIndex((benchmark) => benchmark.benchmark_name === name)
    if (at < 0) found.push({ what: name, signed: 'is in the run', found: 'is missing' })
    else found.push(...compare(`${name}: `, BENCHMARK_FACTS, facts, results.benchmarks[at]), ...recount(name, facts, results.rows[at]))
  }
  for (const { benchmark_name: name } of signed.length > 0 ? results.benchmarks : []) {
    if (!signed.some((facts) => facts?.benchmark_name === name)) {
      found.push({ what: String(name), signed: 'isn’t in the run', found: 'was added' })
    }
  }
  return found.slice(0, LISTED_MAX)
}

/**
 * @param {string} prefix
 * @param {[string, string, string][]} facts
 * @param {unknown} signed
 * @param {unknown} found
 * @returns {Difference[]}
 */
function compare(prefix, facts, signed, found) {
  return facts.flatMap(([label, from, to]) => {
    const [expected, present] = [at(signed, from), at(found, to)]
    // Older manifests lack some facts.
    if (expected === undefined || canonical(expected) === canonical(present ?? null)) return []
    return inside(`${prefix}${label}`, expected, present)
  })
}

/** Names the entries of an object that differ, or the whole value. @param {string} what @param {unknown} signed @param {unknown} found @returns {Difference[]} */
function inside(what, signed, found) {
  if (!isObject(signed) || !isObject(found)) return [{ what, signed: show(signed), found: show(found) }]
  const keys = [...new Set([...Object.keys(signed), ...Object.keys(found)])]
  return keys.filter((key) => canonical(signed[key]) !== canonical(found[key]))
    .flatMap((key) => inside(`${what}, ${key}`, signed[key], found[key]))
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Counts the outcomes of the items again, and takes the mean of their scores.
 *
 * @param {string} name
 * @param {SignedFacts} facts
 * @param {import('./results.js').Row[]} rows
 * @returns {Difference[]}
 */
function recount(name, facts, rows) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const { outcome } of rows) if (outcome) counts[outcome] = (counts[outcome] ?? 0) + 1
  /** @type {Difference[]} */
  const found = []
  for (const [outcome, count] of Object.entries(facts.outcomes ?? {})) {
    if (count !== (counts[outcome] ?? 0)) {
      found.push({ what: `${name}: items with the outcome ${outcome}, counted`, signed: show(count), found: show(counts[outcome] ?? 0) })
    }
  }
  const planned = facts.items * facts.samples_per_item
  if (Number.isFinite(planned) && planned !== rows.length) {
    found.push({ what: `${name}: samples, counted`, signed: show(planned), found: show(rows.length) })
  }
  const scores = rows.flatMap(({ score, outcome }) => (score === null || outcome === 'infrastructure-error' ? [] : [score]))
  const mean = scores.reduce((total, score) => total + score, 0) / scores.length
  if (typeof facts.score === 'number' && scores.length > 0 && Math.abs(mean - facts.score) > 1e-9) {
    found.push({ what: `${name}: mean of the items’ scores`, signed: show(facts.score), found: show(mean) })
  }
  return found
}

/** @param {unknown} value @param {string} path */
function at(value, path) {
  return path.split('.').reduce((inner, key) => /** @type {Record<string, unknown> | null | undefined} */ (inner)?.[key], value)
}

/** Returns a text that is equal for equal values. @param {unknown} value @returns {string} */
function canonical(value) {
  if (value === undefined) return 'null'
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const fields = /** @type {Record<string, unknown>} */ (value)
  return `{${Object.keys(fields).sort().map((key) => `${JSON.stringify(key)}:${canonical(fields[key])}`).join(',')}}`
}

/** @param {unknown} value */
function show(value) {
  const text = typeof value === 'string' ? value : value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
