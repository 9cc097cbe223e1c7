/** Refusals of uploads, with file and line. */

import { h, withCode } from '../../core/dom.js'

/**
 * @param {string} message
 * @param {import('../../core/api.js').Refusal} refusal
 */
export function refusalOf(message, refusal) {
  return h('div', { role: 'alert', class: 'refusal' },
    h('p', null, h('strong', null, 'Refused. '), withCode(message)),
    h('dl', { class: 'facts' },
      refusal.file !== null && [h('dt', null, 'File'), h('dd', null, h('code', null, refusal.file))],
      refusal.line !== null && [h('dt', null, 'Line'), h('dd', null, String(refusal.line))],
      h('dt', null, 'Code'), h('dd', null, h('code', null, refusal.code))))
}
