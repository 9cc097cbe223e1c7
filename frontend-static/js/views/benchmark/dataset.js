/** Where a benchmark's items come from. */

import { h } from '../../core/dom.js'
import { bytes, integer, plural } from '../../core/format.js'
import { bullets, digest, facts, outside } from './facts.js'

/**
 * @param {Api.DatasetFacts} dataset
 * @param {string} demoItems number of items of the demo data
 */
export function datasetSection(dataset, demoItems) {
  const origin = `https://${dataset.on_github ? 'github.com' : 'huggingface.co/datasets'}/${dataset.id}`
  const places = dataset.places ?? []
  // No hub has it: it comes with the program.
  const isBundled = dataset.id === ''
  return h('section', { 'aria-labelledby': 'dataset' },
    h('div', { class: 'section-head' }, h('h2', { id: 'dataset' }, 'Dataset')),
    facts([
      ['Source', isBundled ? 'comes with this program' : outside(origin, dataset.id)],
      places.length > 0 && ['Places', bullets(places)],
      ['Items', dataset.items > 0 ? integer(dataset.items) : 'not known before it is loaded'],
      !isBundled && ['Demo data', `${demoItems} bundled items, whose scores say nothing about the benchmark`],
      !isBundled && ['Revision', dataset.pinned_revision ? [h('code', null, dataset.pinned_revision),
        ' pinned by the protocol'] : 'the latest one at the hub; each run records which'],
      ['License', dataset.licence],
      dataset.gated && ['Access', ['gated: its terms must be accepted',
        dataset.terms_url && [' at ', outside(dataset.terms_url, dataset.terms_url.replace('https://', ''))]]],
      ['Item ids', dataset.item_id],
      ['Further data', dataset.support],
      ['Documents', dataset.documents],
      dataset.attachments?.length > 0 && ['Attachments', bullets(dataset.attachments)],
      ['Stored here', stored(dataset.stored ?? [])],
    ]))
}

/** @param {Api.StoredDataset[]} copies */
function stored(copies) {
  if (copies.length === 0) return 'nothing yet; the first run stores it'
  return bullets(copies.map((copy) => [
    `${copy.source === 'hub' ? 'from the hub' : copy.source === 'demo' ? 'demo data' : copy.source === 'bundled' ? 'from this program' : 'from a file'}: ${plural(copy.items, 'item')}, ${bytes(copy.bytes)}, revision `,
    digest(copy.revision), ', content ', digest(copy.digest),
  ]))
}
