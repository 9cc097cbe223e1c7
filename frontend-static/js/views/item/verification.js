/** A change of a repository and its verification: the patch side by side, the tests that decide, their output, and the agent's turns. Containers wrote all of it, so it is only text. */

import { h, replace, setText, withCode } from '../../core/dom.js'
import { bytes, duration, integer, none, plural } from '../../core/format.js'
import { failure, loading } from '../../core/states.js'
import { changedFiles } from './changes.js'
import { endOf, logDetails } from './episode.js'
import { wholeLog } from './logs.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {import('./logs.js').Log} Log */
/** @typedef {import('./logs.js').Place} Place */
/** @typedef {{name: string, status: string}} Test */
/** @typedef {{passed: number, of: number, tests: Test[]}} Tests */
/** @typedef {{engine?: string, round?: number, exit_code?: number | null, timed_out?: boolean, setup_ms?: number | null, command_ms?: number | null, exception?: {name: string, message: string} | null, logs: Log[]}} Verification */
/** @typedef {{resolved?: boolean, image?: string, image_by_rules?: string, patch_bytes?: number, patch_bytes_cleaned?: number, fail_to_pass?: Tests, pass_to_pass?: Tests, test_counts?: Record<string, number>, agent?: string, turns?: number}} Detail */

/** Names of the lists of tests. @type {['fail_to_pass' | 'pass_to_pass', string][]} */
const LISTS = [['fail_to_pass', 'Tests to fix'], ['pass_to_pass', 'Tests to keep']]
/** Tests of a list that are shown at first, and that one more press adds. */
const PART_TESTS = 100
/** File with the tests' results. */
const OUTPUT = 'verification/output.json'
/** Size of a patch that is shown, in characters. */
const PATCH_CHARS_MAX = 16 << 20

/**
 * Returns the verification of a sample; null for samples of other kinds.
 *
 * @param {Sample} item
 * @returns {Verification | null}
 */
export function verificationOf(item) {
  const found = /** @type {{verification?: Partial<Verification>} | null} */ (item.judge_output)?.verification
  return found && Array.isArray(found.logs) ? /** @type {Verification} */ (found) : null
}

/**
 * Makes the sections of a verified change.
 *
 * @param {Verification} verification
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
export function verificationSections(verification, place, announce) {
  const { item } = place
  const detail = /** @type {Detail} */ (item.detail ?? {})
  const logs = /** @type {{logs?: Log[]}} */ (item.judge_output)?.logs ?? []
  const said = `${item.reason ?? ''} ${item.error ?? ''}`
  const tests = LISTS.flatMap(([name]) => detail[name] ?? [])
  const passed = tests.reduce((sum, list) => sum + list.passed, 0)
  const of = tests.reduce((sum, list) => sum + list.of, 0)
  const ms = (/** @type {number | null | undefined} */ value) => (typeof value === 'number' ? duration(value / 1000) : none)
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Verdict', detail.resolved === undefined ? none : detail.resolved ? 'Resolved' : 'Unresolved'],
    ['Required tests', tests.length > 0 ? `${integer(passed)} of ${integer(of)}` : none, tests.length > 0 ? 'passed' : 'no results'],
    ['Time of the tests', ms(verification.command_ms), verification.timed_out ? 'the limit was reached' : typeof verification.exit_code === 'number' ? `exit code ${verification.exit_code}` : ''],
    ['Setup', ms(verification.setup_ms)],
    ['Patch', typeof detail.patch_bytes === 'number' ? bytes(detail.patch_bytes) : none, typeof detail.patch_bytes_cleaned === 'number' ? `${bytes(detail.patch_bytes_cleaned)} without binary files` : ''],
    ['Engine', verification.engine || none, (verification.round ?? 1) > 1 ? `sandbox ${verification.round}` : ''],
  ]
  if (detail.agent) tiles.push(['Agent', detail.agent, typeof detail.turns === 'number' ? plural(detail.turns, 'turn') : ''])
  const exception = verification.exception
  const hasOutput = verification.logs.some(({ name }) => name === OUTPUT)
  return [
    h('section', { class: 'episode-result', 'aria-label': 'Result of the verification' },
      h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))),
      detail.image && h('p', { class: 'dim image-name' }, 'Image: ', h('code', null, detail.image), detail.image_by_rules && [' (by the official rules ', h('code', null, detail.image_by_rules), ')']),
      endOf({ episode_steps: [] }, item),
      exception && !said.includes(exception.message) && h('p', { class: 'note bad' }, h('code', null, exception.name), ' ', withCode(exception.message))),
    h('div', { class: 'verified' },
      h('section', { class: 'text', 'aria-labelledby': 'patch' }, h('h2', { id: 'patch' }, 'Patch'), patchBox(place)),
      h('section', { class: 'text', 'aria-labelledby': 'required-tests' }, h('h2', { id: 'required-tests' }, 'Required tests'),
        tests.length === 0 ? h('p', { class: 'note bad' }, noResults(detail, hasOutput))
          : LISTS.map(([name, label]) => detail[name] && testList(label, name, detail[name])))),
    verification.logs.length > 0 ? logsSection('Output of the tests', 'test-output', verification.logs, place)
      : h('section', { class: 'text' }, h('h2', null, 'Output of the tests'), h('p', { class: 'dim' }, 'The verification left no output.')),
    turnsPart(logs, place, announce),
    logs.length > 0 && logsSection('Logs of the agent', 'logs', logs, place),
  ]
}

/**
 * @param {Detail} detail
 * @param {boolean} hasOutput
 */
function noResults({ resolved }, hasOutput) {
  if (resolved === undefined) return 'The change has no verdict.'
  return hasOutput ? 'The results in output.json can’t be used, so the change counts as unresolved.' : 'The tests left no output.json, so the change counts as unresolved.'
}

/**
 * @param {string} title
 * @param {string} id
 * @param {Log[]} logs
 * @param {Place} place
 */
function logsSection(title, id, logs, place) {
  return h('section', { class: 'text episode-logs', 'aria-labelledby': id }, h('h2', { id }, title), logs.map((log) => logDetails(log, place)))
}

/** Makes the place of the patch: the sample's answer, or all of it from its file if that was cut. @param {Place} place */
function patchBox(place) {
  const { item, isLive, signal } = place
  const box = h('div', { class: 'changes' })
  const show = (/** @type {string} */ text) => {
    const files = text.length > PATCH_CHARS_MAX ? [] : changedFiles(text)
    replace(box, files.length > 0 ? files : text.trim() === '' ? h('p', { class: 'dim' }, 'There is no change: the tests were run on the base commit.')
      : text.length > PATCH_CHARS_MAX ? h('p', { class: 'dim' }, 'The patch is too large to be shown.')
        : [h('p', { class: 'dim' }, 'The answer has no changes of text files in the form of a unified diff.'), h('pre', { class: 'box' }, text.slice(0, 20_000))])
  }
  const isCut = item.cut.includes('response')
  if (!isCut || !isLive) {
    show(item.response ?? '')
    if (isCut) box.prepend(h('p', { class: 'note warn' }, 'Only the beginning of the patch is here.'))
    return box
  }
  const load = async () => {
    const state = loading('Loading the patch')
    replace(box, state)
    try {
      const text = await wholeLog(place, { name: 'patch.diff', bytes: 0, end: '', cut: true }, (read) => setText(state, `Loading the patch: ${bytes(read)}…`))
      if (!signal.aborted) show(text)
    } catch (error) {
      if (!signal.aborted) replace(box, failure(/** @type {Error} */ (error), load))
    }
  }
  void load()
  return box
}

/**
 * Makes a list of tests: those that didn't pass, then the others.
 *
 * @param {string} label
 * @param {string} name
 * @param {Tests} tests
 */
function testList(label, name, { passed, of, tests }) {
  const hasPassed = (/** @type {Test} */ { status }) => status === 'PASSED'
  const [good, bad] = [tests.filter(hasPassed), tests.filter((test) => !hasPassed(test))]
  const left = of - tests.length
  return h('section', { class: 'test-list', 'aria-label': label },
    h('h3', null, label, ' ', h('small', { class: 'dim' }, `${name}: ${integer(passed)} of ${integer(of)} passed`)),
    of === 0 && h('p', { class: 'dim' }, 'None.'),
    bad.length > 0 && testGroup(`${plural(of - passed, 'test')} did not pass`, bad, true),
    good.length > 0 && testGroup(`${plural(passed, 'test')} passed`, good, bad.length === 0 && good.length <= PART_TESTS),
    left > 0 && h('p', { class: 'dim' }, `${plural(left, 'more test')} ${left === 1 ? 'is' : 'are'} counted but not listed; output.json has the results of all.`))
}

/**
 * @param {string} title
 * @param {Test[]} tests
 * @param {boolean} isOpen
 */
function testGroup(title, tests, isOpen) {
  const list = h('ul', { class: 'tests' })
  const rest = [...tests]
  const more = h('button', { type: 'button', class: 'button small' })
  const draw = () => {
    list.append(...rest.splice(0, PART_TESTS).map(testItem))
    if (rest.length === 0) more.remove()
    else more.textContent = `Show more tests (${integer(rest.length)})`
  }
  more.addEventListener('click', draw)
  const details = h('details', { open: isOpen }, h('summary', null, title), list, more)
  if (isOpen) draw()
  else details.addEventListener('toggle', draw, { once: true })
  return details
}

/** @param {Test} test */
function testItem({ name, status }) {
  const kind = status === 'PASSED' ? 'met' : 'missed'
  return h('li', { class: kind }, h('span', { class: 'status' }, status === 'PASSED' ? '✓ ' : '✗ ', status.toLowerCase()), h('code', null, name))
}

/**
 * Makes the place of the agent's turns; null for patches that no agent made.
 *
 * @param {Log[]} logs
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
function turnsPart(logs, place, announce) {
  const log = logs.find(({ name }) => name === 'agent/trajectory.json')
  if (!log) return null
  const box = h('div', { class: 'view' }, loading('Loading the turns'))
  import('./turns.js').then(({ turnsSection }) => {
    if (!place.signal.aborted) replace(box, turnsSection({ log, recording: null, name: '', isFirst: true, place, announce }))
  }, (error) => replace(box, failure(error)))
  return box
}
