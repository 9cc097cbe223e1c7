/**
 * Writes TypeScript declarations of the API's schemas to target/page/api.d.ts, from the description that `bench serve` sends.
 *
 * Every schema becomes a type in the global namespace `Api`, so that JSDoc names it without an import: `Api.RunView`. Fields of
 * responses that may be null are always present; other fields are optional unless they are required. Descriptions become comments.
 */

import fs from 'node:fs'
import path from 'node:path'
import { Bench, makeFolder, ROOT } from './support/bench.js'

/**
 * A schema, as far as a type is made from it.
 *
 * @typedef {object} Schema
 * @property {string} [$ref]
 * @property {string | string[]} [type]
 * @property {string} [description]
 * @property {unknown[]} [enum]
 * @property {Schema[]} [oneOf]
 * @property {Schema[]} [anyOf]
 * @property {Schema[]} [allOf]
 * @property {Schema} [items]
 * @property {Schema[]} [prefixItems]
 * @property {Record<string, Schema>} [properties]
 * @property {string[]} [required]
 * @property {Schema | boolean} [additionalProperties]
 */

const bench = await new Bench(makeFolder()).start()
const { components, info, paths } = await bench.api('GET', '/openapi.json')
await bench.stop()
fs.rmSync(bench.folder, { recursive: true })

const target = path.join(ROOT, 'target/page/api.d.ts')
/** Names of schemas that requests contain. */
const requested = new Set()
for (const methods of Object.values(paths)) for (const { requestBody } of Object.values(methods)) collect(requestBody)
const declarations = Object.entries(components.schemas)
  .map(([name, schema]) => {
    if (!requested.has(name)) requireAll(schema)
    return `${comment(schema.description, '  ')}  type ${identifier(name)} = ${typeOf(schema, '  ')}\n`
  })
fs.mkdirSync(path.dirname(target), { recursive: true })
fs.writeFileSync(target, `// Generated from the OpenAPI document of ${info.title} ${info.version} by tests/page/types.js.\n\ndeclare namespace Api {\n${declarations.join('\n')}}\n`)

/**
 * Adds the names of all schemas that a value refers to.
 *
 * @param {unknown} value
 */
function collect(value) {
  if (typeof value !== 'object' || value === null) return
  const name = /** @type {Schema} */ (value).$ref?.split('/').at(-1)
  if (name && !requested.has(name)) {
    requested.add(name)
    collect(components.schemas[name])
  }
  Object.values(value).forEach(collect)
}

/**
 * Marks the fields of a response's schema that may be null as present: the API sends null instead of leaving them out.
 *
 * @param {unknown} value a schema or a part of it
 */
function requireAll(value) {
  if (typeof value !== 'object' || value === null) return
  const schema = /** @type {Schema} */ (value)
  if (schema.properties) {
    const nullable = Object.entries(schema.properties).filter(([, field]) => mayBeNull(field)).map(([name]) => name)
    schema.required = [...new Set([...schema.required ?? [], ...nullable])]
  }
  Object.values(schema).forEach(requireAll)
}

/** @param {Schema} schema @returns {boolean} */
function mayBeNull({ type, oneOf }) {
  return type === 'null' || (Array.isArray(type) && type.includes('null')) || Boolean(oneOf?.some(mayBeNull))
}

/**
 * Returns the type of a schema.
 *
 * @param {Schema | boolean | undefined} schema
 * @param {string} indent of the line on which the type begins
 * @returns {string}
 */
function typeOf(schema, indent) {
  if (typeof schema !== 'object') return 'unknown'
  if (schema.$ref) return identifier(schema.$ref.split('/').at(-1) ?? '')
  const choices = schema.oneOf ?? schema.anyOf
  if (choices) return union(choices.map((choice) => typeOf(choice, indent)))
  if (schema.allOf) return schema.allOf.map((part) => group(typeOf(part, indent))).join(' & ')
  if (schema.enum) return union(schema.enum.map((value) => JSON.stringify(value)))
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type }, indent)))
  switch (schema.type) {
    case 'string': return 'string'
    case 'integer': case 'number': return 'number'
    case 'boolean': return 'boolean'
    case 'null': return 'null'
    case 'array': return schema.prefixItems ? tuple(schema, indent) : `${group(typeOf(schema.items, indent))}[]`
    case 'object': return objectType(schema, indent)
    default: return 'unknown'
  }
}

/**
 * @param {Schema} schema
 * @param {string} indent
 */
function objectType({ properties = {}, required = [], additionalProperties }, indent) {
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(([name, schema]) =>
    `${comment(descriptionOf(schema), inner)}${inner}${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner)}\n`)
  if (additionalProperties) {
    const value = typeOf(additionalProperties, indent)
    if (fields.length === 0) return `Record<string, ${value}>`
    fields.push(`${inner}[name: string]: unknown\n`)
  }
  return fields.length === 0 ? 'Record<string, unknown>' : `{\n${fields.join('')}${indent}}`
}

/**
 * @param {Schema} schema
 * @param {string} indent
 */
function tuple(schema, indent) {
  return `[${(schema.prefixItems ?? []).map((item) => typeOf(item, indent)).join(', ')}]`
}

/** @param {Schema} schema */
function descriptionOf(schema) {
  return schema.description ?? schema.oneOf?.find((choice) => choice.description)?.description
}

/** @param {string[]} types */
function union(types) {
  const distinct = [...new Set(types)]
  return distinct.includes('unknown') ? 'unknown' : distinct.join(' | ')
}

/** @param {string} type */
function group(type) {
  return /[|&]/.test(type) && !type.startsWith('{') ? `(${type})` : type
}

/** @param {string} name */
function identifier(name) {
  return name.replace(/\W/g, '_')
}

/**
 * @param {string | undefined} text
 * @param {string} indent
 */
function comment(text, indent) {
  return text ? `${indent}/** ${text.replaceAll('*/', '*\\/').replace(/\n+/g, `\n${indent} * `)} */\n` : ''
}
