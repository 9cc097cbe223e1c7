"""Command line."""

import argparse
import sys

from .backup import backup
from .errors import StoreError
from .store import SEGMENT_BYTES, Store


def main(argv):
    parser = argparse.ArgumentParser(prog="kv.py", description="Key-value store.")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--segment-bytes", type=int, default=SEGMENT_BYTES, metavar="N")
    parser.add_argument("--backup", metavar="FILE")
    options = parser.parse_args(argv)
    try:
        if options.backup is not None:
            backup(options.folder, options.backup)
            return 0
        store = Store(options.folder, options.segment_bytes)
    except StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    lines = (line.rstrip("\n") for line in sys.stdin)
    for line in lines:
        if line == "quit":
            break
        try:
            answer = executed(store, line, lines)
        except StoreError as error:
            answer = f"error: {error}"
        if answer is not None:
            print(answer, flush=True)
    store.close()
    return 0


def executed(store, line, lines):
    """Executes a command and returns its answer."""
    command, _, rest = line.partition(" ")
    if command in ("put", "delete"):
        key, value = operation(line)
        if value is None:
            return "ok" if store.delete(key) else "none"
        store.put(key, value)
        return "ok"
    if command == "get":
        value = store.get(rest.encode("utf-8"))
        return "none" if value is None else f"value {value.decode('utf-8')}"
    if command == "keys":
        return " ".join(["keys", *(key.decode("utf-8") for key in store.keys())])
    if command == "segments":
        return " ".join(["segments", *map(str, store.manifest.segments)])
    if command == "compact":
        try:
            first, last = map(int, rest.split())
        except ValueError:
            raise StoreError("usage: compact FIRST LAST") from None
        return f"ok {store.compact(first, last)}"
    if command == "batch":
        return batch(store, lines)
    raise StoreError(f"unknown command `{command}`")


def batch(store, lines):
    operations = []
    error = None
    for line in lines:
        if line == "end":
            if error is not None:
                raise error
            if operations:
                store.write(operations)
            return "ok"
        try:
            operations.append(operation(line))
        except StoreError as raised:
            error = error or raised
    return None


def operation(line):
    """Returns the key and the value of a `put` line; the value of a `delete` line is `None`."""
    command, _, rest = line.partition(" ")
    key, space, value = rest.partition(" ")
    if not key or command not in ("put", "delete") or bool(space) != (command == "put"):
        raise StoreError(f"invalid operation `{line}`")
    return key.encode("utf-8"), value.encode("utf-8") if space else None
