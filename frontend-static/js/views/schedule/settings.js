/** Settings of a schedule's runs as facts. */

import { PLAIN } from '../new-run/fields.js'
import { valueAt } from '../new-run/order.js'

const SHOWN_ELSEWHERE = ['subset_pct', 'subset_count', 'items', 'demo', 'name', 'tags', 'notes']

/**
 * @param {Api.ScheduleView} schedule
 * @returns {[string, string | null | undefined][]}
 */
export function settingsOf(schedule) {
  const items = schedule.items.length > 0 ? schedule.items.join(', ') : schedule.subset_count !== null ? `${schedule.subset_count} of each benchmark` : schedule.subset_pct === 100 ? 'all' : `${schedule.subset_pct}%`
  const set = PLAIN.filter(({ name }) => !/^(?:judge|user_model)\./.test(name) && !SHOWN_ELSEWHERE.includes(name)).map(({ name, label }) => {
    const value = valueAt(schedule, name)
    const isSet = value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)
    return /** @type {[string, string | null]} */ ([label,
      isSet ? (typeof value === 'object' ? JSON.stringify(value) : typeof value === 'number' ? value.toLocaleString() : String(value)) : null])
  })
  return [
    ['Tasks', schedule.tasks.join(', ')],
    ['Items', schedule.tasks.length > 0 ? null : items],
    ...set,
    ['Protocols', pairs(schedule.protocols)],
    ['Options', Object.entries(schedule.benchmark_options).map(([name, options]) => `${name}: ${pairs(options)}`).join('; ')],
    ['Judge', schedule.judge?.model],
    ['User model', /** @type {{user_model?: {model: string} | null}} */ (schedule).user_model?.model],
    ['Tags', schedule.tags.join(', ')],
    ['Notes', schedule.notes],
  ]
}

/** @param {Record<string, string>} map */
function pairs(map) {
  return Object.entries(map).map(([name, value]) => `${name} ${value}`).join(', ')
}
