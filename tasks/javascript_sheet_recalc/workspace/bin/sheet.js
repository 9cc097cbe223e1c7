#!/usr/bin/env node
// Answers requests for one sheet: a JSON object per line on stdin, a JSON object per line on stdout. See README.md.
import { createInterface } from "node:readline";
import { RequestError } from "../src/errors.js";
import { counters } from "../src/formula/evaluate.js";
import { Sheet } from "../src/sheet.js";

const sheet = new Sheet();

const operations = {
  set: ({ cell, text }) => sheet.set(cell, text),
  get: ({ cell }) => sheet.get(cell),
  dump: () => sheet.dump(),
  stats: () => ({ evaluations: counters.evaluations }),
};

function answer(line) {
  try {
    const request = JSON.parse(line);
    const operation = Object.hasOwn(operations, request.op) ? operations[request.op] : null;
    if (!operation) throw new RequestError("bad_request", `unknown operation \`${request.op}\``);
    return { result: operation(request) };
  } catch (error) {
    if (error instanceof RequestError) return { error: error.kind, message: error.message };
    return { error: "internal", message: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(answer(line)) + "\n");
}
