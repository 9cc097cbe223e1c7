/** Elements of MathML for the formatter of TeX. */

import { DOUBLE, OPERATORS } from './tex-symbols.js'

const MATHML = 'http://www.w3.org/1998/Math/MathML'

/** Marks TeX that this module doesn't format. */
export class Unsupported extends Error {}

/**
 * Makes a MathML element.
 *
 * @param {string} tag
 * @param {...(Node | string)} children
 */
export function make(tag, ...children) {
  const made = document.createElementNS(MATHML, tag)
  made.append(...children)
  return made
}

/** @param {number} width Width in em. */
export function space(width) {
  const made = make('mspace')
  made.setAttribute('width', `${width}em`)
  return made
}

/** Marks an operator whose scripts stand above and below. @param {Element} operator */
export function withLimits(operator) {
  operator.setAttribute('data-limits', '')
  return operator
}

/** @param {string} text @param {string} style */
export function styled(text, style) {
  if (style === 'double') return make('mi', [...text].map((letter) => DOUBLE[letter] ?? letter).join(''))
  const made = make(/^[0-9.,]+$/.test(text) ? 'mn' : 'mi', text.replace(/^\\/, ''))
  // A single letter is italic unless its variant says otherwise.
  if (style !== 'italic') made.setAttribute('mathvariant', 'normal')
  made.setAttribute('class', `answer-math-${style}`)
  return made
}

/** Returns the character of a delimiter; an empty text for the invisible one. @param {string} token */
export function delimiter(token) {
  if (token === '.') return ''
  if (!token.startsWith('\\')) return token
  const known = OPERATORS[token.slice(1)]
  if (!known) throw new Unsupported(token)
  return known
}

/** @param {string} character */
export function fence(character) {
  const made = make('mo', character)
  made.setAttribute('fence', 'true')
  made.setAttribute('stretchy', 'true')
  return made
}
