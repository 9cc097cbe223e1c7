"""Command line: prints a report about a book."""

import argparse
import sys

from . import documents, reports
from .errors import BookError


def parser():
    top = argparse.ArgumentParser(prog="ledger", description="Prints a report about a book.")
    commands = top.add_subparsers(dest="report", required=True)
    commands.add_parser("journal").add_argument("book")
    for name in ("trial-balance", "receivables"):
        command = commands.add_parser(name)
        command.add_argument("book")
        command.add_argument("--as-of")
    command = commands.add_parser("tax")
    command.add_argument("book")
    command.add_argument("--from", dest="first")
    command.add_argument("--to", dest="last")
    return top


def optional_date(text):
    return None if text is None else documents.parse_date(text)


def report_lines(options):
    with open(options.book, encoding="utf-8") as file:
        book = documents.load(file)
    if options.report == "journal":
        return list(reports.journal(book))
    if options.report == "trial-balance":
        return list(reports.trial_balance(book, optional_date(options.as_of)))
    if options.report == "receivables":
        return list(reports.receivables(book, optional_date(options.as_of)))
    return list(reports.tax(book, optional_date(options.first), optional_date(options.last)))


def main():
    options = parser().parse_args()
    try:
        lines = report_lines(options)
    except (BookError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
