/** Measurements of pages and of the server. */

import fs from 'node:fs'
import { settled } from './navigation.js'

/** Clock ticks in a second, in which Linux counts processor time. */
const TICKS = 100

/**
 * Returns the processor time that a process has used, in seconds. Linux only.
 *
 * @param {number} pid
 */
export function cpuSeconds(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}

/**
 * Loads a view with an empty cache, and returns the bytes that it took, as compressed and with headers: files of the page, and
 * answers of the API.
 *
 * @param {Window} window
 * @param {string} address
 */
export async function loadBytes({ page, context }, address) {
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  /** @type {Map<string, string>} */
  const paths = new Map()
  const sizes = { files: 0, data: 0, requests: 0 }
  session.on('Network.requestWillBeSent', ({ requestId, request }) => paths.set(requestId, new URL(request.url).pathname))
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    sizes[/^\/(api|\.well-known)\//.test(paths.get(requestId) ?? '') ? 'data' : 'files'] += encodedDataLength
    sizes.requests += 1
  })
  await page.goto(address)
  await settled(page)
  await context.close()
  return sizes
}

/**
 * Loads a view with an empty cache and a slowed processor, and returns the milliseconds until it is complete and answers input.
 * The page itself says when, as a message: anything that asks it from outside first loads its own large script into the page.
 *
 * @param {Window} window
 * @param {string} address
 * @param {number} slowdown
 * @param {string} [part] selector of what must be there as well
 */
export async function readyMilliseconds({ page, context }, address, slowdown, part = 'main') {
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
  await page.addInitScript((wanted) => {
    const look = () => {
      if (!document.querySelector('main .view[data-ready]') || document.querySelector('.state.loading') || !document.querySelector(wanted)) return
      observer.disconnect()
      // Work that is queued already comes first, as it would before a click.
      requestAnimationFrame(() => setTimeout(() => console.debug(`usable at ${performance.now()}`)))
    }
    const observer = new MutationObserver(look)
    observer.observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-ready'] })
  }, part)
  const usable = page.waitForEvent('console', (message) => message.text().startsWith('usable at '))
  await page.goto(address, { waitUntil: 'commit' })
  const time = Number((await usable).text().slice('usable at '.length))
  await context.close()
  return time
}

/** @typedef {import('./world.js').Window} Window */

/**
 * Scrolls the table of samples from top to bottom in steps of about two screens, and returns the time of each frame in
 * milliseconds.
 *
 * @param {import('playwright-core').Page} page
 * @param {number} [steps]
 * @returns {Promise<number[]>}
 */
export function scrollFrames(page, steps = 150) {
  return page.evaluate(async (count) => {
    const viewport = [...document.querySelectorAll('[role=grid]')].find((e) => e.scrollHeight > e.clientHeight + 1000) ?? document.scrollingElement
    if (!viewport) throw new Error('nothing scrolls')
    const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve) })
    viewport.scrollTop = 0
    for (let i = 0; i < 10; i += 1) await frame()
    const times = []
    let last = await frame()
    const range = viewport.scrollHeight - viewport.clientHeight
    for (let i = 1; i <= count; i += 1) {
      // Half of the way in small steps, as with a wheel, and half in jumps, as with the scroll bar.
      viewport.scrollTop = i <= count / 2 ? i * 120 : range * (i - count / 2) / (count / 2)
      const now = await frame()
      times.push(now - last)
      last = now
    }
    return times
  }, steps)
}
