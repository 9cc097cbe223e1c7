/** `<bench-outcomes>`: counts of outcomes as a stacked bar with symbols and figures below. */

import { h, replace } from '../core/dom.js'
import { integer } from '../core/format.js'
import { OUTCOME_NAMES, outcomeMark, outcomeOf } from '../core/outcomes.js'

export class BenchOutcomes extends HTMLElement {
  /**
   * @param {Record<string, number>} counts by outcome
   * @param {{open?: number, link?: (outcome: string) => string}} [options] `open` is the number of samples that aren't over;
   *   `link` makes the address of the samples with an outcome
   */
  show(counts, { open = 0, link } = {}) {
    const names = [...new Set([...OUTCOME_NAMES, ...Object.keys(counts)])].filter((name) => counts[name] > 0)
    const parts = /** @type {[string | null, number][]} */ (names.map((name) => [name, counts[name]]))
    if (open > 0) parts.push([null, open])
    replace(this,
      h('div', { class: 'bar', 'aria-hidden': 'true' }, parts.map(([name, n]) =>
        h('span', { style: { '--n': n, '--color': name ? `var(${outcomeOf(name).color})` : 'transparent' } }))),
      h('ul', null, parts.map(([name, n]) => h('li', null, h('b', null, integer(n)), ' ',
        name && link ? h('a', { href: link(name) }, outcomeMark(name)) : outcomeMark(name)))))
  }
}
customElements.define('bench-outcomes', BenchOutcomes)

/**
 * Makes a bar of outcomes.
 *
 * @param {Record<string, number>} counts
 * @param {{open?: number, link?: (outcome: string) => string}} [options]
 */
export function outcomesFigure(counts, options) {
  const element = /** @type {BenchOutcomes} */ (document.createElement('bench-outcomes'))
  element.show(counts, options)
  return element
}
