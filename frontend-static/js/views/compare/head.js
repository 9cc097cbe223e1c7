/** The compared runs with their scores, and what can be done with the selection. */

import { h, svg } from '../../core/dom.js'
import { dateTime, percent, shortId } from '../../core/format.js'
import { link } from '../../core/router.js'
import { agentOf, cautionList, modelOf, runCautionsOf } from '../../core/run-facts.js'
import { statusBadge, statusOf } from '../../core/outcomes.js'
import { shape } from '../../charts/chart.js'

/**
 * Makes the list of compared runs.
 *
 * @param {import('./load.js').Compared[]} all
 * @param {string} base path of the view
 */
export function runList(all, base) {
  const to = (/** @type {string[]} */ ids) => `${base}?runs=${ids.join(',')}`
  const ids = all.map(({ id }) => id)
  return h('ol', { class: 'compare-runs', 'aria-label': 'Compared runs' }, all.map((compared) => {
    const { letter, label, series, run, problem, id, source } = compared
    const others = ids.filter((other) => other !== id)
    return h('li', null,
      h('span', { class: 'letter chart' }, svg('svg', { width: 12, height: 12, 'aria-hidden': 'true' }, shape(series, 6, 6)), h('b', null, letter)),
      h('div', null,
        h('p', { class: 'name' }, link(source.runPath(), label), series === 0 && h('span', { class: 'tag' }, 'baseline'), run.status !== 'succeeded' && statusBadge(statusOf(run))),
        h('p', { class: 'hint' }, facts(compared), run.endpoint_host ? `${run.endpoint_host}, ` : '', h('code', null, shortId(id)), `, ${dateTime(run.created_at)}`),
        cautionList(runCautionsOf(run)),
        problem && h('p', { class: 'problem' }, `Not compared: ${problem}`)),
      h('div', { class: 'compare-score' }, h('b', null, percent(run.overall_score)), h('span', { class: 'hint' }, run.overall_score_label ?? '')),
      h('div', { class: 'actions' },
        series > 0 && h('a', { class: 'button small', href: to([id, ...others]), 'aria-label': `As baseline: ${letter}` }, 'As baseline'),
        all.length > 2 && h('a', { class: 'button small', href: to(others), 'aria-label': `Remove run ${letter}` }, 'Remove')))
  }))
}

/** Returns name, model and agent of a run where its label doesn't say them. @param {import('./load.js').Compared} compared */
function facts({ run, label }) {
  return [run.name, modelOf(run), agentOf(run)].filter((text) => text && !label.startsWith(text) && !label.endsWith(` ${text}`)).map((text) => `${text}, `).join('')
}

/**
 * Says which benchmarks only some of the runs have; null if all have the same.
 *
 * @param {import('./load.js').Compared[]} all
 */
export function onlyInSome(all) {
  const texts = all.flatMap(({ comparison, letter }) => {
    if (!comparison) return []
    const { only_in_a: a, only_in_b: b } = comparison
    return [a.length > 0 && `Only A has ${a.join(', ')}${all.length > 2 ? `, compared with ${letter}` : ''}.`, b.length > 0 && `Only ${letter} has ${b.join(', ')}.`].filter(Boolean)
  })
  return texts.length > 0 ? h('p', { class: 'hint' }, [...new Set(texts)].join(' '), ' These scores aren’t compared.') : null
}
