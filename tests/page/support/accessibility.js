/** Checks of a view by axe-core, and of its width. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** @typedef {{message: string}} Check */
/** @typedef {{id: string, impact: string, help: string, nodes: {html: string, any: Check[], all: Check[], none: Check[]}[]}} Violation of axe-core */
/** @typedef {Omit<Violation, 'nodes'> & {nodes: string[]}} Finding */

/**
 * Returns what axe-core finds serious or critical.
 *
 * @param {import('playwright-core').Page} page
 * @returns {Promise<string[]>}
 */
export async function seriousFindings(page) {
  await page.evaluate(AXE)
  const violations = await page.evaluate(async () => {
    // @ts-ignore: defined by the script above
    const { violations } = await axe.run(document, { resultTypes: ['violations'] })
    return violations.map((/** @type {Violation} */ { id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map((node) => `${node.html.slice(0, 160)} (${node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message ?? ''})`) }))
  })
  return violations
    .filter((/** @type {Finding} */ { impact }) => impact === 'serious' || impact === 'critical')
    .map((/** @type {Finding} */ { id, impact, help, nodes }) => `${impact} ${id}: ${help}\n    ${nodes.slice(0, 5).join('\n    ')}`)
}

/**
 * Returns words in a view that only a mistake of the page puts there.
 *
 * @param {import('playwright-core').Page} page
 * @returns {Promise<string[]>}
 */
export async function strayWords(page) {
  const text = await page.getByRole('main').innerText()
  return text.split('\n').filter((line) => /\[object |\bundefined\b|\bNaN\b|Invalid Date|\bnull\b/.test(line) && !/^\s*[{"[]|JSON|curl /.test(line))
}

/**
 * Asserts that the page itself doesn't scroll sideways, and names the elements that would make it.
 *
 * @param {import('playwright-core').Page} page
 * @param {string} view
 */
export async function assertFits(page, view) {
  const { width, scroll, wide } = await page.evaluate(async () => {
    // Charts are drawn again in the frame after a change of the window's size.
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => { requestAnimationFrame(resolve) })
    const width = document.documentElement.clientWidth
    const scroll = document.documentElement.scrollWidth
    // Asking for the box of an element that isn't drawn yet lays it out: much work in a long list.
    if (scroll <= width) return { width, scroll, wide: [] }
    const isClipped = (/** @type {Element} */ element) => {
      for (let e = element.parentElement; e; e = e.parentElement) {
        if (e !== document.documentElement && e !== document.body && getComputedStyle(e).overflowX !== 'visible') return true
      }
      return false
    }
    const wide = [...document.querySelectorAll('body *')]
      .filter((e) => e.getBoundingClientRect().right > width + 1 && !isClipped(e))
      .map((e) => `${e.tagName.toLowerCase()}.${e.getAttribute('class') ?? ''} → ${Math.round(e.getBoundingClientRect().right)} px`)
    return { width, scroll, wide: wide.slice(0, 8) }
  })
  assert.ok(scroll <= width, `${view} is ${scroll} px wide in a window of ${width} px: ${wide.join(', ')}`)
}
