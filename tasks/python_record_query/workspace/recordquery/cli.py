"""Command line."""

import argparse
import sys

from .errors import UsageError
from .filter import Condition, filtered
from .records import read
from .values import to_json

PROGRAM = "rq.py"


def main(argv):
    options = arguments(argv)
    try:
        rows = list(options.run(options))
    except UsageError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    for row in rows:
        print(to_json(row))
    return 0


def arguments(argv):
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Filters and queries on JSON records.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("filter", help="print the records that match all conditions")
    command.add_argument("--where", action="append", default=[], metavar="PATH=TEXT")
    command.add_argument("--select", metavar="PATH,PATH,...")
    command.add_argument("files", nargs="*", metavar="FILE")
    command.set_defaults(run=run_filter)
    return parser.parse_args(argv)


def run_filter(options):
    conditions = [Condition(text) for text in options.where]
    paths = options.select.split(",") if options.select else []
    return filtered(read(options.files), conditions, paths)
