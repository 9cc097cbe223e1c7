"""Reports over a book's journal, as lists of lines."""

from .documents import RECEIVABLE
from .money import format_amount, round_minor


def journal(book):
    for entry in book.journal.entries:
        yield f"#{entry.number} {entry.date} {entry.document}"
        for posting in entry.postings:
            amount = format_amount(posting.amount, posting.currency)
            base = format_amount(posting.base, book.base)
            yield f"  {posting.account:<24}{amount:>14} {posting.currency}{base:>14} {book.base}"


def trial_balance(book, as_of=None):
    """Lists the accounts with their debit or credit balance in the base currency."""
    totals = {}
    for posting in book.journal.postings(last=as_of):
        totals[posting.account] = totals.get(posting.account, 0) + posting.base
    debits = credits = 0
    for account in sorted(totals):
        total = totals[account]
        if total > 0:
            debits += total
            yield f"{account:<24}{format_amount(total, book.base):>14}"
        elif total < 0:
            credits -= total
            yield f"{account:<24}{'':>14}{format_amount(-total, book.base):>14}"
    yield f"{'TOTAL':<24}{format_amount(debits, book.base):>14}{format_amount(credits, book.base):>14}"
    if debits != credits:
        yield f"OUT OF BALANCE by {format_amount(debits - credits, book.base)} {book.base}"


def receivables(book, as_of=None):
    """Lists the open invoices with their open amount and its base."""
    items = {}
    for posting in book.journal.postings(last=as_of):
        if posting.account == RECEIVABLE and posting.item is not None:
            currency, amount = items.get(posting.item, (posting.currency, 0))
            items[posting.item] = (currency, amount + posting.amount)
    total = 0
    for item in sorted(items):
        currency, amount = items[item]
        if amount == 0:
            continue
        base = book.rates.to_base(amount, currency, book.documents[item].entry.date)
        total += base
        yield f"{item:<24}{format_amount(amount, currency):>14} {currency}{format_amount(base, book.base):>14} {book.base}"
    yield f"{'TOTAL':<24}{'':>18}{format_amount(total, book.base):>14} {book.base}"


def tax(book, first=None, last=None):
    """Lists net and tax in the base currency by tax code."""
    codes = {code: [0, 0] for code in book.tax_rates}
    for document in book.documents.values():
        date = document.entry.date
        if document.is_void or (first is not None and date < first) or (last is not None and date > last):
            continue
        for code, net in document.nets:
            base = book.rates.to_base(net, document.currency, date)
            codes[code][0] += base
            codes[code][1] += round_minor(base * book.tax_rates[code])
    for code in sorted(codes):
        net, amount = codes[code]
        yield f"{code:<12}{format_amount(net, book.base):>14}{format_amount(amount, book.base):>14}"
