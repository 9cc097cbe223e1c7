const STEPS = 5;

/** The scale of a table's heatmap. `step` returns a value's step, or `none`. */
export function heatScale(values) {
  const numbers = values.map(Number).sort();
  const min = numbers[0];
  const max = numbers[numbers.length - 1];
  const width = (max - min) / STEPS;
  return {
    min,
    max,
    step: (value) => Math.floor((value - min) / width),
    begins: Array.from({ length: STEPS }, (_, index) => min + index * width),
    hasGaps: values.includes(undefined),
  };
}
