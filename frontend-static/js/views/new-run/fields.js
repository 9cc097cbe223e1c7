/**
 * Descriptions of the plain fields of an order. A form draws a control for each; commands and addresses use the same list.
 *
 * @typedef {object} FieldSpec
 * @property {string} name path in the order
 * @property {string} label
 * @property {'integer'|'number'|'text'|'lines'|'words'|'long'|'json'|'choice'|'choices'|'switch'} kind
 *   `lines` is a list with one entry per line, `words` a list separated by commas
 * @property {string} flag option of `bench run`
 * @property {string | HTMLElement} [hint]
 * @property {string} [placeholder]
 * @property {number} [min]
 * @property {boolean} [isAbove] true if the value must be above `min`
 * @property {number} [max]
 * @property {number} [step]
 * @property {string[]} [values] accepted values of a choice
 * @property {string} [initial] value of a choice that isn't made; without one, the choice has an entry for none
 */
/** @typedef {string | number | boolean | string[] | Record<string, unknown>} FieldValue */

/** @type {FieldSpec[]} */
export const GENERATION = [
  { name: 'temperature', label: 'Temperature', kind: 'number', flag: '--temperature', min: 0, max: 2, step: 0.1, hint: '0 to 2' },
  { name: 'top_p', label: 'Top p', kind: 'number', flag: '--top-p', min: 0, isAbove: true, max: 1, step: 0.05,
    hint: 'Nucleus sampling, above 0 to 1' },
  { name: 'top_k', label: 'Top k', kind: 'integer', flag: '--top-k', min: 1, max: 1_000_000,
    hint: 'Number of the most probable tokens to sample from' },
  { name: 'max_tokens', label: 'Maximum answer length', kind: 'integer', flag: '--max-tokens', min: 1, hint: 'Tokens, including reasoning' },
  { name: 'sampler_seed', label: 'Sampler seed', kind: 'integer', flag: '--sampler-seed',
    hint: 'Seed of the provider’s sampler; the item seed is another one' },
  { name: 'reasoning_effort', label: 'Reasoning effort', kind: 'choice', flag: '--reasoning-effort',
    values: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'], hint: 'Not every model takes every effort' },
  { name: 'thinking_budget', label: 'Thinking budget', kind: 'integer', flag: '--thinking-budget', min: 1,
    hint: 'Tokens of reasoning; excludes an effort' },
  { name: 'max_tokens_field', label: 'Name of the length field', kind: 'choice', flag: '--max-tokens-field',
    values: ['max_tokens', 'max_completion_tokens'], hint: 'By default the one that the provider wants' },
  { name: 'omit', label: 'Leave out of requests', kind: 'choices', flag: '--omit', values: ['temperature', 'top_p', 'max_tokens', 'stop'],
    hint: 'For models that refuse a setting' },
  { name: 'stop', label: 'Stop texts', kind: 'lines', flag: '--stop', hint: 'One per line, at most 16' },
  { name: 'system_prompt', label: 'System prompt', kind: 'long', flag: '--system-prompt',
    hint: 'In front of every prompt; part of the public results' },
  { name: 'extra_body', label: 'Extra request fields', kind: 'json', flag: '--extra-body', placeholder: '{"min_p": 0.05}',
    hint: 'JSON object, added to every request; part of the public results' },
]

/** @type {FieldSpec[]} */
export const BUDGET = [
  { name: 'budget_usd', label: 'Budget in US dollars', kind: 'number', flag: '--budget-usd', min: 0, isAbove: true, max: 1_000_000,
    step: 0.01, hint: 'The run stops when its answers have cost this much, and keeps them' },
  { name: 'budget_tokens', label: 'Budget in tokens', kind: 'integer', flag: '--budget-tokens', min: 1, hint: 'Prompts and answers together' },
]

/** @type {FieldSpec[]} */
export const LIMITS = [
  { name: 'requests_per_minute', label: 'Requests per minute', kind: 'integer', flag: '--requests-per-minute', min: 1, max: 60_000 },
  { name: 'timeout_seconds', label: 'Seconds per answer', kind: 'integer', flag: '--timeout', min: 1, max: 3_600,
    hint: 'Instead of the benchmark’s own limit' },
  { name: 'max_failures', label: 'Stop after failures', kind: 'integer', flag: '--max-failures', min: 1,
    hint: 'Samples that end as infrastructure-error or too-long' },
]

/** @type {FieldSpec[]} */
export const JUDGE = [
  { name: 'judge.temperature', label: 'Temperature of the judge', kind: 'number', flag: '--judge-temperature', min: 0, max: 2, step: 0.1 },
  { name: 'judge.seed', label: 'Sampler seed of the judge', kind: 'integer', flag: '--judge-seed' },
  { name: 'judge.max_tokens', label: 'Maximum reply length', kind: 'integer', flag: '--judge-max-tokens', min: 1, hint: 'Tokens' },
]

/** @type {FieldSpec[]} */
export const USER = [
  { name: 'user_model.temperature', label: 'Temperature of the user model', kind: 'number', flag: '--user-temperature', min: 0, max: 2, step: 0.1 },
]

/** @type {FieldSpec[]} */
export const LABELS = [
  { name: 'name', label: 'Name', kind: 'text', flag: '--name', hint: 'One line, for lists' },
  { name: 'tags', label: 'Tags', kind: 'words', flag: '--tag', placeholder: 'exp-7, law', hint: 'Separated by commas; letters, digits and -_.:/' },
  { name: 'notes', label: 'Notes', kind: 'long', flag: '--note' },
  { name: 'visibility', label: 'Who can see it', kind: 'choice', flag: '--visibility', values: ['public', 'unlisted', 'private'], initial: 'public',
    hint: 'By default everybody. Unlisted runs are in no list of others; private ones are for their owner and the operator only' },
]

/** @type {FieldSpec} */
export const SEED = { name: 'subset_seed', label: 'Seed', kind: 'text', flag: '--seed',
  hint: 'The same seed selects the same items for every model. Empty: another selection for each run.' }
/** @type {FieldSpec} */
export const SAMPLES = { name: 'samples', label: 'Samples per item', kind: 'integer', flag: '--samples', min: 1, max: 1000,
  placeholder: 'benchmark’s own', hint: 'How many times the model answers each item' }
/** @type {FieldSpec} */
export const COUNT = { name: 'subset_count', label: 'Items of each benchmark', kind: 'integer', flag: '--subset-count', min: 1 }
/** @type {FieldSpec} */
export const SHARE = { name: 'subset_pct', label: 'Share of the items', kind: 'integer', flag: '--subset-pct', min: 1, max: 100 }
/** @type {FieldSpec} */
export const ITEMS = { name: 'items', label: 'Item ids', kind: 'lines', flag: '--item', placeholder: '#12',
  hint: 'One per line: the dataset’s own id, or # and the index of a row, from 0' }
/** @type {FieldSpec} */
export const DEMO = { name: 'demo', label: 'Use demo data', kind: 'switch', flag: '--demo',
  hint: 'Items bundled with the program: no download. Their scores say nothing about the real benchmark.' }

/** All plain fields, in the order of the command line. */
export const PLAIN = [SHARE, COUNT, ITEMS, SEED, SAMPLES, DEMO, ...GENERATION, ...JUDGE, ...USER, ...BUDGET, ...LIMITS, ...LABELS]

/**
 * Parses the text of a control. An empty text is undefined: the field is left out of the order.
 *
 * @param {FieldSpec} spec
 * @param {string} text
 * @returns {{value?: FieldValue, problem?: string}}
 */
export function parse(spec, text) {
  const trimmed = text.trim()
  if (trimmed === '') return {}
  switch (spec.kind) {
    case 'integer':
      return /^[+-]?\d+$/.test(trimmed) ? bounded(spec, Number(trimmed)) : { problem: 'Enter a whole number.' }
    case 'number':
      return Number.isFinite(Number(trimmed)) ? bounded(spec, Number(trimmed)) : { problem: 'Enter a number.' }
    case 'lines':
      return { value: text.split('\n').map((line) => line.replace(/\r$/, '')).filter((line) => line.trim() !== '') }
    case 'words':
    case 'choices':
      return { value: trimmed.split(',').map((word) => word.trim()).filter(Boolean) }
    case 'switch':
      return { value: trimmed === 'true' ? true : undefined }
    case 'json':
      return parseObject(trimmed)
    default:
      return { value: spec.kind === 'long' ? text : trimmed }
  }
}

/**
 * Returns the text of a value, which {@link parse} reads.
 *
 * @param {FieldSpec} spec
 * @param {FieldValue | null | undefined} value
 */
export function format(spec, value) {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.join(spec.kind === 'lines' ? '\n' : spec.kind === 'words' ? ', ' : ',')
  if (spec.kind === 'json') return JSON.stringify(value)
  return String(value)
}

/**
 * @param {FieldSpec} spec
 * @param {number} value
 */
function bounded({ min = -Infinity, max = Infinity, isAbove = false }, value) {
  if (value <= max && (isAbove ? value > min : value >= min)) return { value }
  const [low, high] = [min, max].map((limit) => limit.toLocaleString())
  if (max === Infinity) return { problem: isAbove ? `Enter more than ${low}.` : `Enter ${low} or more.` }
  return { problem: isAbove ? `Enter a number above ${low}, at most ${high}.` : `Enter a number from ${low} to ${high}.` }
}

/** @param {string} text */
function parseObject(text) {
  try {
    const value = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? { value } : { problem: 'Enter a JSON object, such as {"min_p": 0.05}.' }
  } catch (error) {
    return { problem: `This isn’t JSON: ${/** @type {Error} */ (error).message}` }
  }
}
