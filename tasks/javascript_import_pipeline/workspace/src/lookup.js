import fs from "node:fs";

const ATTEMPTS = 3;

/**
 * Reads a lookup table: a JSON object with a category for each SKU. Calls `callback(error, lookup)`.
 *
 * In tables for trials, an entry `{ "category": TEXT, "failures": N }` fails N times before it succeeds.
 */
export function openLookup(file, callback) {
  fs.readFile(file, "utf8", (error, text) => {
    if (error) return callback(error);
    let table;
    try {
      table = JSON.parse(text);
    } catch (problem) {
      return callback(problem);
    }
    const failures = new Map();
    callback(null, (sku, done) => {
      setImmediate(() => {
        const entry = Object.hasOwn(table, sku) ? table[sku] : null;
        if (entry === null || typeof entry === "string") return done(null, entry);
        const count = failures.get(sku) ?? 0;
        if (count < entry.failures) {
          failures.set(sku, count + 1);
          return done(new Error("table is busy"));
        }
        done(null, entry.category);
      });
    });
  });
}

/** Looks a SKU up, up to three times. Calls `callback(error, category)`; the category is `null` if there is none. */
export function lookUpWithRetries(lookup, sku, callback, attempt = 1) {
  lookup(sku, (error, category) => {
    if (error && attempt < ATTEMPTS) return lookUpWithRetries(lookup, sku, callback, attempt + 1);
    callback(error, category);
  });
}
