/** Field for a model: a list that the server searches, and free text for models that it doesn't list. */

import { api } from '../../core/api.js'
import { h, replace, setText } from '../../core/dom.js'
import { integer, plural, usd } from '../../core/format.js'
import { framed } from './control.js'

/** Models of a page of the list. */
const MODELS_MAX = 50
/** Milliseconds without typing before the server is asked. */
const PAUSE = 200

/** @typedef {Api.ModelView} Model */

/** Models as the server listed them last, by name. @type {Map<string, Model>} */
const listed = new Map()

/**
 * Loads models whose name, slug or provider contains a text, those with most instances first.
 *
 * @param {string} search
 * @param {AbortSignal} signal
 * @param {number} [limit]
 * @returns {Promise<{models: Model[], total: number}>}
 */
export async function findModels(search, signal, limit = MODELS_MAX) {
  /** @type {Api.ModelsView} */
  const found = await api.get('/api/models', { query: { search, limit }, signal })
  // Compatible servers give a model's slug, without its provider.
  const models = (found.models ?? []).map((model) => ({ ...model, model: model.model ?? model.slug }))
  for (const model of models) listed.set(model.model, model)
  return { models, total: found.total ?? models.length }
}

/**
 * Describes a model's display name, if it has one of its own, provider, instances and price.
 *
 * @param {Model} model
 */
export function factsOf(model) {
  const { input_per_million_usd: input, output_per_million_usd: output } = model
  const facts = [model.name === model.slug ? '' : model.name, model.provider].filter(Boolean)
  if (model.instance_count > 0) facts.push(plural(model.instance_count, 'instance'))
  if (model.provider === 'oracle') facts.push('free: it answers from the dataset')
  else facts.push(input == null ? 'price not listed' : `${usd(input)} in, ${usd(output)} out per million tokens`)
  return facts.join(' · ')
}

/**
 * Makes the field. The listbox opens with the field's focus; arrow keys move in it, Enter chooses, Escape closes it.
 *
 * @param {object} options
 * @param {string} options.path
 * @param {string} options.label
 * @param {string} options.value
 * @param {string} [options.hint]
 * @param {string} [options.placeholder]
 * @param {(model: Model) => boolean} [options.isOffered] leaves models out of the list; by default all are in it
 * @param {AbortSignal} options.signal
 * @param {(model: string | undefined) => void} options.changed
 * @returns {HTMLElement}
 */
export function modelPicker({ path, label, value, hint, placeholder, isOffered = () => true, signal, changed }) {
  /** @type {Model[]} */
  let shown = []
  let active = -1
  let committed = value
  /** @type {AbortController | null} */
  let request = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const facts = h('p', { class: 'form-facts' })
  /** @type {HTMLInputElement} */
  let input
  /** @type {HTMLElement} */
  let list
  const count = h('p', { class: 'model-count', 'aria-live': 'polite' })
  const popup = h('div', { class: 'model-popup', hidden: true })

  const open = (/** @type {boolean} */ isOpen) => {
    popup.hidden = !isOpen
    input.setAttribute('aria-expanded', String(isOpen))
    if (!isOpen) activate(-1)
  }
  const activate = (/** @type {number} */ index) => {
    active = index
    for (const [i, option] of [...list.children].entries()) option.setAttribute('aria-selected', String(i === index))
    const option = list.children[index]
    if (option) {
      input.setAttribute('aria-activedescendant', option.id)
      option.scrollIntoView({ block: 'nearest' })
    } else input.removeAttribute('aria-activedescendant')
  }
  const choose = (/** @type {Model} */ model) => {
    input.value = model.model
    setText(facts, factsOf(model))
    open(false)
    committed = model.model
    changed(model.model)
  }
  const search = async (/** @type {string} */ text) => {
    request?.abort()
    const controller = request = new AbortController()
    signal.addEventListener('abort', () => controller.abort(), { once: true })
    try {
      const found = await findModels(text, controller.signal)
      const models = found.models.filter(isOffered)
      const total = found.total - (found.models.length - models.length)
      shown = models
      replace(list, models.map((model, i) => h('li', {
        role: 'option', id: `${input.id}-${i}`, 'aria-selected': 'false',
        on: { pointerdown: (/** @type {Event} */ event) => { event.preventDefault(); choose(model) } },
      }, h('span', { class: 'model-name' }, model.model), h('span', { class: 'model-facts' }, factsOf(model)))))
      setText(count, total === 0 ? `${text ? 'No listed model contains this.' : 'No models are listed.'} The name is used as it is, as PROVIDER/NAME.`
        : models.length < total ? `${models.length} of ${integer(total)} models. Type to narrow the list.` : plural(total, 'model'))
      activate(-1)
    } catch (error) {
      if (!controller.signal.aborted) setText(count, `The models can’t be listed now: ${/** @type {Error} */ (error).message}`)
    }
  }
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      if (popup.hidden) { open(true); void search('') }
      else if (shown.length > 0) activate(active < 0 && step < 0 ? shown.length - 1 : (active + step + shown.length) % shown.length)
    } else if (event.key === 'Enter' && !popup.hidden) {
      event.preventDefault()
      if (active >= 0) choose(shown[active])
      else commit()
    } else if (event.key === 'Escape' && !popup.hidden) {
      event.preventDefault()
      open(false)
    }
  }
  const commit = () => {
    open(false)
    const name = input.value.trim()
    if (name === committed) return
    committed = name
    changed(name || undefined)
    if (name) void describe(name)
  }
  const typed = () => {
    clearTimeout(timer)
    open(true)
    timer = setTimeout(() => search(input.value.trim()), PAUSE)
    setText(facts, '')
  }
  const element = framed({ path, label, hint, wide: true }, ({ id, describedBy }) => {
    list = h('ul', { role: 'listbox', id: `${id}-list`, 'aria-label': label })
    replace(popup, list, count)
    input = h('input', {
      id, type: 'text', class: 'form-control', role: 'combobox', autocomplete: 'off', spellcheck: 'false', name: path, '.value': value,
      placeholder, 'aria-expanded': 'false', 'aria-controls': `${id}-list`, 'aria-autocomplete': 'list', 'aria-describedby': describedBy,
      on: {
        input: typed, keydown: keys, blur: commit,
        focus: () => input.select(),
        click: () => { if (popup.hidden) { open(true); void search('') } },
      },
    })
    return h('div', { class: 'model-picker' }, input, popup, facts)
  })
  signal.addEventListener('abort', () => clearTimeout(timer))
  if (value) void describe(value)

  async function describe(/** @type {string} */ name) {
    try {
      if (!listed.has(name)) await findModels(name.slice(name.indexOf('/') + 1), signal, 200)
      const model = listed.get(name)
      if (input.value === name) setText(facts, model ? factsOf(model) : 'Not listed by this server; ordered under this name.')
    } catch { /* the facts are an addition: the field works without them */ }
  }
  return element
}
