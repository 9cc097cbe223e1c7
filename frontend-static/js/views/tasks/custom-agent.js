/** Choice of a custom agent: one that was uploaded before, or the ZIP archive of another one, which is uploaded at once. */

import { api } from '../../core/api.js'
import { field, h, replace } from '../../core/dom.js'
import { bytes, plural } from '../../core/format.js'
import { announce, problem, withModule } from '../../core/states.js'
import { openRemoveAgent } from './actions.js'
import { refusalOf } from './refusal.js'
import { sendAgent } from './send.js'

/** Number of digits of a content hash that are shown. */
const DIGITS = 12

/** @typedef {Error & {refusal?: import('../../core/api.js').Refusal | null}} UploadError */

/**
 * @param {object} options
 * @param {AbortSignal} options.signal
 * @param {string} [options.chosen] content hash of the agent that is chosen first; the newest one by default
 * @param {(agent: Api.CustomAgent | null) => void} options.changed called when another agent is chosen; null until its archive is uploaded
 */
export function customAgentField({ signal, chosen = '', changed }) {
  const select = h('select', { name: 'agent_id', class: 'form-control' })
  const input = h('input', { type: 'file', name: 'agent_files', accept: '.zip,application/zip' })
  const found = h('div', { class: 'agent-found' })
  const chooser = field('Its files', select)
  const files = field('Its folder as a ZIP archive', input, 'With agent.toml. The programs in it run in the task’s container, without a key and without a model of this server.')
  const element = h('div', { class: 'for-agent', hidden: true }, chooser, files, found)
  /** Uploaded agents, newest first. @type {Api.CustomAgent[]} */
  let agents = []
  /** Content hash of the chosen agent; '' for one that is still to be uploaded. */
  let id = chosen
  /** True once the reader has chosen an agent or a file. */
  let isTouched = chosen !== ''
  let isLoaded = false
  /** @type {Promise<void> | null} the latest upload */
  let upload = null

  const agent = () => agents.find((each) => each.id === id) ?? null
  const show = () => {
    // An agent that this caller doesn't see stays chosen in a schedule that has it.
    const unseen = id !== '' && !agent() ? [h('option', { value: id }, `hash ${id.slice(0, DIGITS)}`)] : []
    replace(select, unseen, agents.map((each) => h('option', { value: each.id }, `${titleOf(each)} · ${each.id.slice(0, DIGITS)}`)), h('option', { value: '' }, 'Upload another one'))
    select.value = id
    chooser.hidden = agents.length + unseen.length === 0
    files.hidden = id !== ''
    input.required = !element.hidden && id === ''
    const shown = agent()
    replace(found, shown && [...describe(shown), actions(shown)])
  }
  const choose = (/** @type {string} */ other) => {
    id = other
    show()
    changed(agent())
  }
  const actions = (/** @type {Api.CustomAgent} */ shown) => {
    const file = `agent-${shown.id.slice(0, DIGITS)}.zip`
    const load = () => withModule(() => import('../run/download.js'), ({ download }) => download(`/api/agents/custom/${shown.id}/archive`, {}, file, signal))
    const removed = () => {
      agents = agents.filter((each) => each.id !== shown.id)
      choose(agents[0]?.id ?? '')
    }
    return h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button small', on: { click: load } }, 'Download the agent'),
      h('button', { type: 'button', class: 'button small', on: { click: () => openRemoveAgent(shown, removed) } }, 'Remove the agent…'))
  }
  const load = async () => {
    isLoaded = true
    try {
      /** @type {Api.CustomAgent[]} */
      const all = await api.get('/api/agents/custom', { signal })
      // An admin sees the agents of all owners, who may have the same files.
      agents = all.filter((each, i) => all.findIndex((other) => other.id === each.id) === i)
    } catch (error) {
      if (!signal.aborted) replace(found, problem(/** @type {Error} */ (error)))
      return
    }
    // Another key may not see what was chosen.
    if (id !== chosen && !agent()) id = ''
    choose(id || isTouched ? id : agents[0]?.id ?? '')
  }
  const send = async (/** @type {File} */ file) => {
    try {
      const added = await sendAgent(file, signal)
      if (input.files?.[0] !== file) return
      agents = [added, ...agents.filter((each) => each.id !== added.id)]
      input.value = ''
      choose(added.id)
      announce(`The agent ${added.name} is uploaded.`)
    } catch (error) {
      if (signal.aborted || input.files?.[0] !== file) return
      const { message, refusal } = /** @type {UploadError} */ (error)
      replace(found, refusal ? refusalOf(message, refusal) : problem(/** @type {Error} */ (error)))
    }
  }
  select.addEventListener('change', () => { isTouched = true; choose(select.value) })
  input.addEventListener('change', () => {
    const file = input.files?.[0]
    isTouched = true
    replace(found, file && h('p', { class: 'dim' }, 'Uploading…'))
    upload = file ? send(file) : null
    changed(null)
  })
  api.addEventListener('key', () => { if (isLoaded) void load() }, { signal })
  return {
    element,
    /** @param {boolean} isShown */
    show(isShown) {
      element.hidden = !isShown
      input.required = isShown && id === ''
      if (isShown && !isLoaded) void load()
    },
    /** Returns the chosen agent, or null if there is none, or it isn’t known yet. */
    agent,
    /** Returns the content hash of the chosen agent, or ''. */
    id: () => id,
    /** Returns the agent's options of an order, once its files are uploaded. */
    async options() {
      await upload
      if (id === '') throw new Error('The agent’s archive wasn’t accepted. Choose another one.')
      return { content_hash: id }
    },
  }
}

/** @param {Api.CustomAgent} agent */
function titleOf({ name, version }) {
  return version === null ? name : `${name} ${version}`
}

/** @param {Api.CustomAgent} agent */
function describe({ name, version, files, expanded_bytes: size, id, required_variables: variables }) {
  return [
    h('p', null, h('span', { class: 'good', 'aria-hidden': 'true' }, '✓ '), h('strong', null, name), version !== null && ` ${version}`, h('span', { class: 'dim' },
      ` · ${[plural(files, 'file'), bytes(size), `hash ${id.slice(0, DIGITS)}`].join(' · ')}`)),
    variables.length > 0 && h('p', { class: 'dim' }, 'It needs ', plural(variables.length, 'variable'), ' of the order: ', h('code', null, variables.join(', ')), '.'),
  ]
}
