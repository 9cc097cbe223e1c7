/** Pairs of colors that have to be readable, with the least contrast. */
export const PAIRS = [
  ["ink", "paper", 4.5],
  ["muted", "paper", 4.5],
  ["link", "paper", 4.5],
  ["line", "paper", 3],
  ["heat-none-ink", "heat-none", 4.5],
  ...[0, 1, 2, 3, 4].map((step) => [`heat-${step}-ink`, `heat-${step}`, 4.5]),
];

/** Returns the channels of `#rgb` or `#rrggbb` as numbers from 0 to 1. */
export function channels(color) {
  const digits = color.slice(1);
  const width = digits.length / 3;
  return [0, 1, 2].map((index) => parseInt(digits.slice(index * width, (index + 1) * width), 16) / 255);
}

/** Returns the relative luminance of a color. */
export function luminance(color) {
  const [r, g, b] = channels(color).map((c) => (c <= 0.04045 ? c / 12.92 : (c + 0.055) / 1.055));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Returns the WCAG contrast of two colors. */
export function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort();
  return (dark + 0.05) / (light + 0.05);
}
