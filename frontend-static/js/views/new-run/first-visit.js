/** Offer for an empty system: a run that takes seconds and needs no key, and the form for a run of one's own. */

import { api } from '../../core/api.js'
import { h, painted, replace, useStyles } from '../../core/dom.js'
import { failure, problem, withModule } from '../../core/states.js'
import { router } from '../../core/router.js'
import { session, signInAddress } from '../../core/session.js'
import { openKeyDialog } from '../../frame.js'

/** Order of the first run: two benchmarks of different kinds, with answers from the dataset itself. */
const ORDER = { model_id: 'oracle', selected_benchmarks: ['mmlu_pro', 'ifbench'], demo: true, name: 'First run' }

/**
 * Shows the offer.
 *
 * @param {HTMLElement} root
 * @param {{signal: AbortSignal}} context
 */
export async function showFirstVisit(root, { signal }) {
  await useStyles('views/new-run.css')
  const errors = h('div', null)
  const button = h('button', { type: 'button', class: 'button primary' }, 'Run the demo')
  let isOrdered = false
  /** @type {Error | null} */
  let failed = null
  // The server knows who may order it, except by a key of the page, which only an order tells.
  const show = () => {
    const isAllowed = session.state?.may_order_oracle !== false || api.key || api.adminSecret
    button.disabled = isOrdered || !isAllowed
    button.textContent = isOrdered ? 'Starting…' : 'Run the demo'
    replace(errors, ...(isOrdered ? [] : !isAllowed ? notAllowed() : failed ? refusal(failed) : []))
  }
  button.addEventListener('click', async () => {
    isOrdered = true
    failed = null
    show()
    try {
      /** @type {Api.CreatedView} */
      const run = await api.post('/api/runs', ORDER, { signal })
      router.go(`/runs/${run.id}`)
    } catch (error) {
      if (signal.aborted) return
      isOrdered = false
      failed = /** @type {Error} */ (error)
      show()
    }
  })
  session.addEventListener('change', show, { signal })
  // With another key, the order may not fail again.
  api.addEventListener('key', () => { failed = null; show() }, { signal })
  show()
  const form = h('div', { class: 'view' })
  replace(root,
    h('div', { class: 'view-head' }, h('h1', null, 'Run benchmarks'),
      h('p', { class: 'sub' }, 'Measure language models on published benchmarks, by their authors’ protocols, with signed results that others can check.')),
    h('section', { class: 'first-visit', 'aria-labelledby': 'first-visit' },
      h('h2', { id: 'first-visit' }, 'No runs yet. See one in a few seconds'),
      h('p', null, 'The demo answers about 60 bundled questions with their own solutions: no account, no cost, and on your own machine no key. You will see progress, scores with intervals, single items, and a signed archive to verify. Its scores say nothing about a model.'),
      errors, h('p', { class: 'actions' }, button)),
    form)
  // The offer doesn't wait for the form.
  void painted().then(() => {
    if (signal.aborted) return
    pageStart.preload('/new')
    void withModule(() => import('../new-run.js'), ({ mountOrderForm }) => {
      const show = () => {
        mountOrderForm(form, { signal, heading: 'Configure benchmark run', level: 'h2', keepsAddress: false })
          .catch((error) => { if (!signal.aborted) replace(form, failure(error, show)) })
      }
      show()
    })
  })
}

/** @param {Error & {code?: string | null}} error */
function refusal(error) {
  return error.code === 'order_not_allowed' || error.code === 'missing_credentials' ? notAllowed() : [problem(error)]
}

/** Says who may run the demo, and lets a reader identify right there. */
function notAllowed() {
  return [h('p', { class: 'problem', role: 'status' }, 'On this server, only its operator and listed callers may run the demo.'),
    h('p', { class: 'actions' }, session.isOffered && h('a', { class: 'button', href: signInAddress() }, 'Sign in with Chutes'),
      h('button', { type: 'button', class: 'button', on: { click: openKeyDialog } }, 'Enter key'))]
}
