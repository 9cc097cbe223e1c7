import fs from "node:fs";

/** Opens a file to append to it, and cuts it to `size` bytes. Calls `callback(error, sink)`. */
export function openSink(file, size, callback) {
  fs.open(file, size === 0 ? "w" : "r+", (error, fd) => {
    if (error) return callback(error);
    fs.ftruncate(fd, size, (problem) => {
      if (problem) return fs.close(fd, () => callback(problem));
      callback(null, new Sink(fd, size));
    });
  });
}

class Sink {
  #fd;

  constructor(fd, size) {
    this.#fd = fd;
    this.size = size;
  }

  append(bytes, callback) {
    if (bytes.length === 0) return setImmediate(callback, null);
    fs.write(this.#fd, bytes, 0, bytes.length, this.size, (error, count) => {
      if (error) return callback(error);
      this.size += count;
      if (count < bytes.length) return this.append(bytes.subarray(count), callback);
      fs.fsync(this.#fd, callback);
    });
  }

  close(callback) {
    fs.close(this.#fd, callback);
  }
}
