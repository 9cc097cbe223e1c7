/** Views by the path in the address bar. */

import { h } from './dom.js'

/** @typedef {{mount: (context: import('../app.js').Context) => Promise<void> | void}} ViewModule */
/** @typedef {() => Promise<ViewModule>} Load */
/** @typedef {{load: Load, params: Record<string, string>, path: string, name: string}} Match */

class Router extends EventTarget {
  /** @type {{pattern: string[], load: Load, name: string}[]} */
  #routes = []
  /** Scroll positions of history entries, by their key. @type {Map<string, number>} */
  #scrolls = new Map()

  /**
   * Adds a route. A segment in braces becomes a parameter: `/runs/{run}`.
   *
   * @param {string} pattern
   * @param {Load} load
   * @param {string} [name] name of the view, by default the pattern
   */
  register(pattern, load, name = pattern) {
    this.#routes.push({ pattern: segments(pattern), load, name })
  }

  /**
   * Finds the view of a path; null if there is none.
   *
   * @param {string} path
   * @returns {Match | null}
   */
  match(path) {
    const parts = segments(path)
    for (const { pattern, load, name } of this.#routes) {
      const params = paramsOf(pattern, parts)
      if (params) return { load, params, path, name }
    }
    return null
  }

  /**
   * Goes to a path with an optional query.
   *
   * @param {string} path
   * @param {{replace?: boolean}} [options] `replace` leaves no entry in the history
   */
  go(path, { replace = false } = {}) {
    this.#scrolls.set(key(), scrollY)
    if (replace) history.replaceState({ key: key() }, '', path)
    else history.pushState({ key: crypto.randomUUID() }, '', path)
    this.dispatchEvent(new CustomEvent('navigate', { detail: { scroll: 0 } }))
  }

  /** Shows the view of the present address again, with the data of now, at the place where the reader is. */
  reload() {
    this.dispatchEvent(new CustomEvent('navigate', { detail: { scroll: scrollY } }))
  }

  /** Shows the view of the present address, and from now on follows links and the history. */
  start() {
    history.scrollRestoration = 'manual'
    if (!history.state?.key) history.replaceState({ key: crypto.randomUUID() }, '')
    let current = key()
    addEventListener('scroll', () => this.#scrolls.set(current, scrollY), { passive: true })
    addEventListener('popstate', () => {
      current = key()
      this.dispatchEvent(new CustomEvent('navigate', { detail: { scroll: this.#scrolls.get(current) ?? 0 } }))
    })
    this.addEventListener('navigate', () => { current = key() })
    document.addEventListener('click', (event) => this.#follow(event))
    this.dispatchEvent(new CustomEvent('navigate', { detail: { scroll: 0 } }))
  }

  /** @param {MouseEvent} event */
  #follow(event) {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    const link = /** @type {HTMLAnchorElement | null} */ (event.composedPath().find((e) => e instanceof HTMLAnchorElement))
    if (!link || link.origin !== location.origin || link.hasAttribute('download') || (link.target && link.target !== '_self')) return
    if (link.hash && link.pathname === location.pathname && link.search === location.search) return
    if (!this.match(link.pathname)) return
    event.preventDefault()
    this.go(link.pathname + link.search + link.hash)
  }
}

/** Router of the page. Sends the event `navigate`. */
export const router = new Router()

/**
 * Makes a link to a view.
 *
 * @param {string} path
 * @param {...import('./dom.js').Child} children
 */
export function link(path, ...children) {
  return h('a', { href: path }, ...children)
}

/**
 * Builds a path; every part is encoded.
 *
 * @param {...(string | number)} parts
 */
export function path(...parts) {
  return `/${parts.map((part) => encodeURIComponent(String(part))).join('/')}`
}

/** State of a view in the query of the address, so that every state has a link. */
export const query = {
  /**
   * @param {string} name
   * @returns {string | null}
   */
  get(name) { return new URLSearchParams(location.search).get(name) },

  /**
   * Changes entries of the query without a new entry in the history. Null and '' remove an entry.
   *
   * @param {Record<string, string | number | null | undefined> | string} change
   * @param {string | number | null} [value] value if `change` is a name
   */
  set(change, value = null) {
    const search = new URLSearchParams(location.search)
    const entries = typeof change === 'string' ? { [change]: value } : change
    for (const [name, v] of Object.entries(entries)) {
      if (v === null || v === undefined || v === '') search.delete(name)
      else search.set(name, String(v))
    }
    const text = search.toString().replaceAll('%2C', ',')
    history.replaceState(history.state, '', location.pathname + (text ? `?${text}` : '') + location.hash)
  },

  /** @returns {Record<string, string>} */
  all() { return Object.fromEntries(new URLSearchParams(location.search)) },
}

function key() {
  return history.state?.key ?? ''
}

/** @param {string} path */
function segments(path) {
  return path.split('/').filter((part) => part !== '')
}

/**
 * @param {string[]} pattern
 * @param {string[]} parts
 */
function paramsOf(pattern, parts) {
  if (pattern.length !== parts.length) return null
  /** @type {Record<string, string>} */
  const params = {}
  for (const [i, part] of pattern.entries()) {
    if (part.startsWith('{')) {
      try { params[part.slice(1, -1)] = decodeURIComponent(parts[i]) } catch { return null }
    } else if (part !== parts[i]) return null
  }
  return params
}
