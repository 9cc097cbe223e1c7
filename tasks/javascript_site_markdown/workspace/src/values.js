/** A text that is HTML already. */
export class Html {
  constructor(text) {
    this.text = text;
  }
}

/** Returns the value at a path of names; `undefined` if there is none. */
export function lookup(data, path) {
  let value = data;
  for (const name of path) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

export function isTrue(value) {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Returns a value as text. */
export function toText(value) {
  if (value === undefined || value === null) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") throw new Error(`can't print ${Array.isArray(value) ? "a list" : "an object"}`);
  return String(value);
}
