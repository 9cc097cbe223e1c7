/** Sentences of the server about benchmarks, with code in backticks and web addresses. */

import { h } from '../../core/dom.js'

/**
 * Turns backticks into code and addresses into links.
 *
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
export function rich(text) {
  return text.split(/(`[^`]+`|https:\/\/[^\s,;)]+)/).filter((part) => part !== '').map((part) => {
    if (part.startsWith('`') && part.length > 2) return h('code', null, part.slice(1, -1))
    if (part.startsWith('https://')) return h('a', { href: part, rel: 'noopener noreferrer' }, part.replace('https://', ''))
    return part
  })
}
