import fs from "node:fs";

const LF = 0x0a;
const CR = 0x0d;
const MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Reads the lines of an open file, beginning at a position in bytes.
 *
 * Calls `onLine(line, next)` for each line, where a line has `bytes` (without its end) and `end` (the position behind it); the next line
 * comes when `next` was called. Calls `onEnd(error)` at the end.
 */
export function readLines(fd, { offset = 0, chunkBytes = 65536 }, onLine, onEnd) {
  let position = offset;
  let lineStart = offset;
  let rest = Buffer.alloc(0);

  function readChunk() {
    const chunk = Buffer.alloc(chunkBytes);
    fs.read(fd, chunk, 0, chunkBytes, position, (error, count) => {
      if (error) return onEnd(error);
      if (count === 0) {
        if (rest.length === 0) return onEnd(null);
        const last = rest;
        rest = Buffer.alloc(0);
        return onLine(makeLine(last, lineStart + last.length), () => onEnd(null));
      }
      position += count;
      rest = Buffer.concat([rest, chunk.subarray(0, count)]);
      splitRest();
    });
  }

  function splitRest() {
    const end = rest.indexOf(LF);
    if (end < 0) return setImmediate(readChunk);
    const bytes = rest.subarray(0, end);
    const lineEnd = lineStart + end + 1;
    const line = makeLine(bytes, lineEnd);
    rest = rest.subarray(end + 1);
    lineStart = lineEnd;
    onLine(line, () => setImmediate(splitRest));
  }

  function makeLine(bytes, end) {
    let text = bytes;
    if (text.at(-1) === CR) text = text.subarray(0, -1);
    if (lineStart === 0 && text.subarray(0, 3).equals(MARK)) text = text.subarray(3);
    return { bytes: Buffer.from(text), end };
  }

  readChunk();
}
