/** Form for the labels of a run: name, tags, notes. */

import { toast } from '../../core/states.js'
import { api } from '../../core/api.js'
import { field, h } from '../../core/dom.js'
import { openDialog } from '../../components/dialog.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */

/**
 * @param {Run} run
 * @param {() => void} changed
 */
export function openEdit(run, changed) {
  const name = h('input', { type: 'text', '.value': run.name ?? '' })
  const tags = h('input', { type: 'text', spellcheck: 'false', '.value': (run.tags ?? []).join(' ') })
  const notes = h('textarea', { rows: '5', '.value': run.notes ?? '' })
  openDialog({
    title: 'Name, tags and notes',
    content: [
      field('Name', name),
      field('Tags', tags, 'Separated by blanks: letters, digits and - _ . : /'),
      field('Notes', notes, 'Everybody who can see the run can read its notes.'),
    ],
    action: 'Save',
    run: async () => {
      await api.patch(`/api/runs/${run.id}`, {
        name: name.value.trim() || null, notes: notes.value.trim() || null, tags: tags.value.split(/[\s,]+/).filter(Boolean),
      })
      toast('Saved.')
      changed()
    },
  })
}
