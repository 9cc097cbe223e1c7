/** Own datasets in MMLU-Pro's columns, with answers of models of known accuracy. */

import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const LETTERS = 'ABCDEFGHIJ'
const GROUPS = ['biology', 'business', 'chemistry', 'computer science', 'economics', 'engineering', 'health', 'history', 'law', 'math', 'other', 'philosophy', 'physics', 'psychology']

/**
 * Makes a generator of numbers from 0 to 1, the same ones for the same seed.
 *
 * @param {number} seed
 */
export function randomNumbers(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Makes rows of MMLU-Pro with simple sums.
 *
 * @param {number} count
 */
export function rows(count) {
  const random = randomNumbers(count)
  return Array.from({ length: count }, (_, i) => {
    const right = Math.floor(random() * 10)
    return {
      question_id: i + 1, question: `What is ${i} plus ${right}?`, options: Array.from({ length: 10 }, (_, k) => String(i + k)),
      answer: LETTERS[right], answer_index: right, cot_content: '', category: GROUPS[i % GROUPS.length], src: 'own',
    }
  })
}

/**
 * Writes values as JSON lines.
 *
 * @param {string} file
 * @param {object[]} values
 */
export function writeLines(file, values) {
  fs.writeFileSync(file, values.map((value) => `${JSON.stringify(value)}\n`).join(''))
  return file
}

/**
 * Orders a run of stored responses to a dataset of this size, and waits for its end. 70% are right, 25% wrong, and the rest
 * can't be parsed or is missing.
 *
 * @param {import('./bench.js').Bench} bench a running server
 * @param {number} count
 * @returns {Promise<Api.RunView>} the run
 */
export async function largeRun(bench, count) {
  const random = randomNumbers(7)
  const items = rows(count)
  const dataset = writeLines(path.join(bench.folder, 'items.jsonl'), items)
  const responses = writeLines(path.join(bench.folder, 'responses.jsonl'), items.map(({ question_id: id, answer }) => {
    const chance = random()
    if (chance > 0.98) return { item_id: id, response: null }
    if (chance > 0.95) return { item_id: id, response: 'I am not sure.' }
    const letter = chance < 0.7 ? answer : LETTERS[(LETTERS.indexOf(answer) + 1) % 10]
    return { item_id: id, response: `The sum is easy to see. The answer is (${letter}).` }
  }))
  // The command writes an archive when the run is over. Nothing here needs it, so it may end before that.
  const command = bench.run('run', '--model', `replay:${responses}`, '--benchmark', 'mmlu_pro', '--dataset', `mmlu_pro=${dataset}`,
    '--concurrency', '64', '--name', `${count} stored responses`, '--yes', '--out', path.join(bench.folder, 'out'))
  let failure = null
  command.catch((error) => { failure = error })
  for (;;) {
    if (failure) throw failure
    const { runs } = await bench.api('GET', '/api/runs?limit=1')
    if (runs[0]?.completed_at) {
      bench.killCommands()
      return runs[0]
    }
    await sleep(500)
  }
}
