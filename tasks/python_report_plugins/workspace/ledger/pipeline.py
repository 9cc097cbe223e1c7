"""Reads the ledger and produces the reports."""

import itertools
import sys

from .errors import UsageError
from .money import euros
from .records import parse

NAMES = ("listing", "daily", "summary", "averages", "top", "refunds", "outliers")

# A record is an outlier if it is larger than this many times the mean of its account.
OUTLIER_FACTOR = 3


def load(path):
    """Returns all records of a file; `-` is the standard input."""
    if path == "-":
        return parsed(path, sys.stdin)
    try:
        file = open(path, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    with file:
        return parsed(path, file)


def parsed(path, lines):
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(parse(line))
        except ValueError as error:
            raise UsageError(f"{path}:{number}: {error}") from None
    return records


def row(record):
    text = f"{record.id:<8} {record.time} {record.account:<12} {record.kind:<6} {euros(record.amount):>14}"
    return text + (f"  {record.memo}" if record.memo else "")


def run(paths, names, options):
    """Returns the text of all reports."""
    for name in names:
        if name not in NAMES:
            raise UsageError(f"unknown report `{name}`; known are {', '.join(sorted(NAMES))}")
    records = []
    for path in paths:
        records += load(path)
    count_read = len(records)
    if options.account is not None:
        records = [record for record in records if record.account == options.account]

    lines = []
    for name in names:
        lines.append(f"== {name} ==")

        if name == "listing":
            for record in records:
                lines.append(row(record))
            lines.append(f"{len(records)} records")

        elif name == "daily":
            if not records:
                lines.append("no records")
            balance = 0
            for day, group in itertools.groupby(records, key=lambda record: record.day):
                group = list(group)
                total = sum(record.amount for record in group)
                balance += total
                lines.append(f"{day} {len(group):>6} {euros(total):>14} {euros(balance):>14}")

        elif name == "summary":
            accounts = {}
            for record in records:
                if record.account not in accounts:
                    accounts[record.account] = {"count": 0, "sale": 0, "refund": 0, "fee": 0}
                accounts[record.account]["count"] += 1
                accounts[record.account][record.kind] += record.amount
            all_sales = sum(account["sale"] for account in accounts.values())
            left = 1000
            for place, (account, sums) in enumerate(accounts.items(), 1):
                net = sums["sale"] + sums["refund"] + sums["fee"]
                share = "-"
                if all_sales:
                    tenths = sums["sale"] * 1000 // all_sales if place < len(accounts) else left
                    left -= tenths
                    share = f"{tenths // 10}.{tenths % 10}%"
                lines.append(
                    f"{account:<12} {sums['count']:>6} {euros(sums['sale']):>14} {euros(sums['refund']):>14}"
                    f" {euros(net):>14} {share:>7}"
                )
            lines.append(f"{len(accounts)} accounts")

        elif name == "averages":
            sums = {}
            for record in records:
                total, count = sums.get(record.kind, (0.0, 0))
                total += record.amount / 100
                sums[record.kind] = (total, count + 1)
            for kind in sorted(sums):
                total, count = sums[kind]
                lines.append(f"{kind:<6} {count:>6} {total / count:>14,.2f}")

        elif name == "top":
            best = sorted(records, key=lambda record: record.amount)
            best.reverse()
            for place, record in enumerate(best[: options.top], 1):
                lines.append(f"{place:>3}. {row(record)}")

        elif name == "refunds":
            refunded = {}
            for record in records:
                if record.kind == "refund":
                    record.amount = -record.amount
                    refunded.setdefault(record.account, []).append(record.amount)
            for account in sorted(refunded):
                lines.append(f"{account:<12} {len(refunded[account]):>6} {euros(sum(refunded[account])):>14}")
            lines.append(f"total {euros(sum(sum(amounts) for amounts in refunded.values()))}")

        elif name == "outliers":
            sums = {}
            for record in records:
                total, count = sums.get(record.account, (0, 0))
                sums[record.account] = (total + abs(record.amount), count + 1)
            found = 0
            for record in records:
                total, count = sums[record.account]
                if abs(record.amount) * count > OUTLIER_FACTOR * total:
                    lines.append(row(record))
                    found += 1
            lines.append(f"{found} outliers" if found else "no outliers")

        lines.append("")

    lines.append(f"{count_read} records read")
    return "".join(line + "\n" for line in lines)
