/** Form of a judging: which model grades the stored answers again. */

import { toast } from '../../core/states.js'
import { api } from '../../core/api.js'
import { field, h, replace, uniqueId } from '../../core/dom.js'
import { path, router } from '../../core/router.js'
import { openDialog } from '../../components/dialog.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/**
 * @param {Run} run
 * @param {{needs_judge_key?: boolean}} can
 */
export function openRejudge(run, can) {
  const list = h('datalist', { id: uniqueId('models') })
  const model = h('input', { type: 'text', list: list.id, spellcheck: 'false', autocomplete: 'off', '.value': run.judge?.model ?? '' })
  const number = (/** @type {Record<string, string>} */ props) => h('input', { type: 'number', inputmode: 'decimal', ...props })
  const temperature = number({ min: '0', max: '2', step: 'any' })
  const maxTokens = number({ min: '1', step: '1' })
  const seed = number({ step: '1' })
  const usd = number({ min: '0', step: 'any' })
  const tokens = number({ min: '1', step: '1' })
  const key = h('input', { type: 'password', autocomplete: 'off' })
  model.addEventListener('input', () => void suggest(list, model.value))
  openDialog({
    title: 'Judge again', action: 'Judge again',
    content: [
      h('p', null, 'The stored answers are graded again; the model isn\'t asked. The result is a new run beside this one.'),
      list,
      field('Judge', model, 'PROVIDER/MODEL. Empty: the server\'s own judge.'),
      h('details', null, h('summary', null, 'Settings of the judge'),
        h('div', { class: 'content' }, field('Temperature', temperature, 'Empty: the benchmark\'s own.'), field('Longest reply in tokens', maxTokens), field('Sampler seed', seed))),
      h('details', null, h('summary', null, 'Budget'),
        h('div', { class: 'content' }, field('US dollars', usd), field('Tokens', tokens))),
      field('Key of the judge\'s provider', key, can.needs_judge_key ? 'Needed: the earlier key was deleted when the run ended.' : 'Only if the server has no key of its own. It is deleted when the judging is over.'),
    ],
    run: async () => {
      const order = { model_id: model.value.trim() || null, temperature: value(temperature), max_tokens: value(maxTokens), seed: value(seed) }
      const body = {
        judge: Object.values(order).some((v) => v !== null) ? order : null, budget_usd: value(usd), budget_tokens: value(tokens),
      }
      /** @type {Api.CreatedView} */
      const created = await api.post(`/api/runs/${run.id}/rejudge`, body, { headers: {
        'x-judge-authorization': key.value ? `Bearer ${key.value.trim()}` : null, 'idempotency-key': crypto.randomUUID(),
      } })
      toast('The judging has started.')
      router.go(path('runs', created.id))
    },
  })
}

/** @param {HTMLInputElement} input */
function value(input) {
  return input.value === '' ? null : Number(input.value)
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

/**
 * Offers models that match what was typed so far.
 *
 * @param {HTMLDataListElement} list
 * @param {string} text
 */
async function suggest(list, text) {
  clearTimeout(timer)
  timer = setTimeout(async () => {
    try {
      const { models } = /** @type {Api.ModelsView} */ (await api.get('/api/models', { query: { search: text, limit: 20 } }))
      replace(list, models.map((m) => h('option', { value: m.provider === 'oracle' ? 'oracle' : `${m.provider}/${m.slug}` })))
    } catch { /* suggestions are optional: the name can be typed */ }
  }, 200)
}
