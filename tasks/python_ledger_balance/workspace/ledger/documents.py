"""Replays the documents of a book into a journal."""

import datetime
import json
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby

from .balances import Balance
from .errors import BookError
from .journal import EntryBuilder, Journal
from .money import allocate, exponent, parse_amount, parse_decimal, round_minor
from .rates import RateTable

RECEIVABLE = "receivable"
ADVANCES = "advances"


class BankBalance:
    """Money on a bank account in one currency, valued at its average price."""

    def __init__(self):
        self.amount = 0
        self.base = 0
        self.price = Decimal(0)

    def put(self, amount, base):
        self.amount += amount
        self.base += base
        if self.amount:
            self.price = (Decimal(self.base) / self.amount).quantize(Decimal("0.000001"))

    def take(self, amount):
        if amount <= 0:
            raise BookError("amounts must be positive")
        if amount > self.amount:
            raise BookError("not enough is open")
        base = int((amount * self.price).quantize(Decimal(1)))
        self.put(-amount, -base)
        return base


@dataclass
class Document:
    """A document that was entered, with what a void must know."""

    kind: str
    entry: object
    currency: str
    undo: list = field(default_factory=list)
    nets: list = field(default_factory=list)
    balance: Balance | None = None
    bank: str | None = None
    applications: int = 0
    is_void: bool = False


class Book:
    def __init__(self, base):
        self.base = base
        self.rates = RateTable(base)
        self.journal = Journal(base)
        self.tax_rates = {}
        self.documents = {}
        self.bank = {}
        self.last_exchange = {}

    def enter(self, record):
        kind = record.get("type")
        handler = HANDLERS.get(kind)
        if handler is None:
            raise BookError(f"unknown type `{kind}`")
        try:
            handler(self, record)
        except KeyError as error:
            raise BookError(f"field `{error.args[0]}` is missing") from None

    def find(self, kind, document_id):
        document = self.documents.get(document_id)
        if document is None or document.kind != kind:
            raise BookError(f"unknown {kind} `{document_id}`")
        if document.is_void:
            raise BookError(f"{kind} `{document_id}` is void")
        return document

    def begin(self, record):
        """Starts the entry of a document."""
        if record["id"] in self.documents:
            raise BookError(f"document `{record['id']}` exists already")
        return EntryBuilder(parse_date(record["date"]), record["id"], self.rates)

    def bank_balance(self, account, currency):
        return self.bank.setdefault((account, currency), BankBalance())

    # Rates and taxes

    def tax(self, record):
        self.tax_rates[record["code"]] = parse_decimal(record["rate"])

    def rate(self, record):
        self.rates.add(record["currency"], parse_date(record["date"]), parse_decimal(record["rate"]))

    # Invoices and credit notes

    def lines(self, record, currency, sign):
        """Returns the lines and taxes of a document: account, amount and tax code. Credit notes have the sign -1."""
        lines = []
        for line in record["lines"]:
            amount = sign * parse_amount(line["amount"], currency)
            code = line.get("tax")
            if code is not None:
                if code not in self.tax_rates:
                    raise BookError(f"unknown tax code `{code}`")
            lines.append((line["account"], amount, code))
        taxes, nets = [], []
        taxed = [line for line in lines if line[2] is not None]
        for code, group in groupby(taxed, key=lambda line: line[2]):
            net = sum(amount for _, amount, _ in group)
            nets.append((code, net))
            taxes.append((f"tax:{code}", round_minor(net * self.tax_rates[code]), None))
        return lines + taxes, nets

    def add_lines(self, builder, currency, lines, base):
        bases = allocate(base, [amount for _, amount, _ in lines])
        for (account, amount, _), share in zip(lines, bases):
            builder.add(account, currency, -amount, -share)

    def invoice(self, record):
        builder = self.begin(record)
        currency = record["currency"]
        lines, nets = self.lines(record, currency, 1)
        total = sum(amount for _, amount, _ in lines)
        if total <= 0:
            raise BookError("the total must be positive")
        base = builder.add(RECEIVABLE, currency, total, item=record["id"])
        self.add_lines(builder, currency, lines, base)
        entry = self.journal.append(builder)
        self.documents[record["id"]] = Document(
            "invoice", entry, currency, nets=nets, balance=Balance(total, base)
        )

    def credit_note(self, record):
        builder = self.begin(record)
        invoice = self.find("invoice", record["invoice"])
        lines, nets = self.lines(record, invoice.currency, -1)
        total = sum(amount for _, amount, _ in lines)
        if total >= 0:
            raise BookError("the total must be positive")
        taken = invoice.balance.take(-total)
        builder.add(RECEIVABLE, invoice.currency, total, -taken, item=record["invoice"])
        self.add_lines(builder, invoice.currency, lines, -taken)
        document = Document("credit_note", self.journal.append(builder), invoice.currency, nets=nets)
        self.note_application(document, invoice, -total, taken)
        self.documents[record["id"]] = document

    def note_application(self, document, invoice, amount, base):
        invoice.applications += 1
        document.undo.append((invoice, amount, base))

    # Payments

    def payment(self, record):
        builder = self.begin(record)
        currency = record["currency"]
        amount = parse_amount(record["amount"], currency)
        if amount <= 0:
            raise BookError("amounts must be positive")
        base = builder.add(record["bank"], currency, amount)
        applied, undo = self.apply_to_invoices(builder, currency, record["apply"])
        rest = amount - applied
        if rest < 0:
            raise BookError("more is applied than was paid")
        advance = -builder.add(ADVANCES, currency, -rest)
        builder.add_realized()
        entry = self.journal.append(builder)
        self.bank_balance(record["bank"], currency).put(amount, base)
        self.documents[record["id"]] = Document(
            "payment", entry, currency, undo, balance=Balance(rest, advance), bank=record["bank"]
        )

    def apply_to_invoices(self, builder, currency, applications):
        """Posts the applications. Returns the total amount, and what a void puts back."""
        applied, undo = 0, []
        for application in applications:
            invoice = self.find("invoice", application["invoice"])
            if invoice.currency != currency:
                raise BookError(f"invoice `{application['invoice']}` is in {invoice.currency}")
            amount = parse_amount(application["amount"], currency)
            base = invoice.balance.take(amount)
            builder.add(RECEIVABLE, currency, -amount, -base, item=application["invoice"])
            invoice.applications += 1
            undo.append((invoice, amount, base))
            applied += amount
        return applied, undo

    def apply(self, record):
        builder = self.begin(record)
        payment = self.find("payment", record["payment"])
        currency = payment.currency
        for application in record["apply"]:
            amount = parse_amount(application["amount"], currency)
            payment.balance.take(amount)
            builder.add(ADVANCES, currency, amount, self.rates.to_base(amount, currency, payment.entry.date))
        self.apply_to_invoices(builder, currency, record["apply"])
        builder.add_realized()
        payment.applications += 1
        self.documents[record["id"]] = Document("apply", self.journal.append(builder), currency)

    def exchange(self, record):
        builder = self.begin(record)
        source, target = record["from_currency"], record["to_currency"]
        paid = parse_amount(record["from_amount"], source)
        received = parse_amount(record["to_amount"], target)
        if received <= 0:
            raise BookError("amounts must be positive")
        taken = self.bank_balance(record["from"], source).take(paid)
        builder.add(record["from"], source, -paid, -taken)
        base = builder.add(record["to"], target, received)
        builder.add_realized()
        entry = self.journal.append(builder)
        self.bank_balance(record["to"], target).put(received, base)
        self.last_exchange[(record["from"], source)] = entry.number
        self.documents[record["id"]] = Document("exchange", entry, source)

    # Others

    def manual(self, record):
        builder = self.begin(record)
        for posting in record["postings"]:
            currency = posting["currency"]
            if posting["account"] == RECEIVABLE:
                raise BookError(f"manual entries can't use `{RECEIVABLE}`")
            amount = parse_amount(posting["amount"], currency)
            base = amount if currency == self.base else parse_amount(posting["base"], self.base)
            builder.add(posting["account"], currency, amount, base)
        self.documents[record["id"]] = Document("manual", self.journal.append(builder), self.base)

    def void(self, record):
        builder = self.begin(record)
        document = self.documents.get(record["document"])
        if document is None or document.kind not in ("invoice", "credit_note", "payment"):
            raise BookError(f"`{record['document']}` can't be voided")
        if document.is_void:
            raise BookError(f"{document.kind} `{record['document']}` is void")
        if document.applications:
            raise BookError(f"{document.kind} `{record['document']}` has applications")
        if builder.date < document.entry.date:
            raise BookError("a void can't be earlier than its document")
        if document.bank:
            place = (document.bank, document.currency)
            if self.last_exchange.get(place, 0) > document.entry.number:
                raise BookError(f"{document.kind} `{record['document']}` was exchanged")
            bank = document.entry.postings[0]
            self.bank_balance(*place).put(-bank.amount, -bank.base)
        for posting in document.entry.postings:
            opposite = posting.opposite()
            builder.add(opposite.account, opposite.currency, opposite.amount, opposite.base, opposite.item)
        for invoice, amount, base in document.undo:
            invoice.balance.put(amount, base)
            invoice.applications -= 1
        if document.balance:
            document.balance = Balance()
        document.is_void = True
        self.documents[record["id"]] = Document("void", self.journal.append(builder), document.currency)


HANDLERS = {
    "tax": Book.tax,
    "rate": Book.rate,
    "invoice": Book.invoice,
    "credit_note": Book.credit_note,
    "payment": Book.payment,
    "apply": Book.apply,
    "exchange": Book.exchange,
    "manual": Book.manual,
    "void": Book.void,
}


def parse_date(text):
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except (TypeError, ValueError):
        raise BookError(f"`{text}` is not a date") from None


def load(lines):
    """Replays the lines of a book."""
    book = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = parse_record(line)
            if book is None:
                if record.get("type") != "book":
                    raise BookError("the first line must be the `book` line")
                exponent(record.get("base"))
                book = Book(record["base"])
            else:
                book.enter(record)
        except BookError as error:
            raise BookError(f"line {number}: {error}") from None
    if book is None:
        raise BookError("the book is empty")
    return book


def parse_record(line):
    try:
        record = json.loads(line)
    except ValueError:
        raise BookError("not JSON") from None
    if not isinstance(record, dict):
        raise BookError("not an object")
    return record
