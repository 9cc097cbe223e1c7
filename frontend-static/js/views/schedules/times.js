/** Planned times in words. */

const DAYS = ['Sundays', 'Mondays', 'Tuesdays', 'Wednesdays', 'Thursdays', 'Fridays', 'Saturdays', 'Sundays']
const NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/**
 * Describes a cron expression of a common form; others return null.
 *
 * @param {string} cron minute, hour, day of month, month, day of week
 * @returns {string | null}
 */
export function cronInWords(cron) {
  const [minute, hour, day, month, weekday, ...rest] = cron.trim().toUpperCase().split(/\s+/)
  if (rest.length > 0 || weekday === undefined || month !== '*') return null
  const every = /^\*\/(\d+)$/.exec(hour)
  if (every && day === '*' && weekday === '*' && /^\d+$/.test(minute)) {
    return minute === '0' ? `every ${every[1]} hours` : `every ${every[1]} hours, at minute ${minute}`
  }
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(hour)) return null
  const at = `at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (day === '*' && weekday === '*') return `every day ${at}`
  if (day === '*' && (weekday === 'MON-FRI' || weekday === '1-5')) return `Monday to Friday ${at}`
  if (day === '*') {
    const name = /^[0-7]$/.test(weekday) ? DAYS[Number(weekday)] : DAYS[NAMES.indexOf(weekday)]
    return name ? `${name} ${at}` : null
  }
  return weekday === '*' && /^\d+$/.test(day) ? `day ${day} of each month ${at}` : null
}

/**
 * Describes when a schedule runs.
 *
 * @param {{cron: string, time_zone: string}} schedule
 */
export function timesInWords({ cron, time_zone }) {
  return `${cronInWords(cron) ?? cron} (${time_zone})`
}
