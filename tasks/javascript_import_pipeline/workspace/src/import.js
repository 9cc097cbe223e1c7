import fs from "node:fs";
import path from "node:path";

import { firstState, readState, writeState } from "./checkpoint.js";
import { adler32 } from "./checksum.js";
import { createEnricher } from "./enrich.js";
import { readLines } from "./reader.js";
import { isBlank, parseRecord } from "./records.js";
import { openSink } from "./sink.js";

/**
 * Imports a file. Calls `onBatch(state, next)` after each batch; the import goes on when `next(stop)` was called without a true
 * value. Calls `callback(error, state)` at the end.
 */
export function importFile({ input, out, lookup, batch = 100, concurrency = 4, chunkBytes, onBatch }, callback) {
  const stateFile = `${out}.state`;
  const name = path.basename(input);
  let state;
  let fd;
  let outSink;
  let rejectSink;
  let isOver = false;

  readState(stateFile, (error, found) => {
    if (error) return callback(error);
    state = found ?? firstState(name);
    if (state.input !== name) return callback(new Error(`\`${stateFile}\` belongs to \`${state.input}\``));
    if (state.done) return callback(null, state);
    fs.open(input, "r", (problem, opened) => {
      if (problem) return callback(problem);
      fd = opened;
      openSink(out, state.outBytes, (failure, sink) => {
        if (failure) return finish(failure);
        outSink = sink;
        openSink(`${out}.rejects`, state.rejectBytes, (trouble, second) => {
          if (trouble) return finish(trouble);
          rejectSink = second;
          run();
        });
      });
    });
  });

  function finish(error) {
    if (isOver) return;
    isOver = true;
    const closers = [
      (done) => fs.close(fd, done),
      (done) => (outSink ? outSink.close(done) : done()),
      (done) => (rejectSink ? rejectSink.close(done) : done()),
    ];
    let open = closers.length;
    for (const close of closers) {
      close(() => {
        open -= 1;
        if (open === 0) callback(error, state);
      });
    }
  }

  function run() {
    let line = state.line;
    let end = state.offset;
    let items = [];
    let isWriting = false;
    let hasEnded = false;
    let wantsMore = null;

    const enricher = createEnricher(lookup, concurrency, {
      onItem(item) {
        items.push(item);
        writeFullBatches();
      },
      onRoom() {
        if (isWriting || wantsMore === null) return;
        const next = wantsMore;
        wantsMore = null;
        next();
      },
      onEnd() {
        hasEnded = true;
        writeFullBatches();
      },
    });

    readLines(
      fd,
      { offset: state.offset, chunkBytes },
      (text, next) => {
        if (isOver) return;
        line += 1;
        end = text.end;
        if (isBlank(text.bytes)) return next();
        wantsMore = next;
        enricher.push({ line, end, bytes: text.bytes, ...parseRecord(text.bytes) });
      },
      (error) => (error ? finish(error) : enricher.end()),
    );

    function writeFullBatches() {
      if (isWriting || isOver) return;
      if (items.length >= batch) return writeBatch(items.splice(0, batch));
      if (!hasEnded) return;
      if (items.length > 0) return writeBatch(items.splice(0));
      state = { ...state, offset: end, line, done: true };
      writeState(stateFile, state, finish);
    }

    function writeBatch(chosen) {
      isWriting = true;
      const accepted = chosen.filter(({ record }) => record !== undefined);
      const rejected = chosen.filter(({ record }) => record === undefined);
      const outBytes = Buffer.from(accepted.map((item) => `${JSON.stringify(outputOf(item))}\n`).join(""));
      const rejectBytes = Buffer.concat(
        rejected.flatMap((item) => [Buffer.from(`${item.line}\t${item.reason}\t`), item.bytes, Buffer.from("\n")]),
      );
      outSink.append(outBytes, (error) => {
        if (error) return finish(error);
        rejectSink.append(rejectBytes, (problem) => {
          if (problem) return finish(problem);
          state = {
            ...state,
            offset: chosen.at(-1).end,
            line: chosen.at(-1).line,
            batches: state.batches + 1,
            accepted: state.accepted + accepted.length,
            rejected: state.rejected + rejected.length,
            outBytes: outSink.size,
            rejectBytes: rejectSink.size,
            checksum: adler32(outBytes, state.checksum),
          };
          writeState(stateFile, state, (failure) => {
            if (failure) return finish(failure);
            onBatch(state, (stop) => {
              isWriting = false;
              if (stop) return finish(null);
              writeFullBatches();
              if (!isWriting && wantsMore !== null) {
                const next = wantsMore;
                wantsMore = null;
                next();
              }
            });
          });
        });
      });
    }
  }
}

function outputOf({ line, record: { sku, title, cents, category } }) {
  return { line, sku, title, cents, category };
}
