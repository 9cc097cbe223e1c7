/** Event log of a run: loaded when it is opened, and continued while the run is open. */

import { h, replace, setText, withCode } from '../../core/dom.js'
import { dateTime, timeOfDay } from '../../core/format.js'

/** Events that are shown; a longer log starts with the latest ones. */
const SHOWN = 200

/** @param {{source: import('../../core/source.js').RunSource, signal: AbortSignal}} options */
export function eventLog({ source, signal }) {
  const list = h('tbody', null)
  const count = h('span', { class: 'dim' })
  const more = h('button', { type: 'button', class: 'button small', hidden: true }, 'Show all')
  const details = h('details', { class: 'log no-print' }, h('summary', null, h('h2', null, 'Event log '), count),
    h('div', { class: 'scroll-x log-box', tabindex: '0', role: 'region', 'aria-label': 'Events' }, h('table', { class: 'figures' },
      h('thead', { class: 'visually-hidden' }, h('tr', null, ['Time', 'Benchmark', 'Event'].map((text) => h('th', { scope: 'col' }, text)))), list)), more)
  let cursor = ''
  let busy = false
  let isDone = false
  let isAll = false
  let isOpenRun = false
  /** @type {Api.EventView[]} */
  const events = []
  const refresh = async () => {
    if (!details.open || busy || isDone || signal.aborted) return
    busy = true
    try {
      let page
      do {
        page = await source.events?.(cursor, signal)
        if (!page) break
        cursor = page.cursor
        events.push(...page.events)
        isDone = page.done
      } while (page.events.length >= 1000)
      show()
    } catch (error) {
      if (!signal.aborted && events.length === 0) setText(count, /** @type {Error} */ (error).message)
    } finally { busy = false }
  }
  const show = () => {
    const shown = isAll ? events : events.slice(-SHOWN)
    more.hidden = shown.length === events.length
    setText(count, isOpenRun && !isDone ? `${events.length} so far, latest first` : `${events.length}, latest first`)
    const known = new Set([...list.children].map((row) => /** @type {HTMLElement} */ (row).dataset.id))
    const fresh = shown.filter(({ id }) => !known.has(id))
    list.prepend(...fresh.reverse().map((event) => h('tr', { dataset: { id: event.id } },
      h('td', { class: 'nowrap', title: dateTime(event.created_at) }, timeOfDay(event.created_at)),
      h('td', null, event.benchmark_name ?? ''), h('td', null, withCode(event.message)))))
    while (!isAll && list.children.length > SHOWN) list.lastElementChild?.remove()
  }
  details.addEventListener('toggle', refresh)
  more.addEventListener('click', () => { isAll = true; replace(list); show() })
  return {
    element: details, refresh,
    /** @param {boolean} open true while the run is open; a requeued run gets new events */
    setOpen(open) { if (open) isDone = false; isOpenRun = open },
  }
}
