/** Writes a number with at most two decimals. */
export function formatNumber(value) {
  return value ? String(Math.round(value * 100) / 100) : "n/a";
}

/** The sum of the values that aren't `null`; `null` if all are. */
export function total(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0);
}
