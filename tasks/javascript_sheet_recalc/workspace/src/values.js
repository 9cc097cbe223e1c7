/**
 * A cell's value is a number, a string, a boolean, `null` for an empty cell, or an `ErrorValue`.
 */
export class ErrorValue {
  constructor(code) {
    this.code = code;
  }

  toJSON() {
    return { error: this.code };
  }
}

export const ERROR_CODES = ["#CYCLE!", "#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!"];

export function isError(value) {
  return value instanceof ErrorValue;
}

export function sameValue(a, b) {
  if (isError(a) && isError(b)) return a.code === b.code;
  return a === b;
}

export function toNumber(value) {
  if (isError(value)) return value;
  if (value === null) return 0;
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" ? value : new ErrorValue("#VALUE!");
}

export function toText(value) {
  if (isError(value)) return value;
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  return String(value);
}

export function finite(number) {
  return Number.isFinite(number) ? number : new ErrorValue("#NUM!");
}
