import json
import random

import lab

BOOK = {"type": "book", "base": "EUR"}


def tax(code, rate):
    return {"type": "tax", "code": code, "rate": rate}


def rate(date, currency, value):
    return {"type": "rate", "date": date, "currency": currency, "rate": value}


def lines(*triples):
    return [dict(zip(("account", "amount", "tax"), triple)) for triple in triples]


def invoice(id, date, currency, *triples):
    return {"type": "invoice", "id": id, "date": date, "customer": "acme", "currency": currency, "lines": lines(*triples)}


def credit(id, date, of, *triples):
    return {"type": "credit_note", "id": id, "date": date, "invoice": of, "lines": lines(*triples)}


def applications(pairs):
    return [{"invoice": name, "amount": amount} for name, amount in pairs]


def payment(id, date, currency, amount, *pairs):
    bank = f"bank:{currency.lower()}"
    return {
        "type": "payment", "id": id, "date": date, "bank": bank, "currency": currency, "amount": amount,
        "apply": applications(pairs),
    }


def apply(id, date, of, *pairs):
    return {"type": "apply", "id": id, "date": date, "payment": of, "apply": applications(pairs)}


def exchange(id, date, currency, amount, received):
    return {
        "type": "exchange", "id": id, "date": date, "from": f"bank:{currency.lower()}", "from_currency": currency,
        "from_amount": amount, "to": "bank:eur", "to_currency": "EUR", "to_amount": received,
    }


def refund(id, date, of, currency, amount):
    return {"type": "refund", "id": id, "date": date, "payment": of, "bank": f"bank:{currency.lower()}", "amount": amount}


def write_off(id, date, of, amount):
    return {"type": "write_off", "id": id, "date": date, "invoice": of, "amount": amount, "account": "losses"}


def revalue(id, date):
    return {"type": "revalue", "id": id, "date": date}


def void(id, date, of):
    return {"type": "void", "id": id, "date": date, "document": of}


def manual(id, date, *postings):
    names = ("account", "currency", "amount", "base")
    return {"type": "manual", "id": id, "date": date, "postings": [dict(zip(names, posting)) for posting in postings]}


class LedgerCase(lab.Case):
    def report(self, records, name, *options):
        self.write("book.jsonl", "".join(json.dumps(record) + "\n" for record in [BOOK, *records]))
        done = self.program("python3", "-m", "ledger", name, "book.jsonl", *options)
        self.assertEqual(done.status, 0, done)
        return done.stdout

    def refused(self, records, message):
        self.write("book.jsonl", "".join(json.dumps(record) + "\n" for record in [BOOK, *records]))
        done = self.program("python3", "-m", "ledger", "trial-balance", "book.jsonl")
        self.assertEqual((done.status, done.stdout), (1, ""), done)
        self.assertEqual(done.stderr, f"error: line {len(records) + 1}: {message}\n")

    def entries(self, records):
        """Returns the postings by document: account, amount, currency, base."""
        found, document = {}, None
        for line in self.report(records, "journal").splitlines():
            if line.startswith("#"):
                document = line.split()[2]
                found[document] = []
            else:
                account, amount, currency, base, _ = line.split()
                found[document].append((account, amount, currency, base))
        return found

    def numbered(self, records):
        """Returns all entries: number, date, document, and the postings as `entries` has them."""
        found = []
        for line in self.report(records, "journal").splitlines():
            if line.startswith("#"):
                found.append([*line[1:].split(), []])
            else:
                account, amount, currency, base, _ = line.split()
                found[-1][3].append((account, amount, currency, base))
        return found

    def accounts(self, records, *options):
        """Returns the signed balance in cents by account; fails if the trial balance isn't balanced."""
        found = {}
        for line in self.report(records, "trial-balance", *options).splitlines():
            self.assertFalse(line.startswith("OUT OF BALANCE"), line)
            name, number = line.split()[:2]
            sign = -1 if len(line) > 38 else 1
            if name != "TOTAL":
                found[name] = sign * cents(number)
        self.assertEqual(sum(found.values()), 0)
        return found

    def taxes(self, records, *options):
        rows = (line.split() for line in self.report(records, "tax", *options).splitlines())
        return {code: (net, amount) for code, net, amount in rows}

    def open_items(self, records, *options):
        rows = [line.split() for line in self.report(records, "receivables", *options).splitlines()]
        return {row[0]: row[1:-1] for row in rows}


def cents(text):
    return int(text.replace(".", ""))


class Kept(LedgerCase):
    def test_example_reports_stay(self):
        expected = json.loads(lab.data("example.json"))
        for name, text in expected.items():
            with self.subTest(name):
                done = self.program("python3", "-m", "ledger", name, "examples/2025.jsonl")
                self.assertEqual((done.status, done.stdout), (0, text))

    def test_currencies_with_zero_and_three_decimals(self):
        records = [rate("2025-01-01", "JPY", "0.00613"), rate("2025-01-01", "KWD", "3.1207")]
        records += [invoice("A", "2025-01-05", "JPY", ("income:a", "12345")), invoice("B", "2025-01-05", "KWD", ("income:b", "7.125"))]
        found = self.entries(records)
        self.assertEqual(found["A"][0], ("receivable", "12345", "JPY", "75.67"))
        self.assertEqual(found["B"][0], ("receivable", "7.125", "KWD", "22.23"))

    def test_later_rate_line_does_not_change_earlier_entries(self):
        records = [rate("2025-01-01", "USD", "0.9"), invoice("A", "2025-01-05", "USD", ("income:a", "10.00"))]
        records += [rate("2025-01-01", "USD", "0.8"), invoice("B", "2025-01-05", "USD", ("income:a", "10.00"))]
        found = self.entries(records)
        self.assertEqual([found[name][0][3] for name in "AB"], ["9.00", "8.00"])

    def test_more_than_the_open_amount_is_refused(self):
        records = [invoice("A", "2025-01-05", "EUR", ("income:a", "10.00"))]
        self.refused(records + [payment("P", "2025-01-06", "EUR", "20.00", ("A", "10.01"))], "not enough is open")

    def test_void_of_an_invoice_with_applications_is_refused(self):
        records = [invoice("A", "2025-01-05", "EUR", ("income:a", "10.00")), payment("P", "2025-01-06", "EUR", "1.00", ("A", "1.00"))]
        self.refused(records + [void("V", "2025-01-07", "A")], "invoice `A` has applications")

    def test_void_of_an_exchanged_payment_is_refused(self):
        records = [rate("2025-01-01", "USD", "0.9"), payment("P", "2025-01-06", "USD", "10.00")]
        records += [exchange("X", "2025-01-07", "USD", "1.00", "0.90"), void("V", "2025-01-07", "P")]
        self.refused(records, "payment `P` was exchanged")


class Rounding(LedgerCase):
    def test_half_in_a_conversion_goes_away_from_zero(self):
        records = [rate("2025-01-01", "USD", "0.5"), invoice("A", "2025-01-05", "USD", ("income:a", "0.05"))]
        self.assertEqual(self.entries(records)["A"], [("receivable", "0.05", "USD", "0.03"), ("income:a", "-0.05", "USD", "-0.03")])

    def test_half_of_an_advance_goes_away_from_zero(self):
        records = [rate("2025-01-01", "USD", "0.5"), payment("P", "2025-01-05", "USD", "0.05")]
        self.assertEqual(self.entries(records)["P"], [("bank:usd", "0.05", "USD", "0.03"), ("advances", "-0.05", "USD", "-0.03")])

    def test_half_in_the_tax_of_a_credit_note_goes_away_from_zero(self):
        records = [tax("T5", "0.05"), invoice("A", "2025-01-05", "EUR", ("income:a", "99.50", "T5"))]
        records += [credit("C", "2025-01-09", "A", ("income:a", "10.50", "T5"))]
        self.assertEqual(self.entries(records)["C"][2], ("tax:T5", "0.53", "EUR", "0.53"))

    def test_half_of_a_negative_tax_goes_away_from_zero(self):
        records = [tax("T5", "0.05"), invoice("A", "2025-01-05", "EUR", ("income:a", "50.00"), ("discount", "-10.50", "T5"))]
        self.assertEqual(self.entries(records)["A"][-1], ("tax:T5", "0.53", "EUR", "0.53"))


class Invoices(LedgerCase):
    def test_posting_that_gets_no_base_keeps_base_zero(self):
        records = [rate("2025-01-01", "JPY", "0.0051")]
        records += [invoice("A", "2025-01-05", "JPY", ("income:a", "1"), ("income:b", "1"), ("income:c", "1"))]
        bases = [posting[3] for posting in self.entries(records)["A"]]
        self.assertEqual(bases, ["0.02", "-0.01", "-0.01", "0.00"])

    def test_void_keeps_base_zero(self):
        records = [rate("2025-01-01", "JPY", "0.0051")]
        records += [invoice("A", "2025-01-05", "JPY", ("income:a", "1"), ("income:b", "1"), ("income:c", "1"))]
        records += [rate("2025-02-01", "JPY", "0.0062"), void("V", "2025-02-05", "A")]
        bases = [posting[3] for posting in self.entries(records)["V"]]
        self.assertEqual(bases, ["-0.02", "0.01", "0.01", "0.00"])

    def test_discount_takes_part_in_the_allocation(self):
        records = [tax("T", "0.2"), rate("2025-01-01", "USD", "0.917")]
        records += [invoice("A", "2025-01-05", "USD", ("income:a", "33.33", "T"), ("discount", "-3.33", "T"), ("income:b", "0.05"))]
        bases = [posting[3] for posting in self.entries(records)["A"]]
        self.assertEqual(bases, ["33.06", "-30.56", "3.05", "-0.05", "-5.50"])

    def test_one_tax_posting_for_alternating_codes(self):
        records = [tax("A19", "0.19"), tax("B7", "0.07")]
        records += [invoice("A", "2025-01-05", "EUR", ("income:a", "0.13", "A19"), ("income:b", "1.00", "B7"), ("income:c", "0.13", "A19"))]
        self.assertEqual(
            self.entries(records)["A"],
            [
                ("receivable", "1.38", "EUR", "1.38"), ("income:a", "-0.13", "EUR", "-0.13"),
                ("income:b", "-1.00", "EUR", "-1.00"), ("income:c", "-0.13", "EUR", "-0.13"),
                ("tax:A19", "-0.05", "EUR", "-0.05"), ("tax:B7", "-0.07", "EUR", "-0.07"),
            ],
        )


class CreditNotes(LedgerCase):
    def test_full_credit_note_undoes_a_tax_with_a_half(self):
        triple = ("income:a", "10.50", "T5")
        records = [tax("T5", "0.05"), invoice("A", "2025-01-05", "EUR", triple), credit("C", "2025-01-09", "A", triple)]
        self.assertEqual(self.accounts(records), {})

    def test_full_credit_note_undoes_every_account(self):
        triples = [("income:a", "0.50"), ("income:b", "0.50"), ("income:c", "0.50"), ("discount", "-0.25")]
        records = [rate("2025-01-01", "USD", "0.91"), invoice("A", "2025-01-05", "USD", *triples)]
        records += [rate("2025-01-08", "USD", "0.7"), credit("C", "2025-01-09", "A", *triples)]
        self.assertEqual(self.accounts(records), {})

    def test_equal_shares_of_a_credit_note_mirror_the_invoice(self):
        triples = [("income:a", "0.50"), ("income:b", "0.50")]
        records = [rate("2025-01-01", "USD", "0.91"), invoice("A", "2025-01-05", "USD", *triples), credit("C", "2025-01-09", "A", *triples)]
        found = self.entries(records)
        self.assertEqual([p[3] for p in found["A"]], ["0.91", "-0.46", "-0.45"])
        self.assertEqual([p[3] for p in found["C"]], ["-0.91", "0.46", "0.45"])

    def test_credit_note_after_payments_takes_what_is_left(self):
        records = [rate("2025-01-01", "USD", "0.9213"), invoice("A", "2025-01-05", "USD", ("income:a", "100.00"))]
        records += [payment("P", "2025-01-05", "USD", "33.34", ("A", "33.34")), payment("Q", "2025-01-05", "USD", "33.34", ("A", "33.34"))]
        records += [credit("C", "2025-01-09", "A", ("income:a", "33.32"))]
        found = self.entries(records)
        self.assertEqual([found[name][-1 if name == "C" else 1][3] for name in "PQC"], ["-30.72", "-30.71", "30.70"])


class Balances(LedgerCase):
    START = [rate("2025-01-01", "USD", "0.9213"), invoice("A", "2025-01-05", "USD", ("income:a", "100.00"))]

    def test_installments_leave_nothing_on_the_receivable(self):
        records = self.START + [payment(f"P{n}", "2025-01-06", "USD", "16.66", ("A", "16.66")) for n in range(6)]
        records += [payment("P9", "2025-01-07", "USD", "0.04", ("A", "0.04"))]
        self.assertNotIn("receivable", self.accounts(records))

    def test_application_takes_its_share_of_what_is_left(self):
        records = [rate("2025-01-01", "USD", "0.9213"), invoice("A", "2025-01-05", "USD", ("income:a", "0.07"))]
        records += [payment(f"P{n}", "2025-01-06", "USD", "0.01", ("A", "0.01")) for n in range(7)]
        found = self.entries(records)
        self.assertEqual([found[f"P{n}"][1][3] for n in range(7)], ["-0.01", "-0.01", "-0.01", "-0.01", "-0.01", "-0.01", "0.00"])

    def test_void_puts_back_what_the_payment_took(self):
        records = self.START + [payment("P", "2025-01-06", "USD", "33.33", ("A", "33.33")), payment("Q", "2025-01-07", "USD", "66.67", ("A", "66.67"))]
        records += [rate("2025-02-01", "USD", "0.8"), void("V", "2025-02-02", "P")]
        self.assertEqual(self.open_items(records)["A"], ["33.33", "USD", "30.71"])
        records += [payment("R", "2025-02-03", "USD", "33.33", ("A", "33.33"))]
        self.assertEqual(self.entries(records)["R"][1:], [("receivable", "-33.33", "USD", "-30.71"), ("fx:realized", "4.05", "EUR", "4.05")])

    def test_exchange_of_everything_empties_the_bank(self):
        records = [rate("2025-01-01", "USD", "0.9213"), payment("P", "2025-01-05", "USD", "70000.03")]
        records += [rate("2025-01-06", "USD", "0.9377"), payment("Q", "2025-01-07", "USD", "130000.11")]
        records += [exchange("X", "2025-01-08", "USD", "150000.07", "139000.00"), exchange("Y", "2025-01-09", "USD", "50000.07", "46000.00")]
        self.assertNotIn("bank:usd", self.accounts(records))

    def test_exchange_takes_its_share_of_the_bank(self):
        records = [rate("2025-01-01", "USD", "0.9123"), payment("P", "2025-01-05", "USD", "1000000.00"), rate("2025-01-06", "USD", "0.9711")]
        records += [payment("Q", "2025-01-07", "USD", "1234567.89"), exchange("X", "2025-01-08", "USD", "1700000.03", "1600000.00")]
        self.assertEqual(self.entries(records)["X"][0], ("bank:usd", "-1700000.03", "USD", "-1606136.55"))

    def test_advance_used_in_parts_leaves_nothing(self):
        records = [rate("2025-01-01", "USD", "0.9213"), payment("P", "2025-01-02", "USD", "0.07")]
        records += [invoice("A", "2025-01-05", "USD", ("income:a", "0.20"))]
        records += [apply(f"Y{n}", "2025-01-06", "P", ("A", "0.01")) for n in range(6)]
        records += [apply("Y9", "2025-01-06", "P", ("A", "0.01"))]
        self.assertNotIn("advances", self.accounts(records))
        found = self.entries(records)
        self.assertEqual([found[name][0][3] for name in ("Y0", "Y5", "Y9")], ["0.01", "0.01", "0.00"])

    def test_applications_of_one_advance_follow_each_other(self):
        records = [rate("2025-01-01", "USD", "0.5"), payment("P", "2025-01-02", "USD", "0.06"), rate("2025-01-04", "USD", "0.9")]
        records += [invoice("A", "2025-01-05", "USD", ("income:a", "0.20")), invoice("B", "2025-01-05", "USD", ("income:a", "0.20"))]
        records += [apply("Y", "2025-01-06", "P", ("A", "0.01"), ("B", "0.03"))]
        self.assertEqual(
            self.entries(records)["Y"],
            [
                ("advances", "0.01", "USD", "0.01"), ("advances", "0.03", "USD", "0.01"), ("receivable", "-0.01", "USD", "-0.01"),
                ("receivable", "-0.03", "USD", "-0.03"), ("fx:realized", "0.02", "EUR", "0.02"),
            ],
        )


class Reports(LedgerCase):
    def test_receivables_show_the_base_that_is_left(self):
        records = [rate("2025-01-01", "USD", "0.9213"), invoice("A", "2025-01-05", "USD", ("income:a", "100.00"))]
        records += [payment("P", "2025-01-06", "USD", "16.66", ("A", "16.66")), payment("Q", "2025-01-06", "USD", "16.66", ("A", "16.66"))]
        records += [rate("2025-01-01", "USD", "0.5")]
        found = self.open_items(records)
        self.assertEqual(found["A"], ["66.68", "USD", "61.43"])
        self.assertEqual(self.accounts(records)["receivable"], 6143)

    def test_receivables_of_an_earlier_date(self):
        records = [rate("2025-01-01", "USD", "0.9213"), invoice("A", "2025-01-05", "USD", ("income:a", "0.07"))]
        records += [payment("P", "2025-01-06", "USD", "0.06", ("A", "0.06")), payment("Q", "2025-01-09", "USD", "0.01", ("A", "0.01"))]
        self.assertEqual(self.open_items(records, "--as-of", "2025-01-08")["A"], ["0.01", "USD", "0.01"])
        self.assertEqual(self.open_items(records, "--as-of", "2025-01-05")["A"], ["0.07", "USD", "0.06"])

    def test_tax_report_agrees_with_the_accounts(self):
        records = [tax("A19", "0.19"), tax("B7", "0.07"), rate("2025-01-01", "USD", "0.9213")]
        for n in range(12):
            net = f"{n}.{n * 7 % 100:02}"
            records.append(invoice(f"I{n}", "2025-01-05", "USD", ("income:a", "1" + net, "A19"), ("income:b", net, "B7"), ("income:c", "3.07", "A19")))
        found, accounts = self.taxes(records), self.accounts(records)
        self.assertEqual({code: -cents(row[1]) for code, row in found.items()}, {code: accounts[f"tax:{code}"] for code in ("A19", "B7")})
        self.assertEqual(sum(cents(row[0]) for row in found.values()), -sum(accounts[f"income:{name}"] for name in "abc"))

    def test_void_counts_in_its_own_period(self):
        records = [tax("T", "0.19"), tax("U", "0.07"), invoice("A", "2025-03-05", "EUR", ("income:a", "100.00", "T")), void("V", "2025-04-02", "A")]
        self.assertEqual(self.taxes(records, "--to", "2025-03-31"), {"T": ("100.00", "19.00"), "U": ("0.00", "0.00")})
        self.assertEqual(self.taxes(records, "--from", "2025-04-01"), {"T": ("-100.00", "-19.00"), "U": ("0.00", "0.00")})
        self.assertEqual(self.taxes(records), {"T": ("0.00", "0.00"), "U": ("0.00", "0.00")})

    def test_credit_note_counts_in_its_own_period(self):
        records = [tax("T", "0.19"), invoice("A", "2025-03-05", "EUR", ("income:a", "100.00", "T")), credit("C", "2025-04-02", "A", ("income:a", "10.00", "T"))]
        self.assertEqual(self.taxes(records, "--from", "2025-04-01"), {"T": ("-10.00", "-1.90")})

    def test_manual_entry_on_a_tax_account_counts_as_tax(self):
        records = [tax("T", "0.19"), invoice("A", "2025-03-05", "EUR", ("income:a", "100.00", "T"))]
        records += [manual("M", "2025-03-06", ("tax:T", "EUR", "0.02"), ("misc", "EUR", "-0.02"))]
        self.assertEqual(self.taxes(records), {"T": ("100.00", "18.98")})


class Manual(LedgerCase):
    def test_entry_out_of_balance_in_base_is_refused(self):
        postings = [("bank", "USD", "10.00", "9.01"), ("income", "USD", "-10.00", "-9.00")]
        self.refused([manual("M-1", "2025-01-01", *postings)], "entry M-1 is out of balance by 0.01 EUR")

    def test_entry_in_two_currencies_out_of_balance_is_refused(self):
        postings = [("bank", "USD", "10.00", "9.00"), ("income", "EUR", "-9.02")]
        self.refused([manual("M-2", "2025-01-01", *postings)], "entry M-2 is out of balance by -0.02 EUR")

    def test_entry_in_one_currency_must_balance_in_it(self):
        postings = [("bank", "USD", "10.00", "9.00"), ("income", "USD", "-10.01", "-9.00")]
        self.refused([manual("M-3", "2025-01-01", *postings)], "entry M-3 is out of balance by -0.01 USD")

    def test_stated_base_of_zero_is_kept(self):
        records = [rate("2025-01-01", "USD", "0.9"), manual("M", "2025-01-01", ("a", "USD", "5.00", "0.00"), ("b", "USD", "-5.00", "0.00"))]
        self.assertEqual(self.entries(records)["M"], [("a", "5.00", "USD", "0.00"), ("b", "-5.00", "USD", "0.00")])

    def test_base_of_zero_needs_no_rate(self):
        records = [manual("M", "2025-01-01", ("a", "USD", "0.01", "0.00"), ("b", "USD", "-0.01", "0.00"))]
        self.assertEqual(self.accounts(records), {})


class Refunds(LedgerCase):
    START = [rate("2025-01-01", "USD", "0.9213"), payment("P", "2025-01-05", "USD", "0.07"), rate("2025-01-06", "USD", "0.5")]
    START += [payment("Q", "2025-01-07", "USD", "0.10")]

    def test_refund_takes_out_of_the_advance_and_of_the_bank(self):
        found = self.entries(self.START + [refund("R", "2025-01-08", "P", "USD", "0.03")])
        expected = [("advances", "0.03", "USD", "0.03"), ("bank:usd", "-0.03", "USD", "-0.02"), ("fx:realized", "-0.01", "EUR", "-0.01")]
        self.assertEqual(found["R"], expected)

    def test_refund_of_everything_leaves_nothing(self):
        records = self.START + [refund(f"R{n}", "2025-01-08", "P", "USD", "0.01") for n in range(7)]
        records += [refund(f"S{n}", "2025-01-08", "Q", "USD", "0.05") for n in range(2)]
        self.assertEqual(set(self.accounts(records)), set())

    def test_refund_is_limited_by_advance_and_bank(self):
        self.refused(self.START + [refund("R", "2025-01-08", "P", "USD", "0.08")], "not enough is open")
        records = self.START + [exchange("X", "2025-01-08", "USD", "0.15", "0.10")]
        self.refused(records + [refund("R", "2025-01-08", "P", "USD", "0.03")], "not enough is open")
        self.refused(self.START + [refund("R", "2025-01-08", "P", "USD", "-0.01")], "amounts must be positive")

    def test_void_of_a_refund_puts_back_what_it_took(self):
        records = self.START + [refund("R", "2025-01-08", "P", "USD", "0.03"), void("V", "2025-01-09", "R")]
        opposite = [("advances", "-0.03", "USD", "-0.03"), ("bank:usd", "0.03", "USD", "0.02"), ("fx:realized", "0.01", "EUR", "0.01")]
        self.assertEqual(self.entries(records)["V"], opposite)
        records += [refund("S", "2025-01-10", "P", "USD", "0.07")]
        self.assertEqual(self.entries(records)["S"][:2], [("advances", "0.07", "USD", "0.06"), ("bank:usd", "-0.07", "USD", "-0.05")])

    def test_payment_with_a_refund_is_not_voided(self):
        records = self.START + [refund("R", "2025-01-08", "P", "USD", "0.03")]
        self.refused(records + [void("V", "2025-01-09", "P")], "payment `P` has applications")

    def test_refund_counts_as_money_that_left_the_bank(self):
        records = self.START + [refund("R", "2025-01-08", "P", "USD", "0.03")]
        self.refused(records + [void("V", "2025-01-09", "Q")], "payment `Q` was exchanged")
        records += [void("V", "2025-01-09", "R")]
        self.refused(records + [void("W", "2025-01-10", "Q")], "payment `Q` was exchanged")
        records = self.START + [refund("R", "2025-01-08", "P", "USD", "0.03"), payment("T", "2025-01-09", "USD", "0.10")]
        self.assertEqual(len(self.entries(records + [void("V", "2025-01-10", "T")])["V"]), 2)


class WriteOffs(LedgerCase):
    TAXED = [tax("A19", "0.19"), tax("B7", "0.07"), rate("2025-01-01", "USD", "0.9213")]
    TAXED += [
        invoice(
            "A", "2025-01-05", "USD", ("income:a", "0.55", "B7"), ("income:b", "1.00"), ("discount", "-0.20", "A19"),
            ("income:c", "0.35", "B7"), ("income:d", "0.41"), ("income:e", "1.05", "A19"),
        )
    ]

    def test_write_off_gives_back_the_tax(self):
        records = [tax("T", "0.19"), invoice("A", "2025-03-05", "EUR", ("income:a", "100.00", "T")), write_off("W", "2025-04-02", "A", "11.90")]
        self.assertEqual(
            self.entries(records)["W"],
            [("receivable", "-11.90", "EUR", "-11.90"), ("losses", "10.00", "EUR", "10.00"), ("tax:T", "1.90", "EUR", "1.90")],
        )
        self.assertEqual(self.taxes(records, "--from", "2025-04-01"), {"T": ("-10.00", "-1.90")})

    def test_postings_by_code_in_order(self):
        found = self.entries(self.TAXED + [write_off("W", "2025-01-06", "A", "3.38")])
        self.assertEqual(
            found["W"],
            [
                ("receivable", "-3.38", "USD", "-3.11"), ("losses", "0.90", "USD", "0.83"), ("losses", "1.41", "USD", "1.30"),
                ("losses", "0.85", "USD", "0.78"), ("tax:B7", "0.06", "USD", "0.05"), ("tax:A19", "0.16", "USD", "0.15"),
            ],
        )

    def test_shares_are_those_of_lines(self):
        found = self.entries(self.TAXED + [write_off("W", "2025-01-06", "A", "0.94"), write_off("X", "2025-01-07", "A", "0.06")])
        expected = [
            ("receivable", "-0.94", "USD", "-0.86"), ("losses", "0.25", "USD", "0.23"), ("losses", "0.39", "USD", "0.36"),
            ("losses", "0.23", "USD", "0.21"), ("tax:B7", "0.02", "USD", "0.02"), ("tax:A19", "0.05", "USD", "0.04"),
        ]
        self.assertEqual(found["W"], expected)
        self.assertEqual([posting[1] for posting in found["X"]], ["-0.06", "0.01", "0.03", "0.02"])

    def test_parts_leave_nothing(self):
        records = self.TAXED + [write_off(f"W{n}", "2025-01-06", "A", "0.26") for n in range(13)]
        found = self.accounts(records)
        self.assertNotIn("receivable", found)
        self.assertEqual({code: -cents(row[1]) for code, row in self.taxes(records).items()}, {code: found.get(f"tax:{code}", 0) for code in ("A19", "B7")})

    def test_void_of_a_write_off(self):
        records = self.TAXED + [write_off("W", "2025-01-06", "A", "0.26")]
        self.refused(records + [void("V", "2025-01-07", "A")], "invoice `A` has applications")
        records += [void("V", "2025-02-07", "W")]
        self.assertEqual(self.taxes(records, "--to", "2025-01-05"), self.taxes(records))
        self.assertEqual(self.open_items(records)["A"], ["3.38", "USD", "3.11"])
        self.assertEqual(self.accounts(records + [void("Z", "2025-02-08", "A")]), {})

    def test_more_than_the_open_amount_is_refused(self):
        self.refused(self.TAXED + [write_off("W", "2025-01-06", "A", "3.39")], "not enough is open")


class Revaluation(LedgerCase):
    START = [rate("2025-01-01", "USD", "0.9"), rate("2025-01-01", "JPY", "0.006")]
    START += [invoice("B", "2025-01-05", "USD", ("income:a", "10.00")), invoice("A", "2025-01-06", "JPY", ("income:a", "1000"))]
    START += [payment("P", "2025-01-07", "USD", "8.00", ("B", "3.00")), payment("E", "2025-01-07", "EUR", "7.00")]
    START += [rate("2025-01-31", "USD", "0.8"), rate("2025-01-31", "JPY", "0.0065")]

    def test_revaluation_and_its_reversal(self):
        found = self.numbered(self.START + [revalue("R", "2025-01-31"), payment("Z", "2025-01-20", "EUR", "1.00")])
        there = [
            ("receivable", "0", "JPY", "0.50"), ("receivable", "0.00", "USD", "-0.70"), ("advances", "0.00", "USD", "0.50"),
            ("bank:usd", "0.00", "USD", "-0.80"), ("fx:unrealized", "0.50", "EUR", "0.50"),
        ]
        back = [
            ("receivable", "0", "JPY", "-0.50"), ("receivable", "0.00", "USD", "0.70"), ("advances", "0.00", "USD", "-0.50"),
            ("bank:usd", "0.00", "USD", "0.80"), ("fx:unrealized", "-0.50", "EUR", "-0.50"),
        ]
        self.assertEqual(found[4:6], [["5", "2025-01-31", "R", there], ["6", "2025-02-01", "R", back]])
        self.assertEqual(found[6][:3], ["7", "2025-01-20", "Z"])

    def test_reports_show_the_day_of_the_revaluation_only(self):
        records = self.START + [revalue("R", "2025-01-31")]
        self.assertEqual(self.open_items(records, "--as-of", "2025-01-30"), {"A": ["1000", "JPY", "6.00"], "B": ["7.00", "USD", "6.30"], "TOTAL": ["12.30"]})
        self.assertEqual(self.open_items(records, "--as-of", "2025-01-31"), {"A": ["1000", "JPY", "6.50"], "B": ["7.00", "USD", "5.60"], "TOTAL": ["12.10"]})
        self.assertEqual(self.open_items(records), self.open_items(records, "--as-of", "2025-01-30"))
        self.assertEqual(self.accounts(records, "--as-of", "2025-01-31")["receivable"], 1210)

    def test_revaluation_does_not_touch_what_documents_take(self):
        records = self.START + [revalue("R", "2025-01-31"), payment("Q", "2025-01-31", "USD", "7.00", ("B", "7.00"))]
        self.assertEqual(self.entries(records)["Q"][1], ("receivable", "-7.00", "USD", "-6.30"))
        records += [apply("Y", "2025-01-31", "P", ("C", "5.00"))]
        records.insert(-1, invoice("C", "2025-01-31", "USD", ("income:a", "5.00")))
        self.assertEqual(self.entries(records)["Y"][0], ("advances", "5.00", "USD", "4.50"))

    def test_revaluation_looks_at_the_journal_up_to_its_date(self):
        records = self.START + [payment("Q", "2025-02-03", "USD", "7.00", ("B", "7.00")), revalue("R", "2025-01-31")]
        self.assertIn(("receivable", "0.00", "USD", "-0.70"), self.numbered(records)[5][3])
        records = self.START + [payment("Q", "2025-01-04", "USD", "7.00", ("B", "7.00")), revalue("R", "2025-01-04")]
        self.assertEqual(self.numbered(records)[5][3], [])
        records = self.START + [rate("2025-01-04", "USD", "0.5"), payment("Q", "2025-01-03", "USD", "7.00", ("B", "7.00")), revalue("R", "2025-01-04")]
        expected = [("receivable", "0.00", "USD", "2.80"), ("bank:usd", "0.00", "USD", "-2.80")]
        self.assertEqual(self.numbered(records)[5][3], expected)

    def test_second_revaluation_of_a_day_finds_nothing(self):
        found = self.numbered(self.START + [revalue("R", "2025-01-31"), revalue("S", "2025-01-31"), revalue("T", "2025-02-01")])
        expected = [("2025-01-31", 5), ("2025-02-01", 5), ("2025-01-31", 0), ("2025-02-01", 0), ("2025-02-01", 5), ("2025-02-02", 5)]
        self.assertEqual([(entry[1], len(entry[3])) for entry in found[4:]], expected)

    def test_manual_entries_are_no_balances(self):
        records = self.START + [manual("M", "2025-01-08", ("bank:usd", "USD", "100.00", "90.00"), ("advances", "USD", "-100.00", "-90.00"))]
        found = self.numbered(records + [revalue("R", "2025-01-31")])
        self.assertEqual(found[5][3][2:4], [("advances", "0.00", "USD", "0.50"), ("bank:usd", "0.00", "USD", "-0.80")])

    def test_settled_balances_are_left_out(self):
        records = [rate("2025-01-10", "USD", "0.9"), invoice("B", "2025-01-12", "USD", ("income:a", "10.00"))]
        records += [payment("P", "2025-01-13", "USD", "10.00", ("B", "10.00")), exchange("X", "2025-01-14", "USD", "10.00", "9.50")]
        records += [rate("2025-01-15", "USD", "0.7")]
        for date in ("2025-01-02", "2025-01-31"):
            found = self.numbered(records + [revalue("R", date)])
            self.assertEqual([entry[2:] for entry in found[-2:]], [["R", []], ["R", []]])

    def test_revaluation_is_not_voided_and_has_an_id_of_its_own(self):
        records = self.START + [revalue("R", "2025-01-31")]
        self.refused(records + [void("V", "2025-02-02", "R")], "`R` can't be voided")
        self.refused(records + [revalue("R", "2025-02-28")], "document `R` exists already")


class Everything(LedgerCase):
    def test_reports_agree_in_long_books(self):
        for seed in range(2):
            records, dates = long_book(random.Random(seed))
            for document, postings in self.entries(records).items():
                self.assertEqual(sum(cents(posting[3]) for posting in postings), 0, document)
            for date in dates:
                accounts = self.accounts(records, "--as-of", date)
                self.assertEqual(cents(self.open_items(records, "--as-of", date)["TOTAL"][0]), accounts.get("receivable", 0))
                for code, (_, amount) in self.taxes(records, "--to", date).items():
                    self.assertEqual(-cents(amount), accounts.get(f"tax:{code}", 0))
            self.assertEqual({"receivable", "advances", "bank:usd", "bank:jpy"} & set(accounts), set())


def long_book(dice):
    """Returns a book at the end of which all is settled, and some dates in it."""
    records = [tax("A19", "0.19"), tax("B7", "0.07")]
    money = {"USD": 0, "JPY": 0}

    def shown(amount, currency):
        return str(amount) if currency == "JPY" else f"{amount // 100}.{amount % 100:02}"

    for month in range(1, 9):
        for currency, low, high in (("USD", 8800, 9900), ("JPY", 51, 69)):
            records.append(rate(f"2025-{month:02}-01", currency, f"0.{dice.randint(low, high):04}"))
        for number in range(8):
            name, date = f"I{month}-{number}", f"2025-{month:02}-{number + 2:02}"
            currency = dice.choice(("USD", "JPY"))
            triples, nets = [], {}
            for _ in range(dice.randint(1, 5)):
                code, amount = dice.choice((None, "A19", "B7")), dice.randint(1, 3000)
                nets[code] = nets.get(code, 0) + amount
                triples.append(("income:x", shown(amount, currency)) + ((code,) if code else ()))
            rest = nets.get(None, 0) + sum(
                nets[code] + (2 * nets[code] * percent + 100) // 200 for code, percent in (("A19", 19), ("B7", 7)) if code in nets
            )
            records.append(invoice(name, date, currency, *triples))
            if dice.random() < 0.2:
                records.append(void(f"V{name}", f"2025-{month:02}-28", name) if dice.random() < 0.5 else credit(f"C{name}", date, name, *triples))
                continue
            step = 0
            while rest:
                part, extra = dice.randint(1, rest) if step < 3 else rest, dice.choice((0, 0, 3, 11))
                paid = payment(f"P{name}-{step}", f"2025-{month:02}-{step + 20:02}", currency, shown(part + extra, currency), (name, shown(part, currency)))
                records.append(paid)
                if extra == 0 and dice.random() < 0.3:
                    records.append(void(f"W{name}-{step}", f"2025-{month:02}-25", paid["id"]))
                else:
                    rest -= part
                    money[currency] += part + extra
                if extra:
                    tail = f"{name}-{step}"
                    records.append(invoice(f"J{tail}", date, currency, ("income:y", shown(extra, currency))))
                    for n, piece in enumerate((1, 2, extra - 3)):
                        if piece:
                            records.append(apply(f"Y{tail}-{n}", f"2025-{month:02}-26", paid["id"], (f"J{tail}", shown(piece, currency))))
                step += 1
        for currency, amount in money.items():
            left = amount if month == 8 else dice.randint(0, amount)
            if left:
                records.append(exchange(f"X{month}-{currency}", f"2025-{month:02}-27", currency, shown(left, currency), f"{left}.00"))
                money[currency] -= left
        records.append(revalue(f"R{month}", f"2025-{month:02}-24"))
    return records, ["2025-06-24", "2025-08-31"]
