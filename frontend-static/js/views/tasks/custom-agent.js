/** Field for the ZIP archive of a custom agent, which is uploaded at once. */

import { field, h, replace } from '../../core/dom.js'
import { bytes, plural } from '../../core/format.js'
import { announce, problem } from '../../core/states.js'
import { refusalOf } from './refusal.js'
import { sendAgent } from './send.js'

/** @typedef {Error & {refusal?: import('../../core/api.js').Refusal | null}} UploadError */

/**
 * @param {AbortSignal} signal
 * @param {() => void} changed called when another file is chosen
 */
export function customAgentField(signal, changed) {
  const input = h('input', { type: 'file', name: 'agent_files', accept: '.zip,application/zip' })
  const found = h('div', null)
  const element = h('div', { class: 'for-agent', hidden: true },
    field('Its folder as a ZIP archive', input, 'With agent.toml. The programs in it run in the task’s container, without a key and without a model of this server.'), found)
  /** @type {Api.CustomAgent | null} */
  let agent = null
  /** @type {Promise<void> | null} the latest upload */
  let upload = null

  const send = async (/** @type {File} */ file) => {
    try {
      const added = await sendAgent(file, signal)
      if (input.files?.[0] !== file) return
      agent = added
      replace(found, describe(added))
      announce(`The agent ${added.name} is uploaded.`)
    } catch (error) {
      if (signal.aborted || input.files?.[0] !== file) return
      const { message, refusal } = /** @type {UploadError} */ (error)
      replace(found, refusal ? refusalOf(message, refusal) : problem(/** @type {Error} */ (error)))
    }
  }
  input.addEventListener('change', () => {
    const file = input.files?.[0]
    agent = null
    changed()
    replace(found, file && h('p', { class: 'dim' }, 'Uploading…'))
    upload = file ? send(file) : null
  })
  return {
    element,
    /** @param {boolean} isShown */
    show(isShown) {
      element.hidden = !isShown
      input.required = isShown
    },
    /** Returns the agent's options of an order, once its files are uploaded. */
    async options() {
      await upload
      if (!agent) throw new Error('The agent’s archive wasn’t accepted. Choose another one.')
      return { content_hash: agent.id }
    },
  }
}

/** @param {Api.CustomAgent} agent */
function describe({ name, version, files, expanded_bytes: size, id, required_variables: variables }) {
  return [
    h('p', null, h('span', { class: 'good', 'aria-hidden': 'true' }, '✓ '), h('strong', null, name), version !== null && ` ${version}`, h('span', { class: 'dim' },
      ` · ${[plural(files, 'file'), bytes(size), `hash ${id.slice(0, 12)}`].join(' · ')}`)),
    variables.length > 0 && h('p', { class: 'note warn' }, 'It needs ', plural(variables.length, 'variable'), ' of the order (', h('code', null, variables.join(', ')),
      '), which the command and the API can give.'),
  ]
}
