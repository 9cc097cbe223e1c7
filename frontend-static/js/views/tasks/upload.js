/** Upload of tasks: a field for archives, dropping them anywhere on the page, and one card for each with what the server says. */

import { h, field, replace, setText, withCode } from '../../core/dom.js'
import { bytes, plural } from '../../core/format.js'
import { path } from '../../core/router.js'
import { CUSTOM } from '../../core/agents.js'
import { announce, problem } from '../../core/states.js'
import { formatName } from './facts.js'
import { refusalOf } from './refusal.js'
import { checkTask, isTooLarge, sendTask } from './send.js'

/** Archives that are checked at once. */
const AT_ONCE = 2
/** Characters of an instruction that a card shows. */
const INSTRUCTION_MAX = 400

/** @typedef {{file: File, element: HTMLElement, add: (() => Promise<void>) | null, run: () => Promise<void>}} Card */

/**
 * @param {{signal: AbortSignal, agents: Api.Agent[], added: () => void}} options `added` is called after a task was uploaded
 */
export function uploadPanel({ signal, agents, added }) {
  const input = h('input', { type: 'file', id: 'task-files', accept: '.zip,application/zip', multiple: true, class: 'visually-hidden' })
  const drop = h('div', { class: 'drop' }, input, h('label', { for: 'task-files', class: 'button primary' }, 'Upload tasks'),
    h('span', null, 'or drop ZIP archives here: folders in Harbor’s format or that of Terminal-Bench 1'))
  const cards = h('ul', { class: 'upload-cards', 'aria-label': 'Archives' })
  const all = h('button', { type: 'button', class: 'button', hidden: true })
  /** @type {Card[]} */
  let list = []
  /** @type {Card[]} */
  const waiting = []
  let busy = 0

  const refresh = () => {
    const ready = list.filter(({ add }) => add)
    all.hidden = ready.length < 2
    setText(all, `Add all ${ready.length} tasks`)
  }
  const next = () => {
    const card = busy < AT_ONCE ? waiting.shift() : undefined
    if (!card) return
    busy += 1
    card.run().finally(() => { busy -= 1; refresh(); next() })
  }
  const take = (/** @type {FileList | null | undefined} */ files) => {
    for (const file of files ?? []) {
      const card = cardOf(file, agents, signal, { added: () => { refresh(); added() }, removed: () => { list = list.filter((other) => other !== card); refresh() } })
      list.push(card)
      waiting.push(card)
      cards.append(card.element)
      next()
    }
  }
  input.addEventListener('change', () => { take(input.files); input.value = '' })
  input.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); input.click() } })
  all.addEventListener('click', async () => { for (const card of list) await card.add?.() })
  listenForDrops(drop, take, signal)
  return h('section', { class: 'task-upload', 'aria-label': 'Upload' }, drop, cards, all)
}

/**
 * Takes files that are dropped anywhere on the page.
 *
 * @param {HTMLElement} element shows that files are above the page
 * @param {(files: FileList | null | undefined) => void} take
 * @param {AbortSignal} signal
 */
function listenForDrops(element, take, signal) {
  let depth = 0
  const show = (/** @type {number} */ change) => {
    depth = Math.max(0, depth + change)
    element.classList.toggle('is-over', depth > 0)
  }
  const listen = (/** @type {'dragenter' | 'dragover' | 'dragleave' | 'drop'} */ name, /** @type {(event: DragEvent) => void} */ act) => {
    document.addEventListener(name, (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return
      event.preventDefault()
      act(event)
    }, { signal })
  }
  listen('dragenter', () => show(1))
  listen('dragover', () => {})
  listen('dragleave', () => show(-1))
  listen('drop', (event) => { show(-depth); take(event.dataTransfer?.files) })
}

/**
 * Makes the card of an archive: it is checked, described, and added.
 *
 * @param {File} file
 * @param {Api.Agent[]} agents
 * @param {AbortSignal} signal
 * @param {{added: () => void, removed: () => void}} told
 * @returns {Card}
 */
function cardOf(file, agents, signal, { added, removed }) {
  const body = h('div', { class: 'upload-body' })
  const close = h('button', { type: 'button', class: 'plain icon', 'aria-label': `Remove ${file.name} from the list` }, '×')
  const element = h('li', { class: 'upload-card' },
    h('div', { class: 'upload-head' }, h('strong', { class: 'file-name' }, file.name), h('span', { class: 'dim' }, bytes(file.size)), close), body)
  close.addEventListener('click', () => { element.remove(); removed() })
  /** @type {Card} */
  const card = {
    file, element, add: null,
    async run() {
      replace(body, h('p', { class: 'dim' }, 'Checking…'))
      try {
        const checked = await checkTask(file, signal)
        announce(`${file.name} is admitted.`)
        describe(checked)
      } catch (error) {
        if (signal.aborted) return
        if (isTooLarge(error)) describe(null)
        else refuse(/** @type {Error} */ (error))
      }
    },
  }
  const refuse = (/** @type {Error & {refusal?: import('../../core/api.js').Refusal | null, code?: string | null}} */ error) => {
    card.add = null
    element.classList.add('refused')
    const { refusal } = error
    if (!refusal) {
      replace(body, problem(error), h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button small', on: { click: () => { element.classList.remove('refused'); void card.run() } } }, 'Try again')))
      return
    }
    replace(body, refusalOf(error.message, refusal))
  }
  const describe = (/** @type {Api.CheckedTask | null} */ checked) => {
    const name = h('input', { name: 'name', required: true, maxlength: '255', '.value': checked?.name ?? file.name.replace(/\.zip$/i, '') })
    const agent = h('select', { name: 'agent' }, agents.filter(({ id }) => id !== CUSTOM).map(({ id, name: text }) => h('option', { value: id }, text)))
    const count = h('input', { name: 'num_runs', type: 'number', min: '1', max: '100', required: true, inputmode: 'numeric', '.value': '10' })
    const errors = h('div', null)
    const submit = h('button', { type: 'submit', class: 'button primary' }, 'Add task')
    const form = h('form', { class: 'upload-form' }, h('div', { class: 'grow' }, field('Name', name)), field('Agent', agent), field('Episodes', count), submit)
    card.add = async () => {
      if (!form.reportValidity()) return
      submit.disabled = true
      setText(submit, 'Adding…')
      try {
        const task = await sendTask(file, { name: name.value.trim(), agent: agent.value, model: '', num_runs: Number(count.value) }, signal)
        card.add = null
        element.classList.add('added')
        replace(body, h('p', null, h('span', { class: 'good', 'aria-hidden': 'true' }, '✓ '), 'Added as ', h('a', { href: path('tasks', task.id) }, task.name), '.',
          task.same_files_as && [' The same files were there already, as ', h('a', { href: path('tasks', task.same_files_as) }, `task ${task.same_files_as}`), '; their archive is used again.']),
        warningsOf(task.warnings))
        announce(`${task.name} is added.`)
        added()
      } catch (error) {
        if (signal.aborted) return
        if (/** @type {{refusal?: object | null}} */ (error).refusal) refuse(/** @type {Error} */ (error))
        else replace(errors, problem(/** @type {Error} */ (error)))
      } finally {
        submit.disabled = false
        setText(submit, 'Add task')
      }
    }
    form.addEventListener('submit', (event) => { event.preventDefault(); void card.add?.() })
    replace(body, checked ? factsOf(checked) : h('p', { class: 'note' }, 'Too large to be checked first. The server checks it when it is added.'), errors, form)
  }
  return card
}

/** @param {Api.CheckedTask} checked */
function factsOf(checked) {
  const text = checked.instruction
  return [
    h('p', null, h('span', { class: 'good', 'aria-hidden': 'true' }, '✓ '), 'Admitted. ', h('span', { class: 'dim' },
      [formatName(checked.format), plural(checked.files, 'file'), bytes(checked.expanded_bytes), checked.steps > 1 && plural(checked.steps, 'step'),
        `hash ${checked.content_hash.slice(0, 12)}`].filter(Boolean).join(' · '))),
    warningsOf(checked.warnings),
    !checked.has_solution && h('p', { class: 'note warn' }, 'The task has no solution, so the agent oracle can’t solve it.'),
    h('details', null, h('summary', null, 'Instruction'), h('p', { class: 'instruction' }, text.length > INSTRUCTION_MAX ? `${text.slice(0, INSTRUCTION_MAX)}…` : text)),
  ]
}

/**
 * Lists keys of a task's files that have no effect.
 *
 * @param {string[] | undefined} warnings older servers send none
 */
function warningsOf(warnings) {
  return (warnings ?? []).map((text) => h('p', { class: 'note warn' }, withCode(text)))
}
