/**
 * Elements without markup strings: everything that comes from a model, a dataset or a caller becomes a text node. Also parts
 * that are drawn again only when what they show has changed, labeled fields, and stylesheets of views.
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
 * Marks the code of a sentence, which stands between backticks. All else is text: providers and containers write messages, too.
 *
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
export function withCode(text) {
  return text.split(/(`[^`\n]+`)/).filter((part) => part !== '').map((part) => (part.startsWith('`') && part.length > 2 ? h('code', null, part.slice(1, -1)) : part))
}

/** Waits until the browser has drawn what is there, so that what follows doesn't delay it. */
export function painted() {
  return new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)) })
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

/** @type {Map<string, Promise<void>>} */
const loading = new Map()

/**
 * Loads stylesheets by their path under `css/`, once each, such as `views/run.css`. Views wait for it before they show
 * anything, so that nothing is drawn without its style. A missing file isn't an error.
 *
 * @param {...string} paths
 * @returns {Promise<void>}
 */
export async function useStyles(...paths) {
  await Promise.all(paths.map((path) => {
    let wait = loading.get(path)
    if (!wait) loading.set(path, wait = load(path))
    return wait
  }))
}

/** @param {string} path */
function load(path) {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = new URL(`../../css/${path}`, import.meta.url).href
    link.onload = link.onerror = () => resolve()
    document.head.append(link)
  }))
}

/**
 * Makes a part of a view. `show` draws into the element if the key of the value differs from the last one. If the focus
 * was on an element with `data-key` inside, the new element with the same key gets it.
 *
 * @template [T=unknown]
 * @param {HTMLElement} element
 * @param {(value: T) => unknown} key anything that JSON can write: what the part depends on
 * @param {(value: T) => import('./dom.js').Child} make
 */
export function part(element, key, make) {
  let last = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return {
    element,
    /** @param {T} value */
    show(value) {
      const text = JSON.stringify(key(value)) ?? ''
      if (text === last) return
      clearTimeout(timer)
      if (element.querySelector('bench-menu [aria-expanded="true"]')) {
        // A menu that the reader has open stays; what has changed is drawn once it is closed.
        timer = setTimeout(() => this.show(value), 500)
        return
      }
      last = text
      const active = element.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).closest('[data-key]') : null
      const focused = active?.getAttribute('data-key')
      replace(element, make(value))
      if (focused) {
        /** @type {HTMLElement | null} */ (element.querySelector(`[data-key="${CSS.escape(focused)}"]`))?.focus({ preventScroll: true })
      }
    },
  }
}

/**
 * Makes a labeled field for a form.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  const id = control.id || uniqueId('field')
  control.id = id
  if (hint) control.setAttribute('aria-describedby', `${id}-hint`)
  return h('div', { class: 'field' }, h('label', { for: id }, label), control, hint && h('p', { id: `${id}-hint`, class: 'hint' }, hint))
}
