"""Reading of records."""

import sys

from .errors import UsageError
from .values import from_json


def read(paths):
    """Yields the records of files; `-` is the standard input."""
    for path in paths or ["-"]:
        if path == "-":
            yield from parsed(path, sys.stdin)
            continue
        try:
            file = open(path, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        with file:
            yield from parsed(path, file)


def parsed(path, lines):
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = from_json(line)
        except ValueError:
            raise UsageError(f"{path}:{number}: the line is no JSON") from None
        if not isinstance(record, dict):
            raise UsageError(f"{path}:{number}: the line is no JSON object")
        yield record
