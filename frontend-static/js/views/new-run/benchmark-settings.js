/** Protocol and options of one benchmark of an order. */

import { h, replace } from '../../core/dom.js'
import { framed, select } from './control.js'
import { valueAt } from './order.js'

/** End of the names that stand for all options with the same beginning. */
const FAMILY = '.NAME'

/**
 * Makes the fields; none for a benchmark with one protocol and no options. The options are those of the chosen protocol.
 *
 * @param {Api.BenchmarkView} benchmark
 * @param {import('./state.js').OrderState} state
 * @returns {HTMLElement[]}
 */
export function benchmarkSettings(benchmark, state) {
  const protocols = benchmark.protocols ?? []
  const own = protocols.find((each) => each.is_default) ?? protocols[0]
  const optionsOf = (/** @type {Api.ProtocolView | undefined} */ protocol) => (protocol?.options ?? []).map((option) =>
    (option.name.endsWith(FAMILY) ? familyField : optionField)(benchmark.name, option, state))
  if (protocols.length < 2) return optionsOf(own)
  const chosen = () => protocols.find(({ name }) => name === valueAt(state.order, `protocols.${benchmark.name}`)) ?? own
  const options = h('div', { class: 'form-grid form-wide protocol-options' }, optionsOf(chosen()))
  return [protocolField(benchmark.name, protocols, state, () => {
    dropOthers(benchmark.name, chosen().options ?? [], state)
    replace(options, optionsOf(chosen()))
  }), options]
}

/**
 * Removes values of options that a protocol doesn't have, which the API would refuse.
 *
 * @param {string} benchmark
 * @param {Api.OptionView[]} options of the protocol
 * @param {import('./state.js').OrderState} state
 */
function dropOthers(benchmark, options, state) {
  const path = `benchmark_options.${benchmark}`
  const isKnown = (/** @type {string} */ name) => options.some((option) => (option.name.endsWith(FAMILY) ? name.startsWith(option.name.slice(0, -'NAME'.length)) : option.name === name))
  const all = Object.entries(/** @type {object} */ (valueAt(state.order, path) ?? {}))
  const kept = all.filter(([name]) => isKnown(name))
  if (kept.length < all.length) state.set(path, kept.length > 0 ? Object.fromEntries(kept) : undefined)
}

/**
 * @param {string} benchmark
 * @param {Api.ProtocolView[]} protocols the default one first
 * @param {import('./state.js').OrderState} state
 * @param {() => void} changed called after another protocol was chosen
 */
function protocolField(benchmark, protocols, state, changed) {
  const path = `protocols.${benchmark}`
  const own = protocols.find((each) => each.is_default)?.name ?? protocols[0].name
  const current = String(valueAt(state.order, path) ?? own)
  const hint = h('span', null)
  const explain = (/** @type {string} */ name) => { hint.textContent = protocols.find((each) => each.name === name)?.protocol ?? '' }
  explain(current)
  const labels = Object.fromEntries(protocols.map(({ name }) => [name, name === own ? `${name} (default)` : name]))
  return framed({ path, label: 'Protocol', hint }, ({ id, describedBy }) => select({
    id, name: path, 'aria-describedby': describedBy,
    on: {
      change: (/** @type {Event & {target: HTMLSelectElement}} */ event) => {
        explain(event.target.value)
        state.set(path, event.target.value === own ? undefined : event.target.value)
        changed()
      },
    },
  }, protocols.map(({ name }) => name), current, labels, ''))
}

/**
 * @param {string} benchmark
 * @param {Api.OptionView} option
 * @param {import('./state.js').OrderState} state
 */
function optionField(benchmark, option, state) {
  const path = `benchmark_options.${benchmark}.${option.name}`
  const { values = [] } = option
  if (values.length > 0) {
    return framed({ path, label: option.name, hint: option.description }, ({ id, describedBy }) => select({
      id, name: path, 'aria-describedby': describedBy,
      on: { change: (/** @type {Event & {target: HTMLSelectElement}} */ event) => state.set(path, event.target.value || undefined) },
    }, values.filter((value) => value !== option.default), String(valueAt(state.order, path) ?? ''), {}, option.default ? `${option.default} (default)` : 'not set'))
  }
  return framed({ path, label: option.name, hint: option.description }, ({ id, describedBy }) => h('input', {
    id, type: 'text', class: 'form-control', name: path, placeholder: option.default ?? 'not set', 'aria-describedby': describedBy,
    autocomplete: 'off', spellcheck: 'false', '.value': valueAt(state.order, path) ?? '',
    on: { input: (/** @type {Event & {target: HTMLInputElement}} */ event) => state.set(path, event.target.value.trim() || undefined) },
  }))
}

/**
 * Makes the field of options whose names have the same beginning, such as `agent.NAME`: NAME=VALUE for each of them.
 *
 * @param {string} benchmark
 * @param {Api.OptionView} option
 * @param {import('./state.js').OrderState} state
 */
function familyField(benchmark, option, state) {
  const path = `benchmark_options.${benchmark}`
  const beginning = option.name.slice(0, -'NAME'.length)
  const current = () => /** @type {[string, unknown][]} */ (Object.entries(/** @type {object} */ (valueAt(state.order, path) ?? {})))
  const own = current().filter(([name]) => name.startsWith(beginning))
  const change = (/** @type {string} */ text) => {
    const given = text.split(',').map((pair) => pair.trim()).filter(Boolean).map((pair) => {
      const [name, ...value] = pair.split('=')
      return [beginning + name.trim(), value.join('=').trim()]
    })
    const all = [...current().filter(([name]) => !name.startsWith(beginning)), ...given]
    state.set(path, all.length > 0 ? Object.fromEntries(all) : undefined)
  }
  return framed({ path: `${path}.${option.name}`, label: option.name, hint: `${option.description}: NAME=VALUE, with commas between several` },
    ({ id, describedBy }) => h('input', {
      id, type: 'text', class: 'form-control', name: `${path}.${option.name}`, placeholder: 'not set', 'aria-describedby': describedBy,
      autocomplete: 'off', spellcheck: 'false', '.value': own.map(([name, value]) => `${name.slice(beginning.length)}=${value}`).join(', '),
      on: { input: (/** @type {Event & {target: HTMLInputElement}} */ event) => change(event.target.value) },
    }))
}
