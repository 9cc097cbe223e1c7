/**
 * Mathematics of answers: a subset of TeX, shown as MathML, which browsers draw and screen readers read.
 *
 * Formulas that use anything else stay visible as their source. Length and depth are limited, since models produce
 * broken and endless formulas.
 */

import { delimiter, fence, make, space, styled, Unsupported, withLimits } from './mathml.js'

import {
  ACCENTS, ENVIRONMENTS, FUNCTIONS, IDENTIFIERS, IGNORED, INTEGRALS, LARGE, LIMITS, OPERATORS, SPACES, STYLES,
  TEXTS,
} from './tex-symbols.js'

/** Longest formula that is formatted, in characters. */
export const FORMULA_CHARS_MAX = 4000

/** Deepest nesting of groups. */
const DEPTH_MAX = 40

/**
 * Returns MathML for a formula, or null if it can't be formatted.
 *
 * @param {string} source TeX without delimiters.
 * @param {boolean} isDisplay True for a formula on lines of its own.
 * @returns {Element | null}
 */
export function formula(source, isDisplay) {
  if (source.length > FORMULA_CHARS_MAX || source.trim() === '') return null
  try {
    const parser = new Parser(source)
    const row = make('mrow', ...parser.row([]))
    if (!parser.isAtEnd()) return null
    const math = make('math', row)
    if (isDisplay) math.setAttribute('display', 'block')
    math.setAttribute('alttext', source.trim())
    return math
  } catch (problem) {
    if (problem instanceof Unsupported) return null
    throw problem
  }
}

/** Parser for one formula, by recursive descent. */
class Parser {
  /** @param {string} source */
  constructor(source) {
    this.tokens = source.match(/\\[A-Za-z]+\*?|\\[^]|[0-9]+(?:[.,][0-9]+)*|\s+|[^]/gu) ?? []
    this.at = 0
    this.depth = 0
  }

  isAtEnd() {
    return this.at >= this.tokens.length
  }

  /** Returns the next token that isn't white space, without taking it. */
  peek() {
    while (!this.isAtEnd() && /^\s/.test(this.tokens[this.at])) this.at += 1
    return this.tokens[this.at] ?? ''
  }

  next() {
    const token = this.peek()
    this.at += 1
    return token
  }

  /** @param {string} token */
  take(token) {
    if (this.peek() !== token) return false
    this.at += 1
    return true
  }

  /** @param {string} token */
  expect(token) {
    if (!this.take(token)) throw new Unsupported(token)
  }

  /**
   * Parses up to one of the closing tokens, which stays, or to the end.
   *
   * @param {string[]} closing
   * @returns {Element[]}
   */
  row(closing) {
    this.depth += 1
    if (this.depth > DEPTH_MAX) throw new Unsupported('depth')
    /** @type {Element[]} */
    const found = []
    while (!this.isAtEnd() && this.peek() !== '' && !closing.includes(this.peek())) {
      if (this.peek() === '}') throw new Unsupported('}')
      const atom = this.atom()
      if (atom) found.push(this.scripts(atom))
    }
    this.depth -= 1
    return found
  }

  /** Parses a group in braces, or one atom. @returns {Element} */
  group() {
    if (this.take('{')) {
      const row = this.row(['}'])
      this.expect('}')
      return row.length === 1 ? row[0] : make('mrow', ...row)
    }
    const atom = this.atom()
    if (!atom) throw new Unsupported('group')
    return atom
  }

  /** Returns the text of a group in braces as it is. */
  text() {
    this.expect('{')
    let found = ''
    for (let open = 1; ; this.at += 1) {
      if (this.isAtEnd()) throw new Unsupported('text')
      const token = this.tokens[this.at]
      if (token === '{') open += 1
      if (token === '}') open -= 1
      if (open === 0) break
      found += token.length === 2 && '%$&#_ {}'.includes(token[1]) ? token[1] : token
    }
    this.at += 1
    return found
  }

  /**
   * Adds the exponent, index and primes that follow an atom.
   *
   * @param {Element} base
   */
  scripts(base) {
    /** @type {Element | null} */
    let low = null
    /** @type {Element | null} */
    let high = null
    for (;;) {
      if (this.take("'")) {
        const prime = make('mo', '′')
        high = high ? make('mrow', high, prime) : prime
      } else if (!low && this.take('_')) {
        low = this.group()
      } else if (!high && this.take('^')) {
        high = this.group()
      } else {
        break
      }
    }
    const isAbove = base.hasAttribute('data-limits')
    base.removeAttribute('data-limits')
    if (low && high) return make(isAbove ? 'munderover' : 'msubsup', base, low, high)
    if (low) return make(isAbove ? 'munder' : 'msub', base, low)
    if (high) return make(isAbove ? 'mover' : 'msup', base, high)
    return base
  }

  /** Parses one atom without scripts; null for a command that shows nothing. @returns {Element | null} */
  atom() {
    const token = this.next()
    if (token === '{') {
      this.at -= 1
      return this.group()
    }
    if (token === '_' || token === '^') {
      this.at -= 1
      return make('mrow')
    }
    if (token.startsWith('\\')) return this.command(token.slice(1))
    if (/^[0-9]/.test(token)) return make('mn', token)
    if (/^\p{L}$/u.test(token)) return make('mi', token)
    if (token === '~') return space(0.25)
    if (token === '&' || token === '%') throw new Unsupported(token)
    const operator = make('mo', token === '-' ? '−' : token === '*' ? '∗' : token)
    // Only `\left` and `\right` stretch.
    if ('()[]|/'.includes(token)) operator.setAttribute('stretchy', 'false')
    return operator
  }

  /**
   * @param {string} name Command without its backslash.
   * @returns {Element | null}
   */
  command(name) {
    if (Object.hasOwn(IDENTIFIERS, name)) return make('mi', IDENTIFIERS[name])
    if (Object.hasOwn(OPERATORS, name)) return make('mo', OPERATORS[name])
    if (Object.hasOwn(INTEGRALS, name)) return make('mo', INTEGRALS[name])
    if (Object.hasOwn(LARGE, name)) return withLimits(make('mo', LARGE[name]))
    if (Object.hasOwn(SPACES, name)) return space(SPACES[name])
    if (FUNCTIONS.has(name)) return LIMITS.has(name) ? withLimits(make('mi', name)) : make('mi', name)
    if (TEXTS.has(name)) return make('mtext', this.text().replaceAll(' ', '\u00a0'))
    if (IGNORED.has(name)) return null
    if (Object.hasOwn(STYLES, name)) return styled(this.text(), STYLES[name])
    if (Object.hasOwn(ACCENTS, name)) {
      const over = make('mover', this.group(), make('mo', ACCENTS[name]))
      over.setAttribute('accent', 'true')
      return over
    }
    switch (name) {
      case 'frac': case 'dfrac': case 'tfrac': case 'cfrac':
        return make('mfrac', this.group(), this.group())
      case 'binom': case 'dbinom': case 'tbinom': {
        const stacked = make('mfrac', this.group(), this.group())
        stacked.setAttribute('linethickness', '0')
        return make('mrow', make('mo', '('), stacked, make('mo', ')'))
      }
      case 'sqrt': return this.root()
      case 'boxed': case 'fbox': {
        const box = make('mrow', this.group())
        box.setAttribute('class', 'answer-boxed')
        return box
      }
      case 'underline': case 'underbrace':
        return make('munder', this.group(), make('mo', name === 'underline' ? '_' : '⏟'))
      case 'overset': case 'stackrel': {
        const above = this.group()
        return make('mover', this.group(), above)
      }
      case 'pmod': return make('mrow', make('mo', '('), make('mi', 'mod'), space(0.25), this.group(), make('mo', ')'))
      case 'bmod': case 'mod': return make('mo', 'mod')
      case 'not': {
        const negated = this.next()
        return make('mo', `${negated.startsWith('\\') ? OPERATORS[negated.slice(1)] ?? '' : negated}\u0338`)
      }
      case 'left': return this.fenced()
      case 'begin': return this.environment()
      default: throw new Unsupported(name)
    }
  }

  root() {
    if (!this.take('[')) return make('msqrt', this.group())
    const degree = make('mrow', ...this.row([']']))
    this.expect(']')
    return make('mroot', this.group(), degree)
  }

  fenced() {
    const open = delimiter(this.next())
    const row = this.row(['\\right'])
    this.expect('\\right')
    return make('mrow', fence(open), ...row, fence(delimiter(this.next())))
  }

  environment() {
    const name = this.text()
    if (!Object.hasOwn(ENVIRONMENTS, name)) throw new Unsupported(name)
    if (name === 'array' && this.peek() === '{') this.text()
    const table = make('mtable')
    do {
      const line = make('mtr')
      do line.append(make('mtd', ...this.row(['&', '\\\\', '\\end'])))
      while (this.take('&'))
      table.append(line)
    } while (this.take('\\\\'))
    this.expect('\\end')
    if (this.text() !== name) throw new Unsupported('end')
    const [open, close] = ENVIRONMENTS[name]
    table.setAttribute('class', name === 'cases' || name.startsWith('align') || name === 'split' ? 'answer-lines' : '')
    return make('mrow', fence(open), table, fence(close))
  }
}
