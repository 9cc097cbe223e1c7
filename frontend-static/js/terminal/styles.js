/** Colors and other attributes of characters in a terminal, set by SGR sequences. */

/**
 * @typedef {object} Style
 * @property {string} fg index of the palette, `#rrggbb`, or '' for the default color
 * @property {string} bg
 * @property {string} flags letters: b bold, d dim, i italic, u underlined, v inverse, h hidden, s struck through
 */

/** Attributes of characters without any. @type {Style} */
export const PLAIN = Object.freeze({ fg: '', bg: '', flags: '' })

/** Attributes by the parameter that sets them. @type {Record<number, string>} */
const SET = { 1: 'b', 2: 'd', 3: 'i', 4: 'u', 7: 'v', 8: 'h', 9: 's', 21: 'u' }
/** Attributes by the parameter that resets them. @type {Record<number, string>} */
const RESET = { 22: 'bd', 23: 'i', 24: 'u', 27: 'v', 28: 'h', 29: 's' }

/**
 * Returns the style after an SGR sequence.
 *
 * @param {Style} style
 * @param {number[][]} params parameters, each with its subparameters
 * @returns {Style}
 */
export function styled(style, params) {
  let { fg, bg, flags } = style
  for (let at = 0; at < params.length; at += 1) {
    const [code, ...sub] = params[at]
    if (code === 0) [fg, bg, flags] = ['', '', '']
    else if (code === 4 && sub[0] === 0) flags = flags.replace('u', '')
    else if (SET[code]) { if (!flags.includes(SET[code])) flags += SET[code] }
    else if (RESET[code]) flags = [...flags].filter((flag) => !RESET[code].includes(flag)).join('')
    else if (code >= 30 && code <= 37) fg = String(code - 30)
    else if (code >= 90 && code <= 97) fg = String(code - 82)
    else if (code === 39) fg = ''
    else if (code >= 40 && code <= 47) bg = String(code - 40)
    else if (code >= 100 && code <= 107) bg = String(code - 92)
    else if (code === 49) bg = ''
    else if (code === 38 || code === 48) {
      const { color, used } = sub.length > 0 ? { color: ofSub(sub), used: 0 } : ofParams(params.slice(at + 1, at + 5).map(([first]) => first))
      if (color !== null) { if (code === 38) fg = color; else bg = color }
      at += used
    }
  }
  return { fg, bg, flags: [...flags].sort().join('') }
}

/** Reads `5:N`, `2:R:G:B` or `2:SPACE:R:G:B`. @param {number[]} sub */
function ofSub(sub) {
  if (sub[0] === 5) return palette(sub[1])
  return sub[0] === 2 ? rgb(sub.length > 4 ? sub.slice(2, 5) : sub.slice(1, 4)) : null
}

/** Reads `5;N` or `2;R;G;B`. @param {number[]} rest */
function ofParams(rest) {
  if (rest[0] === 5) return { color: palette(rest[1]), used: 2 }
  return rest[0] === 2 ? { color: rgb(rest.slice(1, 4)), used: 4 } : { color: null, used: 0 }
}

/** @param {number | undefined} index */
function palette(index) {
  return index !== undefined && index <= 255 ? String(index) : null
}

/** @param {number[]} parts */
function rgb(parts) {
  if (parts.length !== 3 || parts.some((part) => part > 255)) return null
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

/** The first 16 colors on the terminal's dark ground; black is readable as text. */
const TEXT = ['#8792a0', '#f07f78', '#6bc46d', '#d9a441', '#6fa8f5', '#cf8fe0', '#4fc1c9', '#d5dae0', '#98a3b0', '#ff9a92', '#8ee08f', '#f0c568', '#93c1ff', '#e2b0f0', '#7adfe6', '#ffffff']
const GROUND = ['#262b31', '#8c2f2a', '#2c6b33', '#75540f', '#2a4f8f', '#6e3480', '#19626a', '#c3c9d0', '#4a535e', '#a9443e', '#3b8a44', '#93701f', '#3c68b3', '#8a489f', '#26808a', '#f2f4f6']
const CUBE = [0, 95, 135, 175, 215, 255]

/**
 * Returns a color for CSS; '' for the default.
 *
 * @param {string} color
 * @param {boolean} isGround
 */
export function cssColor(color, isGround) {
  if (color === '' || color.startsWith('#')) return color
  const index = Number(color)
  if (index < 16) return (isGround ? GROUND : TEXT)[index]
  if (index >= 232) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join(' ')})`
  return `rgb(${[36, 6, 1].map((unit) => CUBE[Math.floor((index - 16) / unit) % 6]).join(' ')})`
}
