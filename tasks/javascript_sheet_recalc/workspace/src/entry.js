import { parseFormula } from "./formula/parser.js";

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/**
 * Interprets what a user typed into a cell: `{ text, ast }` for a formula, `{ text, value }` for a constant.
 * Returns `null` for an empty entry. Throws a `RequestError` if a formula can't be parsed.
 */
export function parseEntry(text) {
  if (text === "") return null;
  if (text.startsWith("=")) return { text, ast: parseFormula(text) };
  if (text.startsWith("'")) return { text, value: text.slice(1) };
  if (NUMBER.test(text) && Number.isFinite(Number(text))) return { text, value: Number(text) };
  if (/^true$/i.test(text)) return { text, value: true };
  if (/^false$/i.test(text)) return { text, value: false };
  return { text, value: text };
}
