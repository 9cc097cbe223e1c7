/** Scores of a schedule's runs over time. */

import { historyChart } from '../../charts/history-chart.js'
import { interval, percent } from '../../core/format.js'

/** Planned times that have neither a score nor the prospect of one. */
const WITHOUT_SCORE = ['missed', 'not_started', 'ended']

/**
 * Makes the chart; null for fewer than two planned times.
 *
 * @param {Api.FiringView[]} firings
 */
export function historyFigure(firings) {
  const shown = firings.filter(({ status, score }) => score !== null || WITHOUT_SCORE.includes(status))
  if (shown.length < 2) return null
  const regressed = shown.filter(({ comparison }) => comparison?.regressed).length
  return historyChart({
    title: 'Overall score of each run',
    note: regressed > 0 ? '▼ marks a run that is worse than the one before, beyond what chance explains (95%).' : 'No run was worse than the one before beyond what chance explains (95%).',
    points: shown.map((firing) => ({
      time: firing.planned_at, value: firing.score, isRegression: firing.comparison?.regressed ?? false,
      note: firing.score === null ? firing.error ?? firing.run_status ?? firing.status : '',
      href: firing.run_id ? `/runs/${firing.run_id}` : null,
    })),
    format: (value) => percent(value),
    formatInterval: (low, high) => interval([low, high]),
  })
}
