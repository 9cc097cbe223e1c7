/** Runs. */
import { h, replace } from '../core/dom.js'
import { api } from '../core/api.js'
/** @param {import('../core/view.js').Context} context */
export async function mount({ root, title, signal }) {
  title('Runs')
  const { runs } = await api.get('/api/runs', { signal })
  replace(root, h('h1', null, 'Runs'), h('ul', null, runs.map((/** @type {any} */ run) => h('li', null, h('a', { href: `/runs/${run.id}` }, run.model)))))
}
