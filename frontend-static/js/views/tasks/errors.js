/** Errors of a task's runs, each once. */

import { h } from '../../core/dom.js'
import { plural } from '../../core/format.js'
import { causeOf, messageParts } from '../../core/messages.js'
import { outcomesInWords } from '../../core/outcomes.js'

/** @typedef {{message: string, code: string | null, episodes: number, runs: string[]}} TaskError `episodes` is 0 for an error of runs as a whole; `runs` are ids */

/**
 * Lists the causes of episodes without a grade, and the errors that several runs ended with, most frequent first.
 *
 * @param {Api.RunView[]} runs
 * @returns {TaskError[]}
 */
export function errorsOfRuns(runs) {
  /** @type {Map<string, TaskError>} */
  const found = new Map()
  const add = (/** @type {TaskError} */ error) => {
    const key = `${error.code} ${error.episodes > 0} ${causeOf(error.message)}`
    const same = found.get(key)
    if (!same) { found.set(key, error); return }
    same.episodes += error.episodes
    same.runs = [...new Set([...same.runs, ...error.runs])]
  }
  for (const run of runs) {
    for (const { message, code, count } of run.benchmarks.flatMap((b) => b.error_causes ?? [])) add({ message, code, episodes: count, runs: [run.id] })
    if (run.error_message) add({ message: run.error_message, code: run.error_code, episodes: 0, runs: [run.id] })
  }
  return [...found.values()].filter((error) => error.episodes > 0 || error.runs.length > 1).sort((a, b) => b.episodes - a.episodes || b.runs.length - a.runs.length)
}

/** @param {TaskError[]} errors */
export function errorList(errors) {
  return errors.length > 0 && h('ul', { class: 'task-errors', 'aria-label': 'Errors' }, errors.map(({ message, code, episodes, runs }) => {
    const [text, response] = messageParts(message, outcomesInWords)
    const count = episodes > 0 ? `${plural(episodes, 'episode')}${runs.length > 1 ? ` of ${plural(runs.length, 'run')}` : ''}` : plural(runs.length, 'run')
    return h('li', null, h('strong', null, `${count}: `), text, code && h('span', { class: 'dim' }, ' (', h('code', null, code), ')'), response)
  }))
}

/**
 * True if an error of a run is in the list.
 *
 * @param {TaskError[]} errors
 * @param {Api.RunView} run
 */
export function isListed(errors, { error_message: message }) {
  return message !== null && errors.some((error) => causeOf(error.message) === causeOf(message))
}
