"""The journal: numbered entries of postings."""

from dataclasses import dataclass

from .errors import BookError
from .money import format_amount


@dataclass(frozen=True)
class Posting:
    account: str
    currency: str
    amount: int
    base: int
    item: str | None = None

    def opposite(self):
        return Posting(self.account, self.currency, -self.amount, -self.base, self.item)


@dataclass(frozen=True)
class Entry:
    number: int
    date: object
    document: str
    postings: tuple


class EntryBuilder:
    """Collects the postings of an entry."""

    def __init__(self, date, document, rates):
        self.date = date
        self.document = document
        self.rates = rates
        self.postings = []

    def add(self, account, currency, amount, base=None, item=None):
        """Adds a posting. Without a base, the amount is converted at the entry's date. Returns the base."""
        if not amount:
            return 0
        base = base or self.rates.to_base(amount, currency, self.date)
        self.postings.append(Posting(account, currency, amount, base, item))
        return base

    def add_realized(self):
        """Adds what is missing for the bases to add up to zero."""
        missing = -sum(posting.base for posting in self.postings)
        self.add("fx:realized", self.rates.base, missing, missing)


class Journal:
    def __init__(self, base):
        self.base = base
        self.entries = []

    def append(self, builder):
        document, postings = builder.document, tuple(builder.postings)
        currencies = {posting.currency for posting in postings}
        if len(currencies) == 1:
            self._check(document, sum(posting.amount for posting in postings), currencies.pop())
        entry = Entry(len(self.entries) + 1, builder.date, document, postings)
        self.entries.append(entry)
        return entry

    def postings(self, first=None, last=None):
        """Returns all postings between two dates."""
        for entry in self.entries:
            if (first is None or entry.date >= first) and (last is None or entry.date <= last):
                yield from entry.postings

    def _check(self, document, total, currency):
        if total:
            raise BookError(f"entry {document} is out of balance by {format_amount(total, currency)} {currency}")
