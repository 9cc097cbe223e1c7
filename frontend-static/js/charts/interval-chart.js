/** Values with their intervals, one per line: scores of runs, differences, scores by group. */

import { chart, shape } from './chart.js'
import { bottomAxis, label, line, whisker, widthOf } from './parts.js'
import { linear } from './scale.js'

/**
 * @typedef {object} Value
 * @property {number | null} value
 * @property {number | null} [low]
 * @property {number | null} [high]
 * @property {string} [note] what else belongs to it, such as `20 items`
 * @property {string | null} [href] view of it
 */

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {Value[]} values one per series
 */

/**
 * Makes a chart of values with intervals.
 *
 * @param {object} options
 * @param {string} options.title
 * @param {string} [options.note]
 * @param {string} options.column Name of the first column of the table.
 * @param {string[]} options.series Names of the series; one without a legend.
 * @param {Row[]} options.rows
 * @param {(value: number) => string} options.format Text of a value.
 * @param {(low: number, high: number) => string} options.formatInterval
 * @param {(value: number) => string} [options.formatTick]
 * @param {[number, number]} [options.domain] Ends of the axis; by default they follow from the data.
 * @param {number} [options.reference] Value with a line of its own, such as 0.
 * @param {(row: number) => number} [options.seriesOf] Series by which a row is drawn if there is one value per row.
 */
export function intervalChart(options) {
  const { title, note, column, series, rows, format, formatInterval } = options
  const several = series.length > 1
  const text = (/** @type {Value} */ { value, low, high }) => (value === null ? '–' : isNumber(low) && isNumber(high)
    ? `${format(value)} (${formatInterval(low, high)})` : format(value))
  return chart({
    title, note,
    legend: several ? series.map((name, index) => ({ label: name, series: index })) : [],
    draw: (width) => draw(width, { ...options, text }),
    table: {
      columns: [{ label: column }, ...series.flatMap((name) => [
        { label: several ? name : 'Value', isNumber: true }, { label: several ? `${name}: 95% interval` : '95% interval', isNumber: true },
      ]), ...(several || !rows.some((row) => row.values[0]?.note) ? [] : [{ label: 'Note' }])],
      rows: rows.map((row) => [row.label, ...row.values.flatMap(({ value, low, high }) => [
        value === null ? '–' : format(value), isNumber(low) && isNumber(high) ? formatInterval(low, high) : '–',
      ]), ...(several || !rows.some((other) => other.values[0]?.note) ? [] : [row.values[0]?.note ?? ''])]),
    },
  })
}

/** Height of one value, of the gap between rows, and of a label above its row, in pixels. */
const [LINE, GAP, LABEL] = [18, 10, 18]

/**
 * @param {number} width
 * @param {Parameters<typeof intervalChart>[0] & {text: (value: Value) => string}} options
 * @returns {import('./chart.js').Drawing}
 */
function draw(width, { rows, series, format, formatTick = format, domain, reference, text, seriesOf }) {
  const all = rows.flatMap((row) => row.values.flatMap(({ value, low, high }) => [value, low, high].filter(isNumber)))
  if (isNumber(reference)) all.push(reference)
  const ends = domain ?? [Math.min(...all, Infinity), Math.max(...all, -Infinity)]
  const isNarrow = width < 560
  const longest = Math.max(...rows.map((row) => widthOf(row.label)), 0)
  const left = isNarrow ? 8 : Math.min(longest + 16, width * 0.34)
  const valueWidth = series.length > 1 ? 0 : Math.max(...rows.map((row) => widthOf(text(row.values[0]))), 0) + 12
  const right = width - (isNarrow ? 12 : Math.max(valueWidth, 16))
  const scale = linear(Number.isFinite(ends[0]) ? ends : [0, 1], [left + 6, right - 6], { count: Math.max(2, Math.min(5, Math.floor((right - left) / 90))), isExact: Boolean(domain) })
  /** @type {SVGElement[]} */
  const shapes = []
  /** @type {import('./chart.js').Mark[]} */
  const marks = []
  // Vertical lines end below a label that stands above its row, so that they don't cross its text.
  /** @type {[number, number][]} */
  const spans = []
  let y = 6
  for (const [index, row] of rows.entries()) {
    if (isNarrow) {
      const side = series.length > 1 ? '' : text(row.values[0])
      // Names of models differ at their end, so they are cut only if a line of their own is too short.
      const isStacked = widthOf(row.label) + widthOf(side) + 12 > width
      shapes.push(label(row.label, { x: 0, y: y + 12, width: isStacked ? width : Infinity }))
      if (isStacked && side) y += LABEL
      shapes.push(label(side, { x: width, y: y + 12, class: 'end number' }))
      y += LABEL
      spans.push([y, y + LINE * row.values.length])
    } else {
      shapes.push(label(row.label, { x: left - 8, y: y + LINE * row.values.length / 2 + 4, class: 'end', width: left - 8 }))
      if (series.length === 1) shapes.push(label(text(row.values[0]), { x: width, y: y + LINE / 2 + 4, class: 'end number' }))
    }
    for (const [at, value] of row.values.entries()) {
      const middle = y + LINE / 2
      const kind = seriesOf ? seriesOf(index) : at
      if (isNumber(value.low) && isNumber(value.high)) {
        shapes.push(...whisker(scale.to(clamp(value.low, scale)), scale.to(clamp(value.high, scale)), middle, kind))
      }
      if (value.value !== null) {
        const x = scale.to(value.value)
        shapes.push(shape(kind, x, middle))
        const name = series.length > 1 ? `${row.label}, ${series[at]}` : row.label
        marks.push({ x, y: middle, text: `${name}: ${text(value)}${value.note ? `, ${value.note}` : ''}`, href: value.href })
      }
      y += LINE
    }
    y += GAP
  }
  if (!isNarrow) spans.push([0, y])
  const under = bottomAxis(scale, formatTick, { spans, bottom: y, right })
  if (isNumber(reference)) under.push(...spans.map(([top, bottom]) => line(scale.to(reference), top, scale.to(reference), bottom, 'chart-reference')))
  return { height: y + 24, shapes: [...under, ...shapes], marks }
}

/** @param {unknown} value @returns {value is number} */
function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value)
}

/** @param {number} value @param {import('./scale.js').Scale} scale */
function clamp(value, { low, high }) {
  return Math.max(low, Math.min(value, high))
}
