/** Comparison of two archives, in the form of the API's answer, without a server. */

import { hasConversations } from '../core/agents.js'
import { scaleOf } from '../core/run-facts.js'
import { comparePaired, scoreOf } from './paired.js'

/** @typedef {import('../core/run-facts.js').Run} Run */
/** @typedef {import('../core/run-facts.js').RunBenchmark} RunBenchmark */
/** @typedef {import('../core/source.js').IndexRow} Row */
/** @typedef {import('../views/compare/load.js').Comparison} Comparison */
/** @typedef {{run: Run, rowsOf: (benchmark: string) => Row[]}} Side */

/**
 * Compares the benchmarks that both runs have.
 *
 * @param {Side} a
 * @param {Side} b
 * @returns {Comparison}
 */
export function compareArchives(a, b) {
  const names = (/** @type {Side} */ { run }) => run.benchmarks.map(({ benchmark_name: name }) => name)
  const common = names(a).filter((name) => names(b).includes(name))
  return {
    benchmarks: common.map((name) => compareBenchmark(a, b, name)),
    only_in_a: names(a).filter((name) => !common.includes(name)), only_in_b: names(b).filter((name) => !common.includes(name)),
  }
}

/**
 * @param {Side} a
 * @param {Side} b
 * @param {string} name
 */
function compareBenchmark(a, b, name) {
  const [one, other] = [benchmarkOf(a, name), benchmarkOf(b, name)]
  const isKnown = Boolean(one.dataset && other.dataset)
  const isSameDataset = isKnown && one.dataset?.digest === other.dataset?.digest
  const isSameUser = !hasConversations(name) || equal(userOf(a.run), userOf(b.run))
  const isSameProtocol = one.protocol !== null && equal(protocolOf(a.run, one), protocolOf(b.run, other)) && isSameUser
  const isSameJudge = equal(judgeOf(one), judgeOf(other))
  const rows = [a, b].map((side) => side.rowsOf(name).filter((row) => scoreOf(row) !== null))
  // Another revision may have other rows, so only the dataset's own ids identify equal items.
  const bySourceId = !isSameDataset && rows.every((graded) => graded.some(({ source_id: id }) => id !== null))
  const [itemsA, itemsB] = rows.map((graded) => byItem(graded, bySourceId))
  const changed = isSameDataset ? [] : [...itemsA.keys()].filter((id) => isChanged(itemsA.get(id), itemsB.get(id)))
  for (const id of changed) { itemsA.delete(id); itemsB.delete(id) }
  const paired = comparePaired(itemsA, itemsB)
  const [lowest, highest] = scaleOf(name)
  if (paired.interval && lowest === 0) {
    const limit = (/** @type {number} */ bound) => Math.min(highest, Math.max(-highest, bound))
    paired.interval = { low: limit(paired.interval.low), high: limit(paired.interval.high) }
  }
  paired.only_in_a += changed.length
  paired.only_in_b += changed.length
  const warnings = [
    !isKnown ? `An archive doesn’t name its dataset; items are matched by ${bySourceId ? 'the dataset’s own ids' : 'the indices of their rows'}.`
      : !isSameDataset && `The runs used different revisions of the dataset; items are matched by ${bySourceId ? 'the dataset’s own ids' : 'the indices of their rows'}.`,
    changed.length > 0 && `${changed.length} of the items that have the same id in both runs have another question in each; they are not compared.`,
    one.protocol === null || other.protocol === null ? 'An archive doesn’t name its protocol.' : !isSameProtocol && 'The runs differ in protocol, options, prompt or settings.',
    !isSameUser && 'The runs had different user models, or other settings of it.',
    !isSameJudge && 'The runs were judged differently.',
    paired.items === 0 && 'The runs have no graded item in common; there is nothing to compare.',
    (one.demo || other.demo) && 'Demo data: the scores say nothing about the real benchmark.',
  ].filter((text) => typeof text === 'string')
  return { benchmark_name: name, same_dataset: isSameDataset, same_protocol: isSameProtocol, same_judge: isSameJudge, warnings, ...paired }
}

/** @param {Side} side @param {string} name @returns {RunBenchmark} */
function benchmarkOf({ run }, name) {
  return /** @type {RunBenchmark} */ (run.benchmarks.find((benchmark) => benchmark.benchmark_name === name))
}

/** @param {Run} run @param {RunBenchmark} b */
function protocolOf(run, b) {
  return [b.protocol, b.prompt_digest, Object.entries(b.options ?? {}).sort(), Object.entries(b.generation ?? {}).filter(([, value]) => value !== null).sort(), b.samples_per_item, run.limits?.timeout_seconds ?? null]
}

/** @param {Run} run */
function userOf({ user_model: user }) {
  return user && [user.model, user.temperature, user.max_tokens, user.seed]
}

/** @param {RunBenchmark} b */
function judgeOf({ judge }) {
  return judge && [judge.model, judge.endpoint_host, judge.prompt_digest, judge.temperature, judge.max_tokens, judge.seed]
}

/** @param {unknown} a @param {unknown} b */
function equal(a, b) {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** @param {Row[]} rows @param {boolean} bySourceId */
function byItem(rows, bySourceId) {
  /** @type {Map<string, Row[]>} */
  const items = new Map()
  for (const row of rows) {
    const id = bySourceId ? row.source_id : row.item_id
    if (id === null) continue
    const found = items.get(id)
    if (found) found.push(row)
    else items.set(id, [row])
  }
  return items
}

/** @param {Row[] | undefined} a @param {Row[] | undefined} b */
function isChanged(a, b) {
  const [one, other] = [a, b].map((rows) => rows?.find(({ item_hash: hash }) => hash !== null)?.item_hash)
  return Boolean(one && other && one !== other)
}
