/** Prints size and speed of the page, each figure with its aim. */

import { setTimeout as sleep } from 'node:timers/promises'
import { COMMAND } from './support/bench.js'
import { largeRun } from './support/dataset.js'
import { cpuSeconds, loadBytes, readyMilliseconds, scrollFrames } from './support/measure.js'
import { settled } from './support/navigation.js'
import { closeBrowser, World } from './support/world.js'

/** Items of the large run. */
const ITEMS = 12_000
/** Repetitions of a time; the median counts. */
const REPEATS = 5
/** Slowdown of the processor for the time until the page can be used. */
const SLOWDOWN = 4
/** Seconds during which a run is watched. */
const WATCH_SECONDS = 60
/** Windows that watch the same run while the server's processor time is measured. */
const WATCHERS = 8

/** @type {[string, string, string][]} */
const rows = []
const world = await World.start({ serve: ['--concurrency', '64'] })
try {
  await measureLoading('first visit', '/')
  await measureTime('first visit, with the form of a run', '/', '.order-form')
  console.error(`making a run of ${ITEMS} items …`)
  const run = await largeRun(world.bench, ITEMS)
  await measureLoading('list of runs', '/runs')
  await measureLoading(`run of ${ITEMS} items`, `/runs/${run.id}`, 'bench-table .line')
  await measureScrolling(run.id)
  await measureWatching()
} finally {
  await world.stop()
  await closeBrowser()
}
const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column].length)))
console.log(`Measured with ${COMMAND}`)
for (const [name, value, aim] of rows) console.log(`${name.padEnd(widths[0])}  ${value.padStart(widths[1])}  ${aim}`)

/**
 * @param {string} name
 * @param {string} address
 * @param {string} [part] selector of what makes the view usable
 */
async function measureLoading(name, address, part) {
  const sizes = await loadBytes(await world.window(), address)
  rows.push([`${name}: bytes`, kilobytes(sizes.files + sizes.data),
    `${address.length > 6 ? '' : 'aim ≤ 100 KB; '}files ${kilobytes(sizes.files)}, data ${kilobytes(sizes.data)}, ${sizes.requests} requests`])
  await measureTime(`${name}: usable`, address, part)
}

/**
 * @param {string} name
 * @param {string} address
 * @param {string} [part]
 */
async function measureTime(name, address, part) {
  const times = []
  for (let i = 0; i < REPEATS; i += 1) times.push(await readyMilliseconds(await world.window(), address, SLOWDOWN, part))
  rows.push([`${name}, processor slowed ×${SLOWDOWN}`, `${Math.round(median(times))} ms`, `aim ≤ 1,000 ms; ${times.map(Math.round).join(', ')}`])
}

/** @param {string} id of the large run */
async function measureScrolling(id) {
  const { page } = await world.open(`/runs/${id}`)
  await page.getByText('12,000 samples').first().waitFor()
  await settled(page)
  const longest = []
  const all = []
  for (let i = 0; i < REPEATS; i += 1) {
    const frames = await scrollFrames(page)
    longest.push(Math.max(...frames))
    all.push(...frames)
  }
  rows.push([`longest frame while scrolling ${ITEMS} items`, `${Math.round(median(longest))} ms`, `aim ≤ 32 ms; median frame ${Math.round(median(all))} ms`])
}

async function measureWatching() {
  const { bench, model } = world
  // About three minutes of work.
  model.answer = async () => ({ text: 'The answer is (A).', delay: 20_000 })
  const { id } = await bench.order({ model_id: 'openai-compatible/slow', selected_benchmarks: ['mmlu_pro'], subset_count: null, samples: 20 })
  await sleep(20_000)
  const before = cpuSeconds(bench.pid)
  await sleep(WATCH_SECONDS * 500)
  const alone = cpuSeconds(bench.pid) - before
  const window = await world.open(`/runs/${id}`)
  await settled(window.page)
  await sleep(5000)
  const start = window.guard.requests.length
  await sleep(WATCH_SECONDS * 1000)
  rows.push(['requests a minute while watching a run', String((window.guard.requests.length - start) * 60 / WATCH_SECONDS), 'aim ≤ 6'])
  for (let i = 1; i < WATCHERS; i += 1) await world.open(`/runs/${id}`)
  const from = cpuSeconds(bench.pid)
  await sleep(WATCH_SECONDS * 1000)
  const used = (cpuSeconds(bench.pid) - from) / WATCH_SECONDS - alone / (WATCH_SECONDS / 2)
  rows.push(['processor time of the server for each watcher', `${(Math.max(0, used) / WATCHERS * 100).toFixed(2)}% of a core`, `${WATCHERS} windows at one run`])
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

/** @param {number} bytes */
function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} KB`
}
