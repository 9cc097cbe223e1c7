/** The order of the form as commands, to copy. */

import { api } from '../../core/api.js'
import { h } from '../../core/dom.js'
import { session } from '../../core/session.js'
import { copyBox } from '../../components/copy.js'
import { benchCommand, curlCommands } from './commands.js'
import { relevant } from './order.js'
import { runsPath } from './state.js'

/**
 * Makes the commands of the present order.
 *
 * @param {import('./state.js').OrderState} state
 */
export function orderCommands(state) {
  const hasOwnKey = state.key !== '' || api.key !== ''
  // Programs don't have the browser's sign-in: they need a key of their own in its place.
  const needsKey = !hasOwnKey && session.isSignedIn
  const hasKey = hasOwnKey || needsKey
  const bench = copyBox(benchCommand(relevant(state.order), state.sweep, needsKey))
  const curl = copyBox(curlCommands(state.runs.map(({ order }) => order), {
    path: needsKey ? runsPath('provider') : state.path, hasKey, hasJudgeKey: state.judgeKey !== '', hasUserKey: state.userKey !== '',
  }))
  return [
    h('h3', null, 'bench'), bench, h('h3', null, 'curl'), curl,
    needsKey ? h('p', { class: 'form-hint' }, 'Programs don’t have your sign-in. They need a key of the model’s provider, such as one of your Chutes account, and the runs belong to this key.') : null,
    hasKey || state.judgeKey || state.userKey ? h('p', { class: 'form-hint' }, 'Keys are read from ', h('code', null, 'BENCH_API_KEY'), ', ',
      h('code', null, 'BENCH_JUDGE_API_KEY'), ' and ', h('code', null, 'BENCH_USER_API_KEY'), '.') : null,
    h('p', { class: 'form-hint' }, 'Without ', h('code', null, '--server'), ', the first command runs in the terminal’s own process.'),
  ]
}
