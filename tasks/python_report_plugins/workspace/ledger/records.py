"""Ledger records and their text form (docs/FORMAT.md)."""

import dataclasses
import json
import re

KINDS = ("fee", "refund", "sale")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


@dataclasses.dataclass
class Record:
    id: str
    time: str
    account: str
    kind: str
    amount: int
    memo: str = ""

    @property
    def day(self):
        return self.time[:10]


def parse(line):
    """Returns the record in a line. Raises `ValueError` with a message for users."""
    try:
        fields = json.loads(line)
    except ValueError:
        raise ValueError("the line is no JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("the line is no JSON object")
    for name in ("id", "account"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise ValueError(f"`{name}` must be a non-empty text")
    if not isinstance(fields.get("time"), str) or not TIME.fullmatch(fields["time"]):
        raise ValueError("`time` must look like `2024-03-01T09:30`")
    kind = fields.get("kind")
    if kind not in KINDS:
        raise ValueError("`kind` must be `sale`, `refund` or `fee`")
    amount = fields.get("amount")
    if not isinstance(amount, int) or isinstance(amount, bool):
        raise ValueError("`amount` must be a whole number")
    if amount == 0 or (amount > 0) != (kind == "sale"):
        raise ValueError(f"`amount` has the wrong sign for a {kind}")
    memo = fields.get("memo", "")
    if not isinstance(memo, str):
        raise ValueError("`memo` must be a text")
    return Record(fields["id"], fields["time"], fields["account"], kind, amount, memo)
