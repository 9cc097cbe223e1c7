/** An attempt at a programming task: verdict, tests, applied change, output. The answer and its programs wrote all of it, so it is only text. */

import { h, replace } from '../../core/dom.js'
import { bytes, duration, integer, none, plural } from '../../core/format.js'
import { failure, loading } from '../../core/states.js'
import { changedFiles } from './changes.js'
import { logPage, wholeLog } from './logs.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {import('./logs.js').Place} Place */
/**
 * @typedef {{verdict: string, language?: string, form?: string, changed?: string[], restored?: string[], moved_hunks?: number, tests?: number, tests_passed?: number,
 *   failed?: {test: string, message: string}[], build_output?: string, build_seconds?: number, test_seconds?: number, isolation?: string, tests_are_outside?: boolean,
 *   agent?: string, agent_end?: string, turns?: number}} Verdict
 */

/** Verdicts in words. @type {Record<string, string>} */
const VERDICTS = {
  'no-answer': 'No answer', 'not-parsed': 'Not parsed', 'not-applied': 'Not applied', 'build-failed': 'Build failed', 'timed-out': 'Timed out', 'out-of-memory': 'Out of memory',
  'tests-failed': 'Tests failed', 'tests-passed': 'Tests passed', 'workspace-lost': 'Workspace lost', 'change-too-large': 'Change too large', 'change-not-text': 'Change not text',
}
/** Artifacts with output, and their titles. @type {[string, string][]} */
const OUTPUTS = [['build.log', 'Build output'], ['stdout.log', 'Test output'], ['stderr.log', 'Errors of the grader'], ['error.log', 'Errors'], ['agent/left-out.txt', 'Files that aren’t part of the change']]

/**
 * Returns the verdict on an attempt; null for samples of other kinds.
 *
 * @param {Sample} item
 * @returns {Verdict | null}
 */
export function attemptOf(item) {
  const detail = /** @type {Partial<Verdict> | null} */ (item.detail)
  return detail && typeof detail.verdict === 'string' ? /** @type {Verdict} */ (detail) : null
}

/**
 * Makes the sections of an attempt.
 *
 * @param {Verdict} verdict
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
export function attemptSections(verdict, place, announce) {
  const { tests, tests_passed: passed, failed = [] } = verdict
  const seconds = (/** @type {number | undefined} */ value) => (value === undefined ? none : duration(value))
  /** @type {[string, import('../../core/dom.js').Child, string?][]} */
  const tiles = [
    ['Verdict', VERDICTS[verdict.verdict] ?? verdict.verdict],
    ['Tests', tests === undefined ? none : `${integer(passed ?? 0)} of ${integer(tests)}`, tests === undefined ? 'not run' : 'passed'],
    ['Build', seconds(verdict.build_seconds)], ['Tests’ time', seconds(verdict.test_seconds)],
    ['Answer', verdict.form ?? none, verdict.changed && plural(verdict.changed.length, 'changed file')],
    ['Sandbox', verdict.isolation ?? none],
  ]
  if (verdict.agent) tiles.push(['Agent', verdict.agent, verdict.turns === undefined ? '' : plural(verdict.turns, 'turn')])
  const notes = [
    verdict.moved_hunks && `${plural(verdict.moved_hunks, 'hunk')} fitted at another line than the header says; all of its lines were there.`,
    verdict.restored?.length && `Changes of files that decide about tests were undone: ${verdict.restored.join(', ')}.`,
    verdict.tests_are_outside === false && 'These tests run in the answer’s own process, which could forge a pass.',
  ].filter(Boolean)
  return [
    h('section', { class: 'episode-result', 'aria-label': 'Result of the attempt' },
      h('dl', { class: 'tiles' }, tiles.map(([term, value, small]) => h('div', null, h('dt', null, term), h('dd', null, value, small && h('small', null, small))))),
      notes.map((text) => h('p', { class: 'dim' }, text))),
    failed.length > 0 && h('section', { class: 'text', 'aria-labelledby': 'failed-tests' },
      h('h2', { id: 'failed-tests' }, 'Failed tests'),
      h('ul', { class: 'failed-tests' }, failed.map(({ test, message }) => h('li', null, h('code', null, test), h('pre', { class: 'box' }, message))))),
    verdict.build_output && h('section', { class: 'text' }, h('h2', null, 'End of the build’s output'), h('pre', { class: 'box' }, verdict.build_output)),
    ...(place.isLive ? artifactSections(place, announce) : []),
  ]
}

/**
 * Makes the sections with the applied change and the output, whose list is read once.
 *
 * @param {Place} place
 * @param {(text: string) => void} announce
 */
function artifactSections(place, announce) {
  const change = h('div', { class: 'changes' }, loading('Loading the change'))
  const output = h('div', { class: 'episode-logs' })
  const turns = h('div', null)
  const show = async () => {
    try {
      const { log_files: files } = await logPage(place, '', 0)
      const patch = files.find(({ name }) => name === 'patch.diff')
      const text = patch && await wholeLog(place, { name: patch.name, bytes: patch.bytes, end: '', cut: false })
      if (place.signal.aborted) return
      replace(change, text === undefined ? h('p', { class: 'dim' }, 'Nothing was applied.') : changedFiles(text))
      const trajectory = files.find(({ name }) => name === 'agent/trajectory.json')
      if (trajectory) {
        const { turnsSection } = await import('./turns.js')
        if (place.signal.aborted) return
        replace(turns, turnsSection({ log: { name: trajectory.name, bytes: trajectory.bytes, end: '', cut: false }, recording: null, name: '', isFirst: true, place, announce }))
      }
      replace(output, OUTPUTS.flatMap(([name, label]) => {
        const file = files.find((one) => one.name === name)
        return file ? [outputOf(place, file, label)] : []
      }))
    } catch (error) {
      if (!place.signal.aborted) replace(change, failure(/** @type {Error} */ (error), show))
    }
  }
  void show()
  return [h('section', { class: 'text', 'aria-labelledby': 'applied-change' }, h('h2', { id: 'applied-change' }, 'Applied change'), change), turns, output]
}

/**
 * @param {Place} place
 * @param {Api.ItemLog['log_files'][number]} file
 * @param {string} label
 */
function outputOf(place, file, label) {
  const text = h('div', { class: 'box log-text', tabindex: '0' }, loading('Loading'))
  const read = async () => {
    try {
      const whole = await wholeLog(place, { name: file.name, bytes: file.bytes, end: '', cut: false })
      replace(text, h('pre', null, whole))
    } catch (error) {
      replace(text, failure(/** @type {Error} */ (error), read))
    }
  }
  const details = h('details', { class: 'text' }, h('summary', null, h('h2', null, label), ' ', h('span', { class: 'dim' }, bytes(file.bytes))), text)
  details.addEventListener('toggle', () => void read(), { once: true })
  return details
}
