/** Result of a verification: verdict, key, parts, differences, and the facts that are proven. */

import { h, uniqueId } from '../../core/dom.js'
import { dateTime, integer, percent } from '../../core/format.js'
import { cautionList, cautionsOf, modelLabel, modelOf } from '../../core/run-facts.js'
import { intervalFigure } from '../../components/figures.js'
import { differences } from '../../archive/differences.js'
import { partsOf } from '../../archive/parts.js'
import { runView } from '../../archive/run-view.js'
import { keyName } from './keys.js'

/** @typedef {import('../../core/run-facts.js').Run} Run */
/** @typedef {import('../../archive/verify.js').Verification} Verification */

const STATES = {
  valid: { kind: 'good', symbol: '✓', title: 'Valid' },
  'unknown-key': { kind: 'warn', symbol: '?', title: 'Intact, but signed by an unknown key' },
  invalid: { kind: 'bad', symbol: '✗', title: 'Not valid' },
}

/**
 * Makes the result.
 *
 * @param {Verification} verification
 * @param {{fileName: string, actions: import('../../core/dom.js').Child[], trust: () => void}} options `trust` adds the archive's own key.
 */
export function verdict(verification, { fileName, actions, trust }) {
  const { kind, symbol, title } = STATES[verification.state]
  const id = uniqueId('verdict')
  return h('section', { class: 'verdict', 'aria-labelledby': id },
    h('div', { class: `note ${kind}` },
      h('h2', { id, tabindex: '-1' }, h('span', { 'aria-hidden': 'true' }, `${symbol} `), `${title}: `, h('span', { class: 'file-name' }, fileName)),
      h('p', null, sentence(verification))),
    verification.state === 'unknown-key' && unknownKey(verification, trust),
    verification.state === 'valid' && facts(verification),
    actions.length > 0 && h('p', { class: 'actions' }, actions),
    differenceTable(verification),
    partTable(verification))
}

/** @param {Verification} verification */
function sentence({ state, signer, manifest, errors }) {
  if (state === 'valid' && signer) {
    return `Signed by key ${keyName(signer)}. Nothing was changed since ${dateTime(manifest?.generated_at)}.`
  }
  if (state === 'unknown-key') {
    return 'Nothing in it was changed after it was signed. Whether you can trust it depends on whose key this is.'
  }
  return errors.map(({ message }) => `${message}.`).join(' ')
}

/** @param {Verification} verification @param {() => void} trust */
function unknownKey({ ownKey }, trust) {
  if (!ownKey) return null
  return h('div', { class: 'unknown-key' },
    h('dl', { class: 'facts' },
      h('dt', null, 'Fingerprint'), h('dd', null, h('code', null, ownKey.fingerprint)),
      h('dt', null, 'Key'), h('dd', null, h('code', null, ownKey.base64))),
    h('p', null, 'Ask the sender for the key by another way, such as ', h('code', null, 'bench keys show'), ' on their machine, and compare it with this one.'),
    h('p', { class: 'actions' }, h('button', { type: 'button', class: 'button', on: { click: trust } }, 'It is their key: trust it in this tab')))
}

/** @param {Verification} verification */
function facts({ results, manifest }) {
  if (!results) return null
  const run = runView(results)
  const host = run.endpoint_host ? ` (${run.endpoint_host})` : ''
  return [
    h('dl', { class: 'facts' },
      h('dt', null, 'Run'), h('dd', null, h('code', null, run.id)),
      h('dt', null, modelLabel(run.model, run.benchmarks.map((b) => b.benchmark_name))), h('dd', null, `${modelOf(run)}${host}`),
      h('dt', null, 'Score'), h('dd', null, `${percent(run.overall_score)}${run.overall_score_label ? `, ${run.overall_score_label}` : ''}`),
      h('dt', null, 'Items'), h('dd', null, subset(run)),
      h('dt', null, 'Completed'), h('dd', null, dateTime(results.exportedAt)),
      manifest?.software?.version && [h('dt', null, 'Made by'), h('dd', null, `${manifest.software.name ?? ''} ${manifest.software.version}`)]),
    h('div', { class: 'scroll-x' }, h('table', { class: 'verify-benchmarks' },
      h('caption', { class: 'visually-hidden' }, 'Benchmarks of the archive'),
      h('thead', null, h('tr', null, ['Benchmark', 'Score and 95% interval', 'Coverage', 'Dataset', 'Protocol'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, run.benchmarks.map((b) => h('tr', null,
        h('th', { scope: 'row' }, b.benchmark_name),
        h('td', null, intervalFigure(b.score, b.interval), cautionList(cautionsOf(b))),
        h('td', { 'data-label': 'Coverage' }, percent(b.coverage)),
        h('td', { 'data-label': 'Dataset' }, b.dataset ? `${b.dataset.id} @ ${String(b.dataset.revision).slice(0, 12)}` : '–'),
        h('td', { 'data-label': 'Protocol' }, b.protocol_name ?? b.protocol ?? '–')))))),
  ]
}

/** @param {Run} run */
function subset(run) {
  const size = run.subset_count === null || run.subset_count === undefined ? `${run.subset_pct}% of each benchmark` : `${integer(run.subset_count)} of each benchmark`
  return run.subset_seed ? `${size}, seed ${run.subset_seed}` : size
}

/** Shows where changed results differ from what was signed. @param {Verification} verification */
function differenceTable({ isSigned, isIntact, manifest, results }) {
  if (!isSigned || isIntact || !manifest || !results) return null
  const found = differences(manifest, results)
  if (found.length === 0) {
    return h('p', null, 'None of the signed figures differs: the change is in texts or details of single items, which are signed only as a whole.')
  }
  const id = uniqueId('differences')
  return h('section', { class: 'differences', 'aria-labelledby': id },
    h('h3', { id }, 'What differs'),
    h('p', { class: 'hint' }, 'manifest.json is genuine. These figures in results.json contradict it; texts of items may have been changed as well.'),
    h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Table of what differs' }, h('table', null,
      h('thead', null, h('tr', null, ['Where', 'Signed', 'In results.json'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, found.map(({ what, signed, found: present }) => h('tr', null,
        h('th', { scope: 'row' }, what), h('td', null, h('code', null, signed)), h('td', null, h('code', null, present))))))))
}

/** @param {Verification} verification */
function partTable(verification) {
  const signs = { good: ['✓', 'Proven'], bad: ['✗', 'Differs'], unknown: ['–', 'Not proven'] }
  const id = uniqueId('parts')
  return h('section', { class: 'parts', 'aria-labelledby': id },
    h('h3', { id }, 'Parts of the archive'),
    h('ul', null, partsOf(verification).map(({ part, state, text }) => h('li', { class: state },
      h('span', { class: 'sign' }, h('span', { 'aria-hidden': 'true' }, signs[state][0]), h('span', { class: 'visually-hidden' }, `${signs[state][1]}: `)),
      h('code', null, part), h('span', null, text)))))
}
