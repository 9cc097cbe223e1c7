/** Dialogs of the actions on a run: each asks, does it, and tells what happened. */

import { toast } from '../../core/states.js'
import { api } from '../../core/api.js'
import { field, h } from '../../core/dom.js'
import { router } from '../../core/router.js'
import { canOf } from '../../core/run-facts.js'
import { openDialog } from '../../components/dialog.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('./actions.js').Changed} Changed */

/**
 * @param {Run} run
 * @param {Changed} changed
 */
export function openCancel(run, changed) {
  openDialog({
    title: 'Cancel this run?',
    content: h('p', null, 'No further sample is asked. Answers that have arrived are kept, and the run can be requeued later.'),
    action: 'Cancel the run', danger: true,
    run: async () => {
      await api.post(`/api/runs/${run.id}/cancel`)
      toast('The run is being canceled.')
      changed()
    },
  })
}

const REQUEUE = {
  resume: ['Resume this run?', 'Resume', 'The process that ran it has ended. This server continues it; finished samples are kept.'],
  requeue: ['Requeue failures?', 'Requeue', 'Samples without a grade are asked again. Grades are kept.'],
  errors: ['Requeue errors?', 'Requeue', 'Samples that ended with an infrastructure error are asked again. Everything else is kept.'],
}

/**
 * @param {Run} run
 * @param {'resume' | 'requeue' | 'errors'} kind
 * @param {Changed} changed
 */
export function openRequeue(run, kind, changed) {
  const can = canOf(run)
  const [title, action, text] = REQUEUE[kind]
  const key = h('input', { type: 'password', autocomplete: 'off', required: true })
  const judgeKey = h('input', { type: 'password', autocomplete: 'off' })
  const userKey = h('input', { type: 'password', autocomplete: 'off' })
  const usd = h('input', { type: 'number', min: '0', step: 'any', inputmode: 'decimal', '.value': run.budget?.usd ?? '' })
  const tokens = h('input', { type: 'number', min: '1', step: '1', inputmode: 'numeric', '.value': run.budget?.tokens ?? '' })
  openDialog({
    title, action,
    content: [
      h('p', null, text),
      can.needs_key && field('Key of the model\'s provider', key, 'It was deleted when the run ended. It is sent for this run only.'),
      can.needs_judge_key && field('Key of the judge\'s provider', judgeKey),
      can.needs_user_key && field('Key of the user model\'s provider', userKey),
      run.budget && [
        h('p', { class: 'hint' }, 'The budget counts everything that the run ever spent.'),
        field('Budget in US dollars', usd), field('Budget in tokens', tokens),
      ],
    ],
    run: async () => {
      /** @type {Api.RequeueBody} */
      const body = {}
      if (kind === 'errors') body.errors = true
      if (usd.value && Number(usd.value) !== run.budget?.usd) body.budget_usd = Number(usd.value)
      if (tokens.value && Number(tokens.value) !== run.budget?.tokens) body.budget_tokens = Number(tokens.value)
      await api.post(`/api/admin/runs/${run.id}/requeue`, body, { headers: {
        authorization: can.needs_key ? `Bearer ${key.value.trim()}` : null,
        'x-judge-authorization': judgeKey.value ? `Bearer ${judgeKey.value.trim()}` : null,
        'x-user-authorization': userKey.value ? `Bearer ${userKey.value.trim()}` : null,
      } })
      toast(kind === 'resume' ? 'The run continues.' : 'The samples are queued again.')
      changed()
    },
  })
}

/** @param {Run} run */
export function openDelete(run) {
  openDialog({
    title: 'Delete this run?',
    content: h('p', null, 'Its scores, answers and exports are removed from the server for good. Archives that were downloaded stay valid.'),
    action: 'Delete the run', danger: true,
    run: async () => {
      await api.delete(`/api/runs/${run.id}`)
      toast('The run was deleted.')
      router.go('/runs')
    },
  })
}
