/** Data of a comparison: the runs, the API's comparisons with the first of them, and the indexes of their items. */

import { shortHash, shortId } from '../../core/format.js'
import { agentOf, isOpen, modelOf } from '../../core/run-facts.js'
import { holm } from './statistics.js'

/** Runs that are compared at once, at most: one letter and one series of a chart for each. */
export const RUNS_MAX = 6

/** Samples up to which texts are loaded if a run has no index, without asking. */
const SMALL = 200

/** Samples of one page of the API. */
const PAGE = 500

/** @typedef {import('../../core/source.js').RunSource} RunSource */
/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {Api.PairedView & Pick<Api.BenchmarkComparison, 'benchmark_name' | 'same_dataset' | 'same_protocol' | 'same_judge' | 'warnings'>} PairedBenchmark */
/** @typedef {{benchmarks: PairedBenchmark[], only_in_a: string[], only_in_b: string[]}} Comparison of a run with the baseline */

/**
 * One of the compared runs.
 *
 * @typedef {object} Compared
 * @property {string} id
 * @property {string} letter `A` is the baseline
 * @property {string} label its model, or what tells it from other runs of the model
 * @property {number} series index from 0
 * @property {RunSource} source
 * @property {Run} run
 * @property {Comparison | null} comparison with the baseline; null for the baseline itself, and if there is none
 * @property {string} problem why there is no comparison; empty if there is one
 */

/**
 * Loads runs, and compares each with the first.
 *
 * @param {RunSource[]} sources
 * @param {(baseline: RunSource, source: RunSource) => Promise<Comparison>} compare
 * @param {AbortSignal} signal
 * @returns {Promise<Compared[]>}
 */
export async function loadRuns(sources, compare, signal) {
  const runs = await Promise.all(sources.map((source) => source.run(signal).catch((problem) => {
    if (!signal.aborted) problem.message = `Run ${shortId(source.id)}: ${problem.message}`
    throw problem
  })))
  return Promise.all(runs.map(async (run, series) => {
    /** @type {Compared} */
    const compared = { id: run.id, letter: String.fromCharCode(65 + series), label: labelOf(run, runs), series, source: sources[series], run, comparison: null, problem: '' }
    if (series === 0) return compared
    compared.problem = whyNot(runs[0], run)
    if (!compared.problem) {
      try {
        compared.comparison = await compare(sources[0], sources[series])
      } catch (problem) {
        if (signal.aborted) throw problem
        compared.problem = /** @type {Error} */ (problem).message
      }
    }
    return compared
  }))
}

/**
 * Returns a short text that tells a run from the others: its model, with its thinking level, its agent or its name if several are of the same model,
 * or else its id.
 *
 * @param {Run} run
 * @param {Run[]} runs All compared runs, with this one.
 * @returns {string}
 */
function labelOf(run, runs) {
  const isUnique = (/** @type {(run: Run) => unknown} */ key) => runs.filter((other) => key(other) === key(run)).length === 1
  if (isUnique(({ model }) => model)) return run.model
  if (isUnique(modelOf)) return modelOf(run)
  const agent = agentOf(run)
  if (agent && isUnique((other) => `${modelOf(other)} ${agentOf(other)}`)) return `${modelOf(run)} · ${agent}`
  return run.name && isUnique(({ name }) => name) ? run.name : `${modelOf(run)} ${shortId(run.id)}`
}

/**
 * Returns why two runs can't be compared; empty if they can. What can be seen here isn't asked of the server.
 *
 * @param {Run} a
 * @param {Run} b
 */
function whyNot(a, b) {
  if (a.id === b.id) return 'It is the same run.'
  if (isOpen(a)) return 'The baseline isn’t over yet.'
  if (isOpen(b)) return 'It isn’t over yet.'
  const names = namesOf(b)
  return namesOf(a).some((name) => names.includes(name)) ? '' : 'It has no benchmark in common with the baseline.'
}

/** @param {Run} run @returns {string[]} */
export function namesOf(run) {
  return run.benchmarks.map((benchmark) => benchmark.benchmark_name)
}

/**
 * Returns the benchmark of a run; undefined if the run doesn't have it.
 *
 * @param {Compared} compared
 * @param {string} name
 */
export function benchmarkOf({ run }, name) {
  return run.benchmarks.find((benchmark) => benchmark.benchmark_name === name)
}

/**
 * Returns the comparison of one benchmark; undefined if there is none.
 *
 * @param {Compared} compared
 * @param {string} name
 */
export function pairOf({ comparison }, name) {
  return comparison?.benchmarks.find((benchmark) => benchmark.benchmark_name === name)
}

/**
 * Adjusts the p-values of all comparisons together if there are three runs or more, as `bench compare` does.
 *
 * @param {Compared[]} all
 * @returns {{count: number, of: (compared: Compared, name: string) => number | null}}
 */
export function adjustedValues(all) {
  const tests = (all.length > 2 ? all : []).flatMap((compared) => (compared.comparison?.benchmarks ?? []).flatMap((pair) =>
    (pair.mcnemar_p === null ? [] : [{ key: `${compared.letter} ${pair.benchmark_name}`, p: pair.mcnemar_p }])))
  const values = holm(tests.map(({ p }) => p))
  const byKey = new Map(tests.map(({ key }, at) => [key, values[at]]))
  return { count: tests.length, of: ({ letter }, name) => byKey.get(`${letter} ${name}`) ?? null }
}

/** @typedef {import('../../core/source.js').IndexRow} Row */

/**
 * Loads the rows of a benchmark's samples: from the index, or from the samples themselves for runs without one, and where
 * hashes of questions are needed that an index of an older version lacks. Texts of many samples are loaded only if the reader
 * asked for it.
 *
 * @param {Compared} compared
 * @param {string} name
 * @param {{needsHashes: boolean, isAsked: boolean}} options
 * @param {AbortSignal} signal
 * @returns {Promise<{rows: Row[] | null, hasHashes: boolean}>} `rows` is null if there is no index and texts weren't asked for
 */
export async function loadRows(compared, name, { needsHashes, isAsked }, signal) {
  const planned = benchmarkOf(compared, name)?.planned_samples ?? 0
  const mayLoadTexts = isAsked || planned <= SMALL
  const index = await compared.source.index(name, signal)
  const hasHashes = Boolean(index?.rows.some((row) => row.item_hash !== null))
  if (index && (hasHashes || !needsHashes || !mayLoadTexts)) return { rows: index.rows, hasHashes }
  if (!mayLoadTexts) return { rows: null, hasHashes: false }
  /** @type {Row[]} */
  const rows = []
  for (let cursor = '0'; cursor;) {
    const page = await compared.source.items({ benchmark: name, cursor, limit: PAGE }, signal)
    rows.push(...page.items.items.map(rowOf))
    cursor = page.items.next_cursor ?? ''
  }
  return { rows, hasHashes: true }
}

/** Keeps of a sample what an index has. @param {import('../../core/source.js').Sample} item @returns {Row} */
function rowOf({ position, sample, item_id, source_id, group, outcome, score, extracted, latency_ms, input_tokens, output_tokens, attempts, item_hash }) {
  return { position, sample, item_id, source_id, group, outcome, score, extracted, latency_ms, input_tokens, output_tokens, attempts, item_hash: shortHash(item_hash) }
}
