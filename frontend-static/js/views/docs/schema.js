/** Schemas of the OpenAPI document as tables of fields. Inner objects open on demand, so that recursive ones end. */

import { h, replace } from '../../core/dom.js'
import { rich } from '../new-run/text.js'

/**
 * A JSON schema, as far as it is shown.
 *
 * @typedef {object} Schema
 * @property {string} [$ref]
 * @property {string | string[]} [type]
 * @property {string} [format]
 * @property {string} [description]
 * @property {Schema} [items]
 * @property {Record<string, Schema>} [properties]
 * @property {Schema | boolean} [additionalProperties]
 * @property {string[]} [required]
 * @property {unknown[]} [enum]
 * @property {Schema[]} [oneOf]
 * @property {Schema[]} [anyOf]
 * @property {Schema[]} [allOf]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {number} [maxLength]
 * @property {number} [maxItems]
 * @property {unknown} [default]
 */

/**
 * Returns the short name of a schema.
 *
 * @param {Schema | undefined} schema
 * @returns {string}
 */
export function nameOf(schema) {
  if (schema?.$ref) return lastPart(schema.$ref)
  if (schema?.type === 'array' && schema.items) return `list of ${nameOf(schema.items)}`
  return typeOf(schema)
}

/** Returns the name in a reference. @param {string} reference */
function lastPart(reference) {
  return reference.split('/').at(-1) ?? ''
}

/**
 * Describes the type of a schema in words.
 *
 * @param {Schema | undefined} schema
 * @returns {string}
 */
export function typeOf(schema) {
  if (!schema) return 'any'
  if (schema.$ref) return nameOf(schema)
  const choices = schema.oneOf ?? schema.anyOf
  if (choices) return choices.map(typeOf).join(' or ')
  if (schema.allOf) return schema.allOf.map(nameOf).join(' and ')
  const types = [schema.type ?? 'any'].flat()
  const words = types.map((type) => (type === 'array' ? `list of ${typeOf(schema.items)}` : type === 'string' && schema.format ? schema.format : type))
  return words.join(' or ') + bounds(schema)
}

/** @param {Schema} schema */
function bounds({ minimum = 0, maximum, maxLength, maxItems, default: own }) {
  const parts = []
  if (minimum > 0 && maximum !== undefined) parts.push(`${minimum} to ${maximum.toLocaleString()}`)
  else if (minimum > 0) parts.push(`from ${minimum}`)
  else if (maximum !== undefined) parts.push(`up to ${maximum.toLocaleString()}`)
  if (maxLength !== undefined) parts.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) parts.push(`at most ${maxItems}`)
  if (own !== undefined && own !== null) parts.push(`default ${JSON.stringify(own)}`)
  return parts.length > 0 ? `, ${parts.join(', ')}` : ''
}

/**
 * Finds the object schema inside a schema: behind references, in lists, beside null.
 *
 * @param {Schema | undefined} schema
 * @param {Record<string, Schema>} schemas
 * @returns {Schema | null} null if there is none with fields
 */
function objectIn(schema, schemas) {
  if (!schema) return null
  if (schema.$ref) return objectIn(schemas[lastPart(schema.$ref)], schemas)
  if (schema.properties || schema.enum) return schema
  if (schema.items) return objectIn(schema.items, schemas)
  if (schema.additionalProperties && typeof schema.additionalProperties === 'object') return objectIn(schema.additionalProperties, schemas)
  if (schema.allOf) return merged(schema.allOf, schemas)
  for (const choice of schema.oneOf ?? schema.anyOf ?? []) {
    const found = objectIn(choice, schemas)
    if (found) return found
  }
  return null
}

/**
 * @param {Schema[]} parts
 * @param {Record<string, Schema>} schemas
 */
function merged(parts, schemas) {
  const found = parts.map((part) => objectIn(part, schemas)).filter((part) => part !== null)
  if (found.length === 0) return null
  return { properties: Object.assign({}, ...found.map((each) => each.properties)), required: found.flatMap((each) => each.required ?? []) }
}

/**
 * Makes the table of a schema's fields.
 *
 * @param {Schema | undefined} schema
 * @param {Record<string, Schema>} schemas
 * @returns {HTMLElement}
 */
export function schemaView(schema, schemas) {
  const found = objectIn(schema, schemas)
  if (!found) return h('p', null, typeOf(schema))
  if (found.enum) return values(found)
  const required = new Set(found.required ?? [])
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Fields' }, h('table', { class: 'schema' },
    h('thead', null, h('tr', null, ['Field', 'Type', 'Meaning'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, Object.entries(found.properties ?? {}).map(([name, field]) => h('tr', null,
      h('th', { scope: 'row' }, h('code', null, name), required.has(name) && h('span', { class: 'required', title: 'always present' }, ' *')),
      h('td', null, inner(field, schemas)),
      h('td', null, rich(String(field.description ?? '').replaceAll('\n', ' '))))))))
}

/**
 * @param {Schema} field
 * @param {Record<string, Schema>} schemas
 */
function inner(field, schemas) {
  if (!objectIn(field, schemas)) return typeOf(field)
  const place = h('div', null)
  return h('details', {
    on: {
      toggle: (/** @type {Event & {target: HTMLDetailsElement}} */ event) => {
        event.stopPropagation()
        if (event.target.open && place.childElementCount === 0) replace(place, schemaView(field, schemas))
      },
    },
  }, h('summary', null, typeOf(field)), place)
}

/** @param {Schema} schema */
function values({ enum: entries = [], description }) {
  return h('div', null, description && h('p', { class: 'schema-text' }, rich(description)),
    h('p', null, entries.map((each, i) => [i > 0 && ', ', h('code', null, String(each))])))
}
