/** Parts of the run view that no reader sees first: hidden tabs, what is below the items, and what is only printed. */

export { errorsOf } from './errors.js'
export { eventLog } from './events.js'
export { figuresOf } from './figures.js'
export { groupsOf } from './groups.js'
export { judgings } from './judgings.js'
export { printReport } from './report.js'
export { settingsOf } from './settings.js'
