/** One request of the API: what it does, its parameters, its body, its answers, and its command. */

import { h, replace } from '../../core/dom.js'
import { copyBox } from '../../components/copy.js'
import { rich } from '../new-run/text.js'
import { commandOf } from './command.js'
import { nameOf, schemaView, typeOf } from './schema.js'

/** @typedef {import('./schema.js').Schema} Schema */
/** @typedef {{name: string, in: string, required?: boolean, description?: string, schema?: Schema}} Parameter */
/** @typedef {Record<string, {schema?: Schema}>} Content by media type */
/** @typedef {{description?: string, content?: Content}} Response */
/** @typedef {Record<string, string[]>[]} Security each entry is enough, and needs all of its schemes */

/**
 * The parts of an OpenAPI document that are shown.
 *
 * @typedef {object} Document
 * @property {{description?: string}} info
 * @property {Record<string, Record<string, Method>>} paths
 * @property {{schemas: Record<string, Schema>}} components
 * @property {Security} [security]
 */
/**
 * @typedef {object} Method
 * @property {string[]} [tags]
 * @property {string} [summary]
 * @property {string} [description]
 * @property {Parameter[]} [parameters]
 * @property {{content?: Content}} [requestBody]
 * @property {Record<string, Response>} [responses]
 * @property {Security} [security]
 */

/**
 * @typedef {object} Operation
 * @property {string} method
 * @property {string} path
 * @property {string} tag
 * @property {string} summary
 * @property {string} description
 * @property {Parameter[]} parameters
 * @property {Schema | null} body schema of the JSON body; null for none
 * @property {Record<string, Response>} responses
 * @property {Security} security
 */

/** Order of methods of a path. */
const METHODS = ['get', 'post', 'patch', 'put', 'delete']

/**
 * Lists the operations of an OpenAPI document.
 *
 * @param {Document} document
 * @returns {Operation[]}
 */
export function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) => METHODS.filter((method) => methods[method]).map((method) => {
    const each = methods[method]
    return {
      method: method.toUpperCase(), path, tag: each.tags?.[0] ?? 'server', summary: each.summary ?? '', description: each.description ?? '',
      parameters: each.parameters ?? [], body: each.requestBody?.content?.['application/json']?.schema ?? null, responses: each.responses ?? {},
      security: each.security ?? document.security ?? [],
    }
  }))
}

export class OperationView {
  /**
   * @param {Operation} operation
   * @param {Record<string, Schema>} schemas
   * @param {import('./own.js').Own} own
   */
  constructor(operation, schemas, own) {
    this.operation = operation
    this.schemas = schemas
    this.own = own
    this.id = `${operation.method}${operation.path}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').replace(/-$/, '')
    this.text = `${operation.method} ${operation.path} ${operation.summary} ${operation.description}`.toLowerCase()
    this.body = h('div', { class: 'operation-body' })
    this.command = h('div', null)
    this.element = h('details', { class: 'operation', id: this.id },
      h('summary', null, h('span', { class: `method ${operation.method.toLowerCase()}` }, operation.method), ' ',
        h('code', null, operation.path), ' ', h('span', { class: 'operation-summary' }, rich(operation.summary))), this.body)
    this.element.addEventListener('toggle', () => this.#draw())
  }

  /** Opens the details. */
  open() { this.element.open = true }

  /**
   * Shows the operation only if it contains a text.
   *
   * @param {string} text in lower case
   */
  filter(text) {
    this.element.hidden = text !== '' && !this.text.includes(text)
    return !this.element.hidden
  }

  /** Writes the command again after the reader chose another run. */
  refresh() {
    if (this.body.childElementCount > 0) replace(this.command, copyBox(commandOf(this.operation, this.own)))
  }

  #draw() {
    if (!this.element.open || this.body.childElementCount > 0) return
    const { description, parameters, body, responses, security } = this.operation
    replace(this.body,
      description && h('p', null, rich(description.replaceAll('\n', ' '))),
      access(security),
      h('h3', null, 'Command'), this.command,
      parameters.length > 0 && [h('h3', null, 'Parameters'), parameterTable(parameters)],
      body && [h('h3', null, `Body: ${nameOf(body)}`), schemaView(body, this.schemas)],
      h('h3', null, 'Answers'),
      h('dl', { class: 'answers' }, Object.entries(responses).map(([status, response]) => this.#response(status, response))),
      h('p', null, h('a', { href: `#${this.id}` }, 'Link to this request')))
    this.refresh()
  }

  /**
   * @param {string} status
   * @param {Response} response
   */
  #response(status, response) {
    const [type, content] = Object.entries(response.content ?? {})[0] ?? []
    const schema = content?.schema
    return [h('dt', null, status), h('dd', null, response.description && h('p', null, rich(response.description)),
      !schema && type && h('p', { class: 'dim' }, type),
      schema && h('details', { on: { toggle: (/** @type {Event & {target: HTMLDetailsElement}} */ event) => this.#schema(event.target, schema) } },
        h('summary', null, nameOf(schema)), h('div', null)))]
  }

  /**
   * @param {HTMLDetailsElement} details
   * @param {Schema} schema
   */
  #schema(details, schema) {
    const place = details.lastElementChild
    if (details.open && place && place.childElementCount === 0) replace(place, schemaView(schema, this.schemas))
  }
}

/** @param {Security} security */
function access(security) {
  const names = new Set(security.flatMap((each) => Object.keys(each)))
  const isOpen = security.length === 0 || security.some((each) => Object.keys(each).length === 0)
  if (names.size === 0) return null
  const words = [names.has('key') && 'a key or access token', names.has('admin') && 'the admin secret'].filter(Boolean).join(' or ')
  return h('p', { class: 'dim' }, isOpen ? `Works without a key on your own machine; elsewhere, some of it needs ${words}.` : `Needs ${words}.`)
}

/** @param {Parameter[]} parameters */
function parameterTable(parameters) {
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Parameters' }, h('table', { class: 'schema' },
    h('thead', null, h('tr', null, ['Name', 'In', 'Type', 'Meaning'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, parameters.map((each) => h('tr', null,
      h('th', { scope: 'row' }, h('code', null, each.name), each.required && h('span', { class: 'required', title: 'required' }, ' *')),
      h('td', null, each.in), h('td', null, typeOf(each.schema)), h('td', null, rich(each.description ?? '')))))))
}
