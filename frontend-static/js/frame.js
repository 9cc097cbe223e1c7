/** Header, navigation, connection state, theme and key: what every view has around it. */

import { api } from './core/api.js'
import { connection } from './core/connection.js'
import { h, painted, replace, setText } from './core/dom.js'
import { timeOfDay } from './core/format.js'
import { toast, withModule } from './core/states.js'

/** Links of the navigation: path, text, and names of the views below. @type {[string, string, string[]][]} */
const LINKS = [
  ['/runs', 'Runs', ['runs', 'run', 'item']],
  ['/new', 'New run', ['new-run']],
  ['/compare', 'Compare', ['compare']],
  ['/leaderboard', 'Leaderboard', ['leaderboard']],
  ['/benchmarks', 'Benchmarks', ['benchmarks', 'benchmark']],
  ['/tasks', 'Tasks', ['tasks', 'task']],
  ['/schedules', 'Schedules', ['schedules', 'schedule']],
  ['/ops', 'Ops', ['ops']],
  ['/verify', 'Verify', ['verify', 'archive-run', 'archive-item', 'archive-compare']],
  ['/docs', 'API', ['docs']],
]

const THEMES = /** @type {const} */ (['auto', 'light', 'dark'])
const THEME_WORDS = { auto: 'Theme: automatic', light: 'Theme: light', dark: 'Theme: dark' }
const THEME_SYMBOLS = { auto: '◐', light: '☀', dark: '☾' }

/**
 * Builds the frame.
 *
 * @returns {HTMLElement} the element for views
 */
export function startFrame() {
  const main = h('main', { id: 'main', tabindex: '-1' })
  const links = LINKS.map(([path, text, names]) => {
    const a = h('a', { href: path }, text)
    return { a, names }
  })
  addEventListener('viewchange', (event) => {
    const name = /** @type {CustomEvent} */ (event).detail
    for (const { a, names } of links) {
      if (!names.includes(name)) { a.removeAttribute('aria-current'); continue }
      a.setAttribute('aria-current', names[0] === name ? 'page' : 'true')
      // Before the next frame, which lays the page out anyway, and not while the view is waiting to be loaded.
      requestAnimationFrame(() => a.scrollIntoView({ block: 'nearest', inline: 'nearest' }))
    }
  })
  document.body.prepend(
    h('a', { class: 'skip', href: '#main', on: { click: (/** @type {Event} */ e) => { e.preventDefault(); main.focus() } } }, 'Skip to content'),
    h('header', { class: 'frame' },
      h('a', { class: 'brand', href: '/' }, 'Bench Runner'),
      h('nav', { 'aria-label': 'Views' }, links.map(({ a }) => a)),
      h('div', { class: 'tools' }, accountPlace(), keyButton(), themeButton())),
    connectionBar(), main)
  return main
}

/** Makes the place of the sign-in, which is loaded after the first view. */
function accountPlace() {
  const place = h('div', { class: 'account', 'aria-busy': 'true' }, h('span', { class: 'initial' }))
  void painted().then(() => import('./components/account.js')).then(({ showAccount }) => showAccount(place)).catch(() => replace(place))
  return place
}

function keyButton() {
  const state = h('span', null)
  const show = () => setText(state, api.isRefused ? 'Key refused' : api.adminSecret ? 'Operator' : api.key ? 'Key set' : 'Key')
  for (const event of ['key', 'refused']) api.addEventListener(event, show)
  show()
  api.addEventListener('refused', () => toast('The server refuses your key: it is wrong, was revoked or has expired. Enter another one with the button “Key refused”.', { kind: 'bad', seconds: 20 }))
  if (api.key || api.adminSecret) void painted().then(() => import('./components/key-check.js')).then(({ checkStored }) => checkStored()).catch(() => {})
  return h('button', { type: 'button', class: 'plain', title: 'Key or access token for actions on runs', on: { click: openKeyDialog } }, state)
}

function themeButton() {
  const root = document.documentElement
  let theme = /** @type {typeof THEMES[number]} */ (localStorage.getItem('bench-theme') ?? 'auto')
  if (!THEMES.includes(theme)) theme = 'auto'
  const symbol = h('span', { 'aria-hidden': 'true' })
  const button = h('button', { type: 'button', class: 'plain icon', title: 'Change the theme' }, symbol)
  const show = () => {
    if (theme === 'auto') delete root.dataset.theme
    else root.dataset.theme = theme
    button.setAttribute('aria-label', THEME_WORDS[theme])
    setText(symbol, THEME_SYMBOLS[theme])
  }
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]
    if (theme === 'auto') localStorage.removeItem('bench-theme')
    else localStorage.setItem('bench-theme', theme)
    show()
  })
  show()
  return button
}

/** Makes the line that appears while the server can't be reached. */
function connectionBar() {
  const bar = h('div', { class: 'connection', role: 'status' })
  const show = () => {
    if (connection.state === 'online') { bar.hidden = true; replace(bar); return }
    bar.hidden = false
    const since = timeOfDay(connection.since)
    setText(bar, connection.state === 'offline'
      ? `You are offline since ${since}. What you see may be out of date; the page continues by itself.`
      : `No connection to the server since ${since}. The page keeps trying.`)
  }
  connection.addEventListener('change', show)
  show()
  return bar
}

/** Opens the dialog. */
export function openKeyDialog() {
  void withModule(() => import('./components/key-form.js'), ({ openKeyForm }) => openKeyForm())
}
