/** Splits the output of programs into characters, control characters and escape sequences. */

/**
 * @typedef {object} Receiver
 * @property {(char: string) => void} print
 * @property {(code: number) => void} control
 * @property {(final: string) => void} escape
 * @property {() => void} charset
 * @property {(final: string, params: number[][], prefix: string) => void} csi
 */

/** Parameters of a sequence, and largest value of one. Further ones are ignored. */
const PARAMS_MAX = 32
const VALUE_MAX = 9999
/** Characters of a sequence's parameters after which it is ignored. */
const SEQUENCE_MAX = 256

/** Characters that would reorder the text around them: they have no place in a grid of characters. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/

export class Parser {
  /** True if the character sets G0 and G1 are that of line drawing. */
  isG0Drawing = false
  isG1Drawing = false
  /** @type {'text' | 'escape' | 'charset' | 'csi' | 'string' | 'string-escape' | 'skip'} */
  #state = 'text'
  #buffer = ''
  #set = ''
  #receiver

  /** @param {Receiver} receiver */
  constructor(receiver) { this.#receiver = receiver }

  /** @param {Receiver} receiver */
  clone(receiver) {
    const copy = new Parser(receiver)
    copy.isG0Drawing = this.isG0Drawing
    copy.isG1Drawing = this.isG1Drawing
    copy.#state = this.#state
    copy.#buffer = this.#buffer
    copy.#set = this.#set
    return copy
  }

  /** Reads a piece of output. Sequences may continue in the next one. @param {string} text */
  write(text) {
    for (const char of text) this.#read(char)
  }

  /** @param {string} char */
  #read(char) {
    const code = char.codePointAt(0) ?? 0
    if (this.#state === 'string' || this.#state === 'string-escape') { this.#readString(code); return }
    // Controls act in the middle of sequences, too.
    if (code === 0x1b) { this.#state = 'escape'; this.#buffer = ''; return }
    if (code === 0x18 || code === 0x1a) { this.#state = 'text'; return }
    if (code < 0x20) { this.#receiver.control(code); return }
    if (this.#state === 'text') this.#readText(char, code)
    else if (this.#state === 'escape') this.#readEscape(char)
    else if (this.#state === 'charset') this.#readCharset(char)
    else if (this.#state === 'skip') this.#state = 'text'
    else this.#readCsi(char, code)
  }

  /** @param {string} char @param {number} code */
  #readText(char, code) {
    if (code === 0x7f || (code >= 0x80 && code < 0xa0) || (code >= 0x200e && REORDERING.test(char)) || code === 0x061c) return
    this.#receiver.print(code >= 0xd800 && code < 0xe000 ? '\ufffd' : char)
  }

  /** @param {string} char */
  #readEscape(char) {
    this.#state = 'text'
    if (char === '[') this.#state = 'csi'
    else if (']PX^_k'.includes(char)) this.#state = 'string'
    else if (char === '(' || char === ')') { this.#state = 'charset'; this.#set = char }
    else if (char >= ' ' && char <= '/') this.#state = 'skip'
    else this.#receiver.escape(char)
  }

  /** @param {string} char */
  #readCharset(char) {
    this.#state = 'text'
    if (this.#set === '(') { this.isG0Drawing = char === '0'; this.#receiver.charset() } else this.isG1Drawing = char === '0'
  }

  /** @param {string} char @param {number} code */
  #readCsi(char, code) {
    if (code >= 0x40 && code <= 0x7e) {
      this.#state = 'text'
      const [, prefix, values, between] = /^([<-?]*)([\d;:]*)(.*)$/s.exec(this.#buffer) ?? ['', '', '', '']
      // Sequences with a character before the last are other ones, such as those of the cursor's shape.
      if (between === '' && this.#buffer.length < SEQUENCE_MAX) this.#receiver.csi(char, paramsOf(values), prefix)
    } else if (code >= 0x80) this.#state = 'text'
    else if (this.#buffer.length < SEQUENCE_MAX) this.#buffer += char
  }

  /** Skips titles, links, images and the like. @param {number} code */
  #readString(code) {
    if (code === 0x07 || code === 0x18 || code === 0x1a || code === 0x9c) this.#state = 'text'
    else if (this.#state === 'string-escape') {
      if (code === 0x5c) this.#state = 'text'
      else if (code !== 0x1b) this.#state = 'string'
    } else if (code === 0x1b) this.#state = 'string-escape'
  }
}

/** @param {string} values */
function paramsOf(values) {
  if (values === '') return []
  return values.split(';', PARAMS_MAX).map((part) => part.split(':', PARAMS_MAX).map((value) => Math.min(Number(value) || 0, VALUE_MAX)))
}
