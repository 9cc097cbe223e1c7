/** Contents of `results.json`: the run and its benchmarks at once, items when they are shown. */

import { shortHash } from '../core/format.js'
import { decodeUtf8, repeatedKeys } from './json.js'
import { Refusal } from './reasons.js'
import { scanResults } from './scan.js'

/** Fields that a reader of archives relies on. Two programs could disagree on one that occurs twice. */
const FIELDS = ['run', 'benchmarks', 'exported_at', 'schema_version']
const RUN_FIELDS = ['id', 'model_slug', 'subset_pct', 'subset_count', 'subset_seed', 'overall_score']

/** Length of an extracted answer in a row, in characters. */
const EXTRACTED_CHARS = 40

/** @typedef {import('../core/source.js').IndexRow} Row */
/** @typedef {import('../core/source.js').Sample} Sample */
/** @typedef {{input_tokens?: number, output_tokens?: number, estimated_tokens?: number}} Usage */
/** @typedef {{low: number, high: number}} Bounds */

/**
 * Fields of the run. Other programs leave some out.
 *
 * @typedef {Partial<Omit<Api.RunView, 'judge' | 'limits' | 'software'>> & {selected_items?: string[] | null, code_version?: string | null,
 *   software?: {version?: string} | null, limits?: Partial<Api.LimitsView> | null, judge?: {model: string, generation?: Partial<Api.GenerationView>} | null}} RunFields
 */
/**
 * Fields of a benchmark without its items.
 *
 * @typedef {Partial<Omit<Api.RunBenchmarkView, 'dataset' | 'error_causes'>> & {dataset?: DatasetFields | null, error_causes?: Cause[],
 *   usage?: Usage | null, judge_usage?: Usage | null, user_usage?: Usage | null, cost_usd?: number | null, judge_cost_usd?: number | null, user_cost_usd?: number | null,
 *   intervals?: {wilson_95?: Bounds | null, clustered?: {interval?: Bounds | null} | null} | null,
 *   without_usage?: number | null, unjudged_samples?: number | null}} BenchmarkFields
 */
/** @typedef {Omit<Api.DatasetView, 'attachments'> & {attachments?: Record<string, {bytes: number, sha256: string}>}} DatasetFields */
/** @typedef {Omit<Api.ErrorCount, 'code'> & {code?: Api.Code}} Cause */

/** Time for which items are read before the page may draw, in milliseconds. */
const SLICE_MS = 30

/** Results of an archive. */
export class Results {
  /**
   * Reads results. Throws a `Refusal` if they don't have the expected structure.
   *
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  constructor(bytes) {
    const scan = scanResults(bytes)
    if (!scan) throw refused('results_wrong_types', 'Results JSON is refused: it is nested too deeply')
    /** @type {any} */
    let parsed
    try {
      parsed = JSON.parse(scan.frame)
    } catch {
      throw refused('results_not_json', 'Results JSON is invalid')
    }
    if (bytes.some((byte) => byte > 0x7f) && decodeUtf8(bytes) === null) {
      throw refused('results_wrong_types', 'Results JSON is refused: it is not UTF-8')
    }
    checkForm(parsed, scan)
    this.bytes = bytes
    this.places = scan.items
    /** Rows of the samples, by benchmark; filled by `load`. @type {Row[][]} */
    this.rows = scan.items.map(() => [])
    /** @type {RunFields} */
    this.run = parsed.run
    /** @type {BenchmarkFields[]} */
    this.benchmarks = parsed.benchmarks.map((/** @type {BenchmarkFields & {items?: unknown}} */ { items, ...fields }) => fields)
    /** @type {string | null} */
    this.exportedAt = parsed.exported_at ?? null
    /** @type {string | null} */
    this.schemaVersion = parsed.schema_version ?? null
  }

  /**
   * Returns the number of samples of a benchmark.
   *
   * @param {number} benchmark Index of the benchmark.
   */
  count(benchmark) {
    return this.places[benchmark].length
  }

  /**
   * Reads one sample.
   *
   * @param {number} benchmark Index of the benchmark.
   * @param {number} at Index of the sample.
   * @returns {Partial<Sample>}
   */
  item(benchmark, at) {
    const { start, end } = this.places[benchmark][at]
    try {
      return JSON.parse(new TextDecoder().decode(this.bytes.subarray(start, end)))
    } catch {
      throw refused('results_not_json', 'Results JSON is invalid')
    }
  }

  /**
   * Reads all samples once, keeps a row of each, and lets the page draw in between. Throws a `Refusal` if one isn't JSON.
   */
  async load() {
    let until = performance.now() + SLICE_MS
    for (const [benchmark, places] of this.places.entries()) {
      /** @type {Row[]} */
      const rows = []
      for (let at = 0; at < places.length; at += 1) {
        if (performance.now() > until) {
          await new Promise((resolve) => setTimeout(resolve))
          until = performance.now() + SLICE_MS
        }
        rows.push(rowOf(this.item(benchmark, at), at))
      }
      this.rows[benchmark] = rows
    }
    return this
  }
}

/**
 * Makes the row of a sample. Archives of other programs have no outcomes: theirs are right, wrong, or failed.
 *
 * @param {Partial<Sample>} item
 * @param {number} at Index in the file, which is in the order of the plan.
 * @returns {Row}
 */
function rowOf(item, at) {
  const text = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : null)
  const number = (/** @type {unknown} */ value) => (typeof value === 'number' ? value : null)
  const plain = item.is_correct === true ? 'correct' : item.is_correct === false ? 'incorrect' : item.error ? 'infrastructure-error' : null
  const extracted = text(item.extracted)
  return {
    position: number(item.position) ?? at,
    sample: number(item.sample) ?? 0,
    item_id: String(item.item_id ?? ''),
    source_id: text(item.source_id),
    group: text(item.group) ?? text(item.item_metadata?.category),
    outcome: 'outcome' in item ? text(item.outcome) : plain,
    score: number(item.score),
    extracted: extracted && extracted.length > EXTRACTED_CHARS ? `${extracted.slice(0, EXTRACTED_CHARS)}…` : extracted,
    latency_ms: number(item.latency_ms),
    input_tokens: number(item.input_tokens),
    output_tokens: number(item.output_tokens),
    attempts: number(item.attempts),
    item_hash: shortHash(text(item.item_hash)),
  }
}

/** @param {string} code @param {string} text */
function refused(code, text) {
  return new Refusal(code, text, 'results.json')
}

/** @param {any} parsed @param {import('./scan.js').Scan} scan */
function checkForm(parsed, scan) {
  const wrong = (/** @type {string} */ what) => refused('results_wrong_types', `Results JSON does not have the expected form: ${what}`)
  const isObject = (/** @type {unknown} */ value) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject(parsed)) throw wrong('it is not an object')
  if (!isObject(parsed.run)) throw wrong('`run` is not an object')
  if (!Array.isArray(parsed.benchmarks) || !parsed.benchmarks.every(isObject)) throw wrong('`benchmarks` is not a list of objects')
  for (const { path, key } of repeatedKeys(scan.frame)) {
    const isRead = path.length === 0 ? FIELDS.includes(key) : path.length === 1 && path[0] === 'run' && RUN_FIELDS.includes(key)
    if (isRead) throw wrong(`\`${key}\` occurs twice`)
  }
  const isMaybe = (/** @type {unknown} */ value, /** @type {string} */ type) => value === undefined || value === null || typeof value === type
  for (const name of ['exported_at', 'schema_version']) if (!isMaybe(parsed[name], 'string')) throw wrong(`\`${name}\` is not a text`)
  for (const name of ['id', 'model_slug', 'subset_seed']) if (!isMaybe(parsed.run[name], 'string')) throw wrong(`\`run.${name}\` is not a text`)
  for (const name of ['subset_pct', 'subset_count', 'overall_score']) if (!isMaybe(parsed.run[name], 'number')) throw wrong(`\`run.${name}\` is not a number`)
  for (const [index, { items }] of parsed.benchmarks.entries()) {
    const isList = items === undefined || (Array.isArray(items) && items.every((place) => place === 0))
    if (!isList || (items ?? []).length !== scan.items[index].length) throw wrong('`items` is not a list of objects')
  }
}
