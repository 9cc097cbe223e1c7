"""Command line."""

import argparse
import sys

from .errors import UsageError
from .pipeline import NAMES, run

PROGRAM = "report.py"


def main(argv):
    try:
        options = arguments(argv)
        text = run(options.files or ["-"], options.report or NAMES, options)
        write(text, options.output)
    except UsageError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    return 0


def arguments(argv):
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Prints reports on a ledger.")
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--report", action="append", metavar="NAME")
    parser.add_argument("--account", metavar="NAME")
    parser.add_argument("--top", type=positive, default=3, metavar="N")
    parser.add_argument("--output", metavar="FILE")
    return parser.parse_args(argv)


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def write(text, path):
    if path is None:
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
