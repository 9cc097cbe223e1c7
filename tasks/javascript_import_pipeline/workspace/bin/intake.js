import { importFile } from "../src/import.js";
import { openLookup } from "../src/lookup.js";

const USAGE =
  "usage: node bin/intake.js INPUT --table TABLE --out OUT [--batch N] [--concurrency N] [--chunk BYTES] [--stop-after N]";

function fail(message, status = 1) {
  process.stderr.write(`intake: ${message}\n`);
  process.exit(status);
}

function parseArguments(words) {
  const options = { batch: 100, concurrency: 4, chunk: 65536, "stop-after": Infinity };
  let input;
  for (let i = 0; i < words.length; i += 1) {
    const name = words[i].replace(/^--/, "");
    if (!words[i].startsWith("--")) {
      if (input !== undefined) fail(USAGE, 2);
      input = words[i];
    } else if (name === "table" || name === "out") {
      options[name] = words[++i];
    } else if (name in options && /^[1-9]\d*$/.test(words[i + 1] ?? "")) {
      options[name] = Number(words[++i]);
    } else {
      fail(USAGE, 2);
    }
  }
  if (input === undefined || options.table === undefined || options.out === undefined) fail(USAGE, 2);
  return { input, ...options };
}

const options = parseArguments(process.argv.slice(2));
let batches = 0;
let hasStopped = false;
openLookup(options.table, (error, lookup) => {
  if (error) return fail(error.message);
  importFile(
    {
      input: options.input,
      out: options.out,
      lookup,
      batch: options.batch,
      concurrency: options.concurrency,
      chunkBytes: options.chunk,
      onBatch(state, next) {
        batches += 1;
        process.stdout.write(`batch ${state.batches}: line ${state.line}, ${state.accepted} accepted, ${state.rejected} rejected\n`);
        hasStopped = batches >= options["stop-after"];
        next(hasStopped);
      },
    },
    (problem, state) => {
      if (problem) return fail(problem.message);
      if (hasStopped) return process.exit(3);
      process.stdout.write(`done: ${state.accepted} accepted, ${state.rejected} rejected\n`);
    },
  );
});
