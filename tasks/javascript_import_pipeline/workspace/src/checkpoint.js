import fs from "node:fs";

const VERSION = 2;

/** State of an import that hasn't begun. */
export function firstState(input) {
  return { input, offset: 0, line: 0, batches: 0, accepted: 0, rejected: 0, outBytes: 0, rejectBytes: 0, checksum: 1, done: false };
}

/** Reads a state file. Calls `callback(error, state)`; the state is `null` if there is no file. */
export function readState(file, callback) {
  fs.readFile(file, "utf8", (error, text) => {
    if (error?.code === "ENOENT") return callback(null, null);
    if (error) return callback(error);
    let state;
    try {
      const { version, checksum, ...rest } = JSON.parse(text);
      if (version !== VERSION) throw new Error(`version ${version} of \`${file}\` isn't supported`);
      state = { ...rest, checksum: parseInt(checksum, 16) };
    } catch (problem) {
      return callback(problem);
    }
    callback(null, state);
  });
}

export function writeState(file, state, callback) {
  const content = {
    version: VERSION,
    input: state.input,
    offset: state.offset,
    line: state.line,
    batches: state.batches,
    accepted: state.accepted,
    rejected: state.rejected,
    outBytes: state.outBytes,
    rejectBytes: state.rejectBytes,
    checksum: state.checksum.toString(16).padStart(8, "0"),
    done: state.done,
  };
  fs.writeFile(`${file}.tmp`, `${JSON.stringify(content, null, 2)}\n`, (error) => {
    if (error) return callback(error);
    fs.rename(`${file}.tmp`, file, callback);
  });
}
