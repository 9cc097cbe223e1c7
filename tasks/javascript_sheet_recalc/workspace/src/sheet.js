import { parseEntry } from "./entry.js";
import { RequestError } from "./errors.js";
import { evaluate } from "./formula/evaluate.js";
import { cellKey, cellName, keyCol, keyRow, parseReference } from "./refs.js";

/** A sheet whose formulas are evaluated each time that a value is read. */
export class Sheet {
  #cells = new Map();

  set(name, text) {
    const key = this.#key(name);
    const entry = parseEntry(text);
    if (entry) this.#cells.set(key, entry);
    else this.#cells.delete(key);
    return { changed: [] };
  }

  get(name) {
    const key = this.#key(name);
    return { text: this.#cells.get(key)?.text ?? "", value: this.#value(key) };
  }

  dump() {
    const keys = [...this.#cells.keys()].sort((a, b) => a - b);
    return keys.map((key) => [cellName(keyRow(key), keyCol(key)), this.#cells.get(key).text, this.#value(key)]);
  }

  #key(name) {
    const reference = typeof name === "string" ? parseReference(name) : null;
    if (!reference || name.includes("$")) throw new RequestError("bad_request", `\`${name}\` is not a cell`);
    return cellKey(reference.row, reference.col);
  }

  #value(key) {
    const cell = this.#cells.get(key);
    if (!cell) return null;
    if (!cell.ast) return cell.value;
    return evaluate(cell.ast, {
      value: (row, col) => this.#value(cellKey(row, col)),
      filled: (area) => this.#filled(area),
    });
  }

  *#filled({ top, bottom, left, right }) {
    for (let row = top; row <= bottom; row++) {
      for (let col = left; col <= right; col++) {
        const key = cellKey(row, col);
        if (this.#cells.has(key)) yield this.#value(key);
      }
    }
  }
}
