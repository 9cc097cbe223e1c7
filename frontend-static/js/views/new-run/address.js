/** Orders in the address of the page, so that a prepared order can be linked and reloaded. Keys are never part of it. */

import { format, parse, PLAIN } from './fields.js'
import { setAt, valueAt } from './order.js'

/** Maximum length of the query, in characters. Above it, long texts stay out of the address. */
const QUERY_CHARS_MAX = 2000
const LONG = ['system_prompt', 'notes', 'extra_body', 'stop', 'items']

/**
 * Returns the query of an order.
 *
 * @param {import('./order.js').Order} order
 */
export function queryOf(order) {
  const query = build(order, [])
  return query.toString().length > QUERY_CHARS_MAX ? build(order, LONG) : query
}

/**
 * @param {import('./order.js').Order} order
 * @param {string[]} left fields that are left out
 */
function build(order, left) {
  const query = new URLSearchParams()
  const put = (/** @type {string} */ name, /** @type {string} */ text) => {
    if (text !== '') query.set(name, text)
  }
  put('model', order.model_id ?? '')
  put('benchmarks', (order.selected_benchmarks ?? []).join(','))
  for (const spec of PLAIN) {
    if (!left.includes(spec.name)) put(spec.name, format(spec, valueAt(order, spec.name)))
  }
  put('judge', order.judge?.model_id ?? '')
  put('user_model', String(valueAt(order, 'user_model.model_id') ?? ''))
  for (const [benchmark, name] of Object.entries(order.protocols ?? {})) put(`protocol.${benchmark}`, name)
  for (const [benchmark, options] of Object.entries(order.benchmark_options ?? {})) {
    for (const [name, value] of Object.entries(options)) put(`option.${benchmark}.${name}`, String(value))
  }
  return query
}

/**
 * Reads an order from a query. Values that can't be parsed are left out.
 *
 * @param {URLSearchParams} query
 * @returns {import('./order.js').Order}
 */
export function orderOf(query) {
  /** @type {import('./order.js').Order} */
  const order = {}
  const model = query.get('model')
  if (model) order.model_id = model
  const benchmarks = query.get('benchmarks')
  if (benchmarks) order.selected_benchmarks = benchmarks.split(',').map((name) => name.trim()).filter(Boolean)
  for (const spec of PLAIN) {
    const { value } = parse(spec, query.get(spec.name) ?? '')
    if (value !== undefined) setAt(order, spec.name, value)
  }
  const judge = query.get('judge')
  if (judge) setAt(order, 'judge.model_id', judge)
  const user = query.get('user_model')
  if (user) setAt(order, 'user_model.model_id', user)
  for (const [name, value] of query) {
    const [kind, benchmark, ...rest] = name.split('.')
    if (kind === 'protocol' && benchmark) order.protocols = { ...order.protocols, [benchmark]: value }
    if (kind === 'option' && rest.length > 0) {
      // Names of options may have dots, so they are no paths.
      const options = order.benchmark_options ?? {}
      order.benchmark_options = { ...options, [benchmark]: { ...options[benchmark], [rest.join('.')]: value } }
    }
  }
  return order
}
