/** Form for the visibility of a run. */

import { toast } from '../../core/states.js'
import { api } from '../../core/api.js'
import { h, uniqueId } from '../../core/dom.js'
import { VISIBILITIES } from '../../core/visibility.js'
import { openDialog } from '../../components/dialog.js'

/**
 * @param {import('../../core/run-facts.js').Run} run
 * @param {() => void} changed
 */
export function openVisibility(run, changed) {
  const name = uniqueId('visibility')
  const choices = Object.entries(VISIBILITIES).map(([value, { label, meaning }]) => {
    const input = h('input', { type: 'radio', name, value, '.checked': value === (run.visibility ?? 'public') })
    return { input, element: h('label', { class: 'check' }, input, h('span', null, h('strong', null, label), h('span', { class: 'hint' }, ` ${meaning}`))) }
  })
  openDialog({
    title: 'Who can see this run',
    content: h('div', { class: 'content', role: 'radiogroup', 'aria-label': 'Visibility' }, choices.map(({ element }) => element)),
    action: 'Save',
    run: async () => {
      const visibility = choices.find(({ input }) => input.checked)?.input.value
      await api.patch(`/api/runs/${run.id}`, { visibility })
      toast(`The run is now ${VISIBILITIES[visibility ?? 'public'].label.toLowerCase()}.`)
      changed()
    },
  })
}
