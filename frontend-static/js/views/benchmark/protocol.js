/** One protocol of a benchmark: prompt, settings, grading, options and deviations. */

import { h } from '../../core/dom.js'
import { duration, integer } from '../../core/format.js'
import { metricLabel } from '../../core/metrics.js'
import { promptInWords } from '../../core/run-facts.js'
import { rich } from '../new-run/text.js'
import { isPending } from '../benchmarks.js'
import { bullets, digest, facts, outside } from './facts.js'

/** Words of generation settings. @type {[keyof Api.GenerationView, string][]} */
const SETTINGS = [
  ['temperature', 'temperature'], ['top_p', 'top p'], ['top_k', 'top k'], ['max_tokens', 'maximum length'], ['seed', 'sampler seed'], ['stop', 'stop texts'],
  ['reasoning_effort', 'reasoning effort'], ['thinking_budget', 'thinking budget'], ['system_prompt', 'system prompt'], ['extra_body', 'extra fields'],
]

/** @param {Api.ProtocolView} protocol */
export function protocolPanel(protocol) {
  const { judge, sandbox, options = [], deviations = [], sources = [], official_texts = [] } = protocol
  return h('div', { class: 'protocol' },
    facts([
      ['Protocol', protocol.protocol],
      ['Prompt', promptText(protocol.prompt, isPending(protocol))],
      official_texts.length > 0 && ['Official texts', bullets(official_texts.map(officialText))],
      ['Settings', settings(protocol.generation) || 'the provider’s own'],
      ['Samples', `${integer(protocol.samples_per_item)} per item`],
      ['Time limit', `${duration(protocol.item_timeout_seconds)} per answer`],
      protocol.stepwise && ['Steps', 'items have several questions, asked one after the other'],
      ['Parser', protocol.parser],
      ['Metrics', (protocol.metrics ?? []).map((name) => metricLabel([name])).join('; ')],
    ]),
    judge && part('Judge', facts([
      ['Authors use', judge.official_model],
      ['Verdict', judge.verdict],
      ['Prompt', promptText(judge.prompt, isPending(protocol))],
      ['Settings', settings(judge.generation) || 'the provider’s own'],
      ['Requests', `at most ${integer(judge.replies_max)} for a verdict`],
    ])),
    sandbox && part('Sandbox', facts([
      ['Grader', sandbox.grader], ['Verdict', sandbox.verdict], ['Needs', rich(sandbox.needs)],
      ['Sandboxes', `at most ${integer(sandbox.rounds_max)} per sample`],
    ])),
    options.length > 0 && part('Options', h('table', { class: 'options' },
      h('thead', null, h('tr', null, ['Option', 'Default', 'Meaning'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, options.map((option) => h('tr', null,
        h('th', { scope: 'row' }, h('code', null, option.name)), h('td', null, option.default ? h('code', null, option.default) : 'not set'),
        h('td', null, rich(option.description))))))),
    part('Deviations from the authors’ program', bullets(deviations.map(rich)) ?? h('p', null, 'None are known.')),
    sources.length > 0 && part('Sources', bullets(sources.map(({ title, url }) => outside(url, title)))))
}

/**
 * @param {string} title
 * @param {import('../../core/dom.js').Child} content
 */
function part(title, content) {
  return h('section', { class: 'protocol-part' }, h('h3', null, title), content)
}

/**
 * @param {Api.PromptView} prompt
 * @param {boolean} isLoadedLater true if official texts exist and aren't stored yet
 */
function promptText(prompt, isLoadedLater) {
  if (!prompt) return null
  const words = promptInWords(prompt)
  if (!words.digest) return words.text
  if (prompt.source !== 'own') return ['official text ', digest(prompt.digest)]
  if (isLoadedLater) return ['official text, loaded by the first run. If that fails, our own wording with the same contract ', digest(prompt.digest)]
  return [h('span', { class: 'caution' }, 'prompt: own'), ' our wording ', digest(prompt.digest)]
}

/** @param {Api.OfficialTextView} text */
function officialText(text) {
  return [outside(text.url, text.name), `, ${text.part}`, text.stored ? ', stored here' : ', downloaded with the dataset',
    text.sha256 && [', SHA-256 ', digest(text.sha256)]]
}

/** @param {Api.GenerationView} generation */
function settings(generation) {
  return SETTINGS.map(([name, word]) => {
    const value = generation?.[name]
    if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return ''
    const text = typeof value === 'number' ? value.toLocaleString() : typeof value === 'string' ? value : JSON.stringify(value)
    return `${word} ${text}${name === 'max_tokens' ? ' tokens' : ''}`
  }).filter(Boolean).join(', ')
}
