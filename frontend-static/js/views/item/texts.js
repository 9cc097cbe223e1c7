/** Texts of a sample, each in a section with its own heading and copy button. */

import { h } from '../../core/dom.js'
import { duration, integer, none } from '../../core/format.js'
import { announce } from '../../core/states.js'
import { copyText } from '../../components/copy.js'
import { renderAnswer, renderCode, renderJson, renderPlain } from '../../text/answer.js'
import { identityOf, SHORT } from './facts.js'

/** @typedef {import('../../core/source.js').Sample} Sample */
/** @typedef {{end?: string, exit_code?: number | null, elapsed_ms?: number, stdout?: string, stderr?: string}} ProgramOutput of a sandbox */

/**
 * Lists the sections of a sample.
 *
 * @param {Sample} item
 * @param {{question?: string}} [options] `question` is the title of the prompt of a sample that has no answer of a model
 * @returns {(HTMLElement | null)[]}
 */
export function textsOf(item, { question } = {}) {
  if (item.hidden) {
    return [h('p', { class: 'note' }, 'The dataset is gated: prompts and answers are shown to the run\'s owner only. Enter your key with the button “Key” in the header.'), identitySection(item)]
  }
  const steps = item.steps ?? []
  const judge = judgeOf(item)
  const never = item.outcome === null ? 'This sample hasn\'t ended.' : 'No answer was stored: the request failed.'
  return [
    (item.cut ?? []).length > 0 ? cutNote(item) : null,
    ...(steps.length > 0 ? steps.map(stepSection) : [
      section(question ?? 'Prompt', item.prompt, renderPlain, { bounded: true }),
      section('Reasoning', item.reasoning, renderAnswer),
      question ? null : item.response === null && item.prompt === null ? h('p', { class: 'dim' }, never) : section('Response', item.response ?? '', renderAnswer, { always: true }),
    ]),
    (item.extracted ?? '').length > SHORT ? section('Extracted answer', item.extracted, renderPlain) : null,
    (item.expected ?? '').length > SHORT ? section('Expected answer', item.expected, renderPlain) : null,
    section('System prompt', /** @type {import('./facts.js').Metadata | null} */ (item.item_metadata)?.system_prompt, renderPlain),
    section('Executed code', item.test_code, (text) => h('pre', { class: 'code-box', tabindex: '0' }, renderCode(text, 'python'))),
    judge.output, section('Prompt of the judge', item.judge_prompt, renderPlain), judge.reply, judge.rest,
    jsonSection('Details from the grader', item.detail), jsonSection('Metadata of the answer', item.item_metadata), identitySection(item),
  ]
}

/** @param {Sample} item */
function identitySection(item) {
  return h('section', { class: 'text' }, h('h2', null, 'Identification'), identityOf(item))
}

/**
 * Makes a section with a text; none if there is no text.
 *
 * @param {string} title
 * @param {string | null | undefined} text
 * @param {(text: string) => Element} render
 * @param {{always?: boolean, level?: string, bounded?: boolean}} [options] `always` shows an empty text as such; `bounded` shows
 *   the end of a long text, which is what the model answers, and the rest by scrolling or at a click
 */
function section(title, text, render, { always = false, level = 'h2', bounded = false } = {}) {
  if (text === null || text === undefined || (text === '' && !always)) return null
  const box = text === '' ? h('p', { class: 'dim' }, 'Empty.') : h('div', { class: 'box' }, render(text))
  const more = h('button', { type: 'button', class: 'button small', hidden: true, on: { click: () => { box.classList.remove('bounded'); more.hidden = true } } }, 'Show all')
  if (bounded) bound(box, more)
  return h('section', { class: 'text' },
    h('div', { class: 'section-head' }, h(level, null, title),
      h('span', { class: 'actions' }, h('span', { class: 'dim' }, `${integer(text.length)} characters`), more, text !== '' && copyButton(title, text))),
    box)
}

/**
 * Limits the height of a box once it is laid out, and scrolls to its end.
 *
 * @param {HTMLElement} box
 * @param {HTMLElement} more
 */
function bound(box, more) {
  box.classList.add('bounded')
  box.tabIndex = 0
  box.setAttribute('role', 'group')
  box.setAttribute('aria-label', 'Prompt')
  new ResizeObserver((_, observer) => {
    if (box.clientHeight === 0) return
    observer.disconnect()
    box.scrollTop = box.scrollHeight
    more.hidden = box.scrollHeight <= box.clientHeight
  }).observe(box)
}

/**
 * @param {string} title
 * @param {Record<string, unknown> | null} value
 */
function jsonSection(title, value) {
  if (value === null || value === undefined || Object.keys(value).length === 0) return null
  const box = h('div', { class: 'box' })
  const details = h('details', { class: 'text' }, h('summary', null, h('h2', null, title)), box)
  details.addEventListener('toggle', () => box.append(renderJson(value)), { once: true })
  return details
}

/**
 * @param {Api.StepView} step
 * @param {number} i
 */
function stepSection(step, i) {
  return h('section', { class: 'text step-box' },
    h('h2', null, `Step ${i + 1}: ${step.name}`),
    h('p', { class: 'dim' }, `${step.latency_ms === null ? none : duration(step.latency_ms / 1000)}, ${integer(step.input_tokens)} → ${integer(step.output_tokens)} tokens${step.finish_reason ? `, ${step.finish_reason}` : ''}${step.cut ? '; long texts are cut' : ''}`),
    section('Prompt', step.prompt, renderPlain, { level: 'h3' }), section('Reasoning', step.reasoning, renderAnswer, { level: 'h3' }),
    section('Response', step.response ?? '', renderAnswer, { always: true, level: 'h3' }))
}

/**
 * Splits what graded the answer into output of a program, reply of a judge, and the rest.
 *
 * @param {Sample} item
 */
function judgeOf(item) {
  const output = /** @type {ProgramOutput & {reply?: unknown} | null} */ (item.judge_output)
  if (!output || typeof output !== 'object') return { output: null, reply: section('Judge output', output, renderPlain), rest: null }
  if ('reply' in output) {
    const { reply, ...rest } = output
    return { output: null, reply: section('Reply of the judge', typeof reply === 'string' ? reply : JSON.stringify(reply), renderAnswer), rest: jsonSection('Metadata of the judge', rest) }
  }
  const { stdout, stderr, ...rest } = output
  return {
    output: h('div', { class: 'view' }, h('p', null, endText(output)),
      section('Output of the program', stdout, renderPlain, { level: 'h2' }), section('Errors of the program', stderr, renderPlain)),
    reply: null, rest: jsonSection('Result of the sandbox', rest),
  }
}

/** @param {ProgramOutput} output */
function endText(output) {
  const time = output.elapsed_ms === undefined ? '' : ` after ${duration(output.elapsed_ms / 1000)}`
  return `The program ended${time}: ${output.end ?? 'end unknown'}${output.exit_code === null || output.exit_code === undefined ? '' : `, exit code ${output.exit_code}`}.`
}

/** @param {Sample} item */
function cutNote(item) {
  return h('p', { class: 'note warn' }, `The sample is too large for one answer: ${item.cut.join(', ')} are cut here. `,
    item.body_url && h('a', { href: item.body_url, rel: 'noreferrer' }, 'Whole prompt and answer (JSON)'))
}

/**
 * @param {string} title
 * @param {string} text
 */
function copyButton(title, text) {
  const button = h('button', { type: 'button', class: 'button small', 'aria-label': `Copy ${title.toLowerCase()}` }, 'Copy')
  button.addEventListener('click', async () => {
    const done = await copyText(text)
    button.textContent = done ? 'Copied' : 'Not allowed'
    announce(done ? 'Copied.' : 'The browser doesn\'t allow copying here.')
    setTimeout(() => { button.textContent = 'Copy' }, 2000)
  })
  return button
}
