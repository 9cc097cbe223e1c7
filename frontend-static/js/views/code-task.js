/** One programming task: instructions and files, as a model gets them, and the proof that it was admitted. */

import { api } from '../core/api.js'
import { h, replace, useStyles } from '../core/dom.js'
import { bytes, duration, integer, plural } from '../core/format.js'
import { path } from '../core/router.js'
import { copyBox } from '../components/copy.js'
import { quote } from './new-run/commands.js'
import { renderAnswer, renderCode } from '../text/answer.js'
import { facts } from './benchmark/facts.js'
import { words, wrongSolutions } from './code-tasks/list.js'

/** Names of languages for highlighting, by the ends of files' names. @type {Record<string, string>} */
const LANGUAGES = {
  py: 'python', js: 'javascript', mjs: 'javascript', cjs: 'javascript', go: 'go', rs: 'rust', cpp: 'cpp', cc: 'cpp', h: 'cpp', hpp: 'cpp', json: 'json', toml: 'toml', sh: 'shell', css: 'css', html: 'html',
}

/** @param {import('../app.js').Context} context */
export async function mount({ root, params, signal, title }) {
  const base = `/api/benchmarks/${encodeURIComponent(params.benchmark)}/tasks`
  const [task] = await Promise.all([
    /** @type {Promise<Api.CodeTaskDetailsView>} */ (api.get(`${base}/${encodeURIComponent(params.task)}`, { signal })), useStyles('views/code-tasks.css'),
  ])
  if (signal.aborted) return
  const { task_id: id, proof } = task
  const { benchmark } = params
  title(id)
  replace(root,
    h('div', { class: 'view-head' },
      h('nav', { class: 'crumbs', 'aria-label': 'Place' }, h('a', { href: '/benchmarks' }, 'Benchmarks'), ' › ', h('a', { href: path('benchmarks', benchmark) }, benchmark), ' › ',
        h('a', { href: path('benchmarks', benchmark, 'tasks') }, 'Tasks')),
      h('h1', null, id),
      h('div', { class: 'actions' }, h('a', { class: 'button primary', href: `/new?${new URLSearchParams({ benchmarks: benchmark, items: id })}` }, 'New run')),
      task.tags.length > 0 && h('p', { class: 'sub tags' }, task.tags.map((tag) => h('span', { class: 'tag' }, tag)))),
    h('section', { 'aria-label': 'About the task' }, facts([
      ['Language', task.language_name], ['Type', words(task.type)], ['Difficulty', words(task.difficulty)],
      ['Tests', [task.tests === null ? 'not recorded' : plural(task.tests, 'recorded test'), task.tests_are_outside ? ', in a process of their own' : ', in the answer’s own process']],
      ['Project', `${plural(task.files, 'file')}, ${plural(task.lines, 'line')}, ${bytes(task.bytes)}`],
      task.build.length > 0 && ['Build', task.build.map((command) => h('code', { class: 'build-command' }, command.join(' ')))],
      ['Time limit', `${duration(task.timeout_seconds)} for build and tests together`],
      ['Digest', h('code', { class: 'whole-digest' }, task.digest)],
    ])),
    h('section', { 'aria-labelledby': 'proof' },
      h('div', { class: 'section-head' }, h('h2', { id: 'proof' }, 'Admission proof')),
      proof ? [
        h('p', null, `The untouched project fails. The reference passed all tests ${integer(proof.repeats)} ${proof.repeats === 1 ? 'time' : 'times in a row'}. Each of ${plural(proof.wrong.length, 'wrong solution')} fails for its reason:`),
        wrongSolutions(proof, { hasTests: true }),
      ] : h('p', null, 'This task has no proof that fits its files.')),
    h('section', { 'aria-labelledby': 'instructions' },
      h('div', { class: 'section-head' }, h('h2', { id: 'instructions' }, 'Instructions')), h('div', { class: 'box task-instructions' }, renderAnswer(task.instructions, { firstChars: 30_000 }))),
    h('section', { 'aria-labelledby': 'files' },
      h('div', { class: 'section-head' }, h('h2', { id: 'files' }, 'Files'), h('span', { class: 'dim' }, 'What the model gets. Tests and reference aren’t part of it.')),
      h('div', { class: 'project-files' }, task.project.map(fileDetails))),
    h('section', { 'aria-labelledby': 'command' },
      h('div', { class: 'section-head' }, h('h2', { id: 'command' }, 'The same as a command')), copyBox(`bench benchmarks ${quote(benchmark)} --task ${quote(id)}`)))
}

/** @param {Api.ProjectFileView} file */
function fileDetails({ path: name, bytes: size, text }) {
  const summary = h('summary', null, h('code', null, name), ' ', h('span', { class: 'dim' }, bytes(size)))
  if (text === null) return h('p', { class: 'project-file' }, h('code', null, name), ' ', h('span', { class: 'dim' }, `${bytes(size)}, binary or too large to show`))
  const details = h('details', null, summary)
  details.addEventListener('toggle', () => details.append(h('pre', { class: 'code-box', tabindex: '0' },
    renderCode(text, LANGUAGES[name.split('.').pop() ?? ''] ?? ''))), { once: true })
  return details
}
