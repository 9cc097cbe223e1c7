/** Measurements in a page. */

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
