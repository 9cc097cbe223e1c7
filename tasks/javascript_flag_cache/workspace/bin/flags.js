#!/usr/bin/env node
// Answers requests: a JSON object per line on stdin, a JSON object per line on stdout. See README.md.
import { createInterface } from "node:readline";
import { RequestError } from "../src/errors.js";
import { Evaluator } from "../src/evaluator.js";
import { Store } from "../src/store.js";

const store = new Store();
const evaluator = new Evaluator(store);

const operations = {
  put_flag: ({ flag }) => ({ version: store.putFlag(flag).version }),
  patch_rule: ({ flag, rule, set }) => ({ version: store.patchRule(flag, rule, set).version }),
  delete_flag: ({ key }) => ({ deleted: store.deleteFlag(key) }),
  get_flag: ({ key }) => store.flag(key) ?? notFound(key),
  put_segment: ({ segment }) => ({ version: store.putSegment(segment).version }),
  delete_segment: ({ key }) => ({ deleted: store.deleteSegment(key) }),
  export: () => ({ flags: store.flags(), segments: store.segments() }),
  import: ({ flags = [], segments = [] }) => {
    store.replaceAll(flags, segments);
    return { flags: flags.length, segments: segments.length };
  },
  evaluate: ({ flag, context }) => evaluator.evaluate(flag, context),
  stats: () => evaluator.stats(),
};

function notFound(key) {
  throw new RequestError("not_found", `no flag \`${key}\``);
}

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
