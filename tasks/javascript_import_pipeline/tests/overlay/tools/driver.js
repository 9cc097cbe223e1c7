// Drives the stages for requests in JSON, one per line, and reports what happened since the last one.
import { getEventListeners } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";

import { batches } from "../src/batches.js";
import { enrich } from "../src/enrich.js";
import { importFile } from "../src/import.js";
import { readLines } from "../src/reader.js";

let events = [];
const log = (text) => events.push(text);
const text = (error) => (error instanceof Error ? error.message : String(error));

async function settle(rounds = 8) {
  for (let i = 0; i < rounds; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

// A source that delivers what the requests say.
let requests = [];
const source = {
  [Symbol.asyncIterator]() {
    return this;
  },
  next() {
    log("requested");
    return new Promise((resolve, reject) => requests.push({ resolve, reject }));
  },
  return() {
    log("closed");
    return Promise.resolve({ done: true, value: undefined });
  },
};

const lookups = new Map();
const controller = new AbortController();
let stage;

function lookup(sku, { signal }) {
  log(`lookup ${sku}`);
  const entry = {};
  lookups.set(sku, entry);
  const isOver = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject })).finally(() => {
    entry.isOver = true;
  });
  signal.addEventListener("abort", () => entry.isOver || log(`abort ${sku}`));
  return isOver;
}

function itemText({ sku, record, reason }) {
  return `${sku} ${record === undefined ? `(${reason})` : record.category}`;
}

// What an import did that `wait` hasn't reported, and the call of `onBatch` that waits.
const steps = [];
let held;
let begun = 0;

const operations = {
  enrich: ({ concurrency }) => {
    stage = enrich(source, lookup, { concurrency, signal: controller.signal });
  },
  batches: ({ size }) => {
    stage = batches(source, size);
  },
  pull: () => {
    stage.next().then(
      ({ done, value }) => log(done ? "end" : `got ${Array.isArray(value) ? value.join(",") : itemText(value)}`),
      (error) => log(`failed: ${text(error)}`),
    );
  },
  stop: () => {
    stage.return().then(() => log("stopped"));
  },
  give: ({ item }) => requests.shift().resolve({ done: false, value: item }),
  end: () => requests.shift().resolve({ done: true, value: undefined }),
  fail: ({ message }) => requests.shift().reject(new Error(message)),
  found: ({ sku, category }) => lookups.get(sku).resolve(category),
  broken: ({ sku, message }) => lookups.get(sku).reject(new Error(message)),
  abort: ({ reason }) => controller.abort(reason),
  listeners: () => getEventListeners(controller.signal, "abort").length,
  async read({ base64, chunkBytes, offset, count }) {
    // Reads lines from memory; tells how many reads there were after each line.
    const content = Buffer.from(base64, "base64");
    let reads = 0;
    const file = {
      async read(buffer, at, length, position) {
        reads += 1;
        const bytesRead = content.copy(buffer, at, position, Math.min(content.length, position + length));
        return { bytesRead, buffer };
      },
    };
    const lines = [];
    for await (const line of readLines(file, { offset, chunkBytes })) {
      lines.push({ line, reads });
      if (lines.length === count) break;
    }
    return lines.map(({ line: { bytes, end }, reads: after }) => [bytes.toString("latin1"), end, after]);
  },
  async import({ options, isHeld, table, isSilent }) {
    const answer = async (sku, { signal }) => {
      begun += 1;
      if (isSilent) {
        signal.addEventListener("abort", () => log(`abort ${sku}`));
        return new Promise(() => {});
      }
      await settle(1);
      return table[sku] ?? null;
    };
    const onBatch = (state) => {
      steps.push(`batch ${state.batches}`);
      if (!isHeld) return undefined;
      return new Promise((resolve, reject) => {
        held = { resolve, reject };
      });
    };
    importFile({ ...options, lookup: answer, onBatch, signal: controller.signal }).then(
      (state) => steps.push(`settled, ${state.done ? "done" : "not done"}`),
      (error) => steps.push(`failed: ${text(error)}`),
    );
  },
  // Waits for the next call of `onBatch` or the end of the import. Returns that and the number of lookups.
  async wait() {
    while (steps.length === 0) await settle(1);
    await settle(200);
    return [steps.shift(), begun];
  },
  async lookups({ count }) {
    while (begun < count) await settle(1);
    return begun;
  },
  go: ({ result }) => held.resolve(result),
  go_wrong: ({ message }) => held.reject(new Error(message)),
  open_files: ({ folder }) =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).includes(`/${folder}/`);
      } catch {
        return false;
      }
    }).length,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...rest } = JSON.parse(line);
  const value = await operations[op](rest);
  await settle();
  const happened = events;
  events = [];
  process.stdout.write(`${JSON.stringify({ result: { value: value ?? null, events: happened } })}\n`);
}
process.exit(0);
