/**
 * Elements without markup strings: everything that comes from a model, a dataset or a caller becomes a text node.
 */

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */
/** @typedef {Record<string, unknown>} Props */
/** @typedef {Record<string, ((event: any) => unknown) | null | undefined | false>} Listeners by the name of their event */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Makes an HTML element.
 *
 * `class` is the class, `dataset` and `style` are maps (`style` sets custom and other properties one by one, which the
 * Content-Security-Policy allows), `on` maps event names to listeners, `.name` sets a property. Every other entry is an
 * attribute; `null`, `undefined` and `false` leave it out, `true` sets it without a value.
 *
 * @template {string} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {K extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[K] : HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag)
  apply(element, props)
  append(element, children)
  return /** @type {any} */ (element)
}

/**
 * Makes an SVG element; properties are as for `h`.
 *
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag))
  apply(element, props)
  append(element, children)
  return element
}

/**
 * Replaces all children of an element.
 *
 * @template {Element} E
 * @param {E} parent
 * @param {...Child} children
 * @returns {E}
 */
export function replace(parent, ...children) {
  parent.replaceChildren()
  append(parent, children)
  return parent
}

/**
 * Sets the text of an element only if it differs, so that updates don't disturb selections and screen readers.
 *
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/**
 * Makes a unique id, for labels and descriptions.
 *
 * @param {string} prefix
 */
export function uniqueId(prefix) {
  ids += 1
  return `${prefix}-${ids}`
}
let ids = 0

/**
 * @param {HTMLElement | SVGElement} element
 * @param {Props | null | undefined} props
 */
function apply(element, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'class') element.setAttribute('class', String(value))
    else if (name === 'dataset') Object.assign(element.dataset, value)
    else if (name === 'style') for (const [key, v] of Object.entries(/** @type {Props} */ (value))) element.style.setProperty(key, String(v))
    else if (name === 'on') for (const [event, f] of Object.entries(/** @type {Listeners} */ (value))) { if (f) element.addEventListener(event, f) }
    else if (name.startsWith('.')) Object.assign(element, { [name.slice(1)]: value })
    else element.setAttribute(name, value === true ? '' : String(value))
  }
}

/**
 * @param {Element} parent
 * @param {Child[]} children
 */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue
    if (Array.isArray(child)) append(parent, child)
    else parent.append(child instanceof Node ? child : String(child))
  }
}
