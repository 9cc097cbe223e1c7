import hashlib
import json
import os

import lab

GOLDEN = json.loads(lab.data("golden.json"))

# Bytes of address space for a run whose input takes more than this as Python texts.
MEMORY_KIB = 90 * 1024

NOTES = '''
from ledger.registry import Report, register

@register("notes", "plain notes")
class Notes(Report):
    def begin(self):
        self.seen = []
        return ["notes begin"]

    def record(self, record):
        self.seen.append(record)

    def end(self):
        for record in self.seen:
            yield f"{record.id} {record.amount}"
'''

SPOILER = '''
from ledger.registry import Report, register

@register("spoiler", "changes its records")
class Spoiler(Report):
    def record(self, record):
        record.amount = 77
        record.account = "spoiled"
        record.kind = "fee"
        record.memo = "gone"
        yield "spoiled " + record.id
'''

BAD = '''
from ledger.registry import Report, register

@register("bad", "fails")
class Bad(Report):
    def record(self, record):
        if record.id == "3":
            raise KeyError("three")
    def end(self):
        yield "one"
        raise RuntimeError("no end")
'''


def line(number, amount=100, kind="sale", day=1, **more):
    record = {"id": str(number), "time": f"2024-03-{day:02}T10:00", "account": "acme", "kind": kind, "amount": amount}
    return json.dumps({**record, **more}, ensure_ascii=False) + "\n"


def shown(number, amount="1.00", kind="sale", day=1):
    return f"{number:<8} 2024-03-{day:02}T10:00 {'acme':<12} {kind:<6} {amount:>14}"


def reports(*names):
    return [part for name in names for part in ("--report", name)]


class Base(lab.Case):
    def run_report(self, *args, **more):
        return self.program("python3", "report.py", *args, **more)

    def ok(self, *args, **more):
        done = self.run_report(*args, **more)
        self.assertEqual(done.status, 0, done)
        return done.stdout

    def failed(self, status, message, *args, **more):
        done = self.run_report(*args, **more)
        self.assertEqual(done.status, status, done)
        self.assertEqual(done.stderr, message + "\n")
        return done.stdout


class Outputs(Base):
    def check(self, group):
        for name, text in GOLDEN["files"].items():
            self.write(name, text)
        for case in GOLDEN["cases"][group]:
            with self.subTest(args=case["args"]):
                self.assertEqual(self.ok(*case["args"]), case["stdout"])

    def test_all_reports(self):
        self.check("plain")
        self.check("order")

    def test_top_with_ties(self):
        self.check("top")

    def test_days_that_come_again(self):
        self.check("daily")

    def test_averages_have_the_known_differences(self):
        self.check("averages")

    def test_reports_after_refunds(self):
        self.check("after_refunds")

    def test_reports_before_refunds(self):
        self.check("before_refunds")

    def test_reports_asked_for_twice(self):
        self.check("twice")

    def test_standard_input_between_files(self):
        self.write("one.jsonl", line(1))
        self.write("two.jsonl", line(2))
        out = self.ok(*reports("listing"), "two.jsonl", "-", "one.jsonl", stdin=line(3))
        expected = ["== listing ==", shown(2), shown(3), shown(1), "3 records", "", "3 records read"]
        self.assertEqual(out.splitlines(), expected)

    def test_output_file_may_be_the_input_file(self):
        self.write("one.jsonl", line(1) + line(2))
        self.assertEqual(self.ok(*reports("averages", "listing"), "one.jsonl", "--output", "one.jsonl"), "")
        expected = [
            "== averages ==", "sale        2           1.00", "",
            "== listing ==", shown(1), shown(2), "2 records", "", "2 records read",
        ]
        self.assertEqual(self.read("one.jsonl").splitlines(), expected)


class Errors(Base):
    def test_unknown_report_lists_all_registered(self):
        self.write("notes.py", NOTES)
        known = "averages, daily, listing, notes, outliers, refunds, summary, top"
        message = f"report.py: error: unknown report `nots`; known are {known}"
        out = self.failed(2, message, "--plugin", "notes.py", *reports("listing", "nots"), "missing.jsonl")
        self.assertEqual(out, "")

    def test_missing_file_is_reported_before_any_output(self):
        self.write("one.jsonl", line(1))
        message = "report.py: error: missing.jsonl: No such file or directory"
        self.assertEqual(self.failed(2, message, *reports("listing"), "one.jsonl", "missing.jsonl"), "")

    def test_invalid_line_leaves_what_was_due(self):
        self.write("one.jsonl", line(1) + "\n" + line(2, 5, "refund") + line(3))
        message = "report.py: error: one.jsonl:3: `amount` has the wrong sign for a refund"
        out = self.failed(2, message, *reports("listing", "summary", "outliers"), "one.jsonl")
        self.assertEqual(out.splitlines(), ["== listing ==", shown(1)])

    def test_invalid_line_of_another_account(self):
        self.write("one.jsonl", line(1, day=1) + line(2, day=2) + line(3, 0, account="x"))
        message = "report.py: error: one.jsonl:3: `amount` has the wrong sign for a sale"
        out = self.failed(2, message, *reports("daily", "listing"), "one.jsonl", "--account", "acme")
        self.assertEqual(out.splitlines(), ["== daily ==", f"2024-03-01 {1:>6} {'1.00':>14} {'1.00':>14}"])

    def test_output_file_stays_after_an_invalid_line(self):
        self.write("old.txt", "old\n")
        for name in ("old.txt", "new.txt"):
            out = self.failed(2, "report.py: error: -:2: the line is no JSON", "--output", name, stdin=line(1) + "{\n")
            self.assertEqual(out, "")
        self.assertEqual(self.read("old.txt"), "old\n")
        self.assertFalse(self.exists("new.txt"))

    def test_report_that_fails_in_a_call_or_a_generator(self):
        self.write("bad.py", BAD)
        message = "report.py: error: report `bad` failed: KeyError: 'three'"
        out = self.failed(3, message, "--plugin", "bad.py", *reports("averages", "bad"), stdin=line(1) + line(3))
        self.assertEqual(out.splitlines(), ["== averages =="])
        self.write("old.txt", "old\n")
        message = "report.py: error: report `bad` failed: RuntimeError: no end"
        args = ["--plugin", "bad.py", *reports("listing", "bad"), "--output", "old.txt"]
        self.assertEqual(self.failed(3, message, *args, stdin=line(1)), "")
        self.assertEqual(self.read("old.txt"), "old\n")


class PlugIns(Base):
    def plugged(self, names, stdin, **files):
        args = []
        for name, text in files.items():
            self.write(name + ".py", text)
            args += ["--plugin", name + ".py"]
        return self.ok(*args, *reports(*names), stdin=stdin).splitlines()

    def test_plug_in_between_built_in_reports(self):
        out = self.plugged(["averages", "notes", "listing"], line(1), notes=NOTES)
        expected = [
            "== averages ==", "sale        1           1.00", "",
            "== notes ==", "notes begin", "1 100", "",
            "== listing ==", shown(1), "1 records", "", "1 records read",
        ]
        self.assertEqual(out, expected)

    def test_kept_records_do_not_change(self):
        text = line(1) + line(2, -50, "refund")
        out = self.plugged(["notes", "spoiler", "refunds", "notes"], text, notes=NOTES, spoiler=SPOILER)
        self.assertEqual(out[:5], ["== notes ==", "notes begin", "1 100", "2 -50", ""])
        self.assertEqual(out[-6:], ["== notes ==", "notes begin", "1 100", "2 50", "", "2 records read"])

    def test_changes_stay_in_the_report(self):
        text = line(1) + line(2, -50, "refund")
        out = self.plugged(["spoiler", "listing", "refunds", "spoiler", "listing"], text, spoiler=SPOILER)
        expected = [
            "== spoiler ==", "spoiled 1", "spoiled 2", "",
            "== listing ==", shown(1), shown(2, "-0.50", "refund"), "2 records", "",
            "== refunds ==", f"{'acme':<12} {1:>6} {'0.50':>14}", "total 0.50", "",
            "== spoiler ==", "spoiled 1", "spoiled 2", "",
            "== listing ==", shown(1), shown(2, "0.50", "refund"), "2 records", "",
            "2 records read",
        ]
        self.assertEqual(out, expected)

    def test_each_mention_has_its_own_object(self):
        out = self.plugged(["notes", "notes"], line(1), notes=NOTES)
        self.assertEqual(out, ["== notes ==", "notes begin", "1 100", ""] * 2 + ["1 records read"])

    def test_calls_come_in_the_order_of_the_run(self):
        text = """
from ledger.registry import Report, register

calls = []

class Traced(Report):
    def begin(self):
        calls.append(self.name + " begin")
    def record(self, record):
        calls.append(f"{self.name} {record.id}")
        yield "x"
        calls.append(f"{self.name} {record.id} consumed")
    def end(self):
        calls.append(f"{self.name} end {self.options.top} {self.options.account}")
        yield from calls

@register("p")
class P(Traced):
    name = "p"

@register("q")
class Q(Traced):
    name = "q"
"""
        self.write("traced.py", text)
        args = ["--plugin", "traced.py", *reports("q", "p"), "--account", "acme", "--top", "7"]
        out = self.ok(*args, stdin=line(1) + line(2, account="other") + line(3)).splitlines()
        calls = [
            "q begin", "p begin", "q 1", "q 1 consumed", "p 1", "p 1 consumed",
            "q 3", "q 3 consumed", "p 3", "p 3 consumed", "q end 7 acme", "p end 7 acme",
        ]
        expected = ["== q ==", "x", "x", *calls[:-1], "", "== p ==", "x", "x", *calls, "", "3 records read"]
        self.assertEqual(out, expected)

    def test_default_run_has_only_built_in_reports(self):
        self.write("notes.py", NOTES)
        with_plugin = self.ok("--plugin", "notes.py", "examples/march.jsonl")
        self.assertEqual(with_plugin, self.ok("examples/march.jsonl"))
        self.assertEqual(with_plugin.count("\n== "), 6)

    def test_list_prints_all_sorted(self):
        self.write("notes.py", NOTES)
        lines = self.ok("--plugin", "notes.py", "--list").splitlines()
        names = ["averages", "daily", "listing", "notes", "outliers", "refunds", "summary", "top"]
        self.assertEqual([text[:12].rstrip() for text in lines], names)
        self.assertEqual(lines[3], "notes        plain notes")
        self.assertTrue(all(len(text) > 13 and text[12] == " " for text in lines), lines)

    def test_same_file_name_in_two_folders(self):
        self.write("x/more.py", NOTES)
        self.write("y/more.py", NOTES.replace("notes", "other"))
        out = self.ok("--plugin", "x/more.py", "--plugin", "y/more.py", *reports("other", "notes"), stdin=line(1))
        expected = ["== other ==", "other begin", "1 100", "", "== notes ==", "notes begin", "1 100", "", "1 records read"]
        self.assertEqual(out.splitlines(), expected)

    def test_plug_in_that_cannot_be_loaded(self):
        self.write("more.py", NOTES.replace('"notes"', '"summary"'))
        message = "report.py: error: plug-in `more.py`: report `summary` is already registered"
        self.assertEqual(self.failed(2, message, "--plugin", "more.py", stdin=line(1)), "")
        self.write("more.py", "raise OSError('no license')\n")
        message = "report.py: error: plug-in `more.py`: no license"
        self.assertEqual(self.failed(2, message, "--plugin", "more.py", "--list"), "")


TRACED = '''
from ledger.registry import Report, register

@register("traced")
class Traced(Report):
    def begin(self):
        self.calls = ["begin"]
        return ["now begin"]

    def restore(self, values):
        first = next(values)
        self.calls = [f"restored {first}"] + [value for value, _ in values]

    def record(self, record):
        self.calls.append(record.id)
        yield "now " + record.id

    def save(self):
        yield {"ratio": 0.1, "text": "\\r\\u2028"}
        for call in self.calls:
            yield (call, None)
        self.calls.append("saved")

    def end(self):
        return self.calls
'''

FAILING = '''
from ledger.registry import Report, register

@register("failing")
class Failing(Report):
    def save(self):
        yield 1
        if self.options.top == 8:
            raise OSError("no save")
    def restore(self, values):
        if self.options.top == 9:
            raise KeyError(next(values))
    def end(self):
        if self.options.top == 7:
            raise ValueError("no end")
'''


class Checkpoints(Base):
    def check(self, *args, parts):
        """Compares runs that go on with runs over everything."""
        if self.exists("state"):
            self.program("rm", "state")
        whole = ""
        for part in parts:
            whole += part
            expected = self.ok(*args, stdin=whole)
            self.assertEqual(self.ok(*args, "--checkpoint", "state", stdin=part), expected, args)

    def test_built_in_reports(self):
        lines = self.read("examples/march.jsonl").splitlines(keepends=True)
        self.check(parts=["".join(lines[:11]), "".join(lines[11:12]), "", "".join(lines[12:])])
        self.check(*reports("refunds", "summary", "refunds", "outliers", "top", "daily"), "--top", "5", parts=["", "".join(lines[:20]), "".join(lines[20:])])
        self.check(*reports("averages", "listing", "averages"), "--account", json.loads(lines[0])["account"], parts=["".join(lines[:9]), "".join(lines[9:])])

    def test_unusual_texts_and_sums(self):
        parts = [line(1, 10, memo="a\rb\u2028c \\ \u00fc") + line(2, 20, memo="x\x0by"), line(3, 70, day=2) + line(4, 10**30, memo="\r"), line(5, 3)]
        self.check(*reports("listing", "averages", "outliers", "top", "listing"), parts=parts)

    def test_equal_amounts_keep_their_order(self):
        parts = [line(1) + line(2) + line(3, 99), line(4) + line(5, 98), line(6, 100) + line(7, 99)]
        self.check(*reports("top"), parts=parts)

    def test_calls_of_a_plug_in(self):
        self.write("traced.py", TRACED)
        args = ["--plugin", "traced.py", *reports("averages", "traced", "traced"), "--checkpoint", "state"]
        first = ["now begin", "now 1", "begin", "1", "saved", ""]
        out = self.ok(*args, stdin=line(1)).splitlines()
        self.assertEqual(out[3:], ["== traced ==", *first, "== traced ==", *first, "1 records read"])
        restored = "restored {'ratio': 0.1, 'text': '\\r\\u2028'}"
        second = ["now begin", "now 1", "now 2", restored, "begin", "1", "2", "saved", ""]
        out = self.ok(*args, stdin=line(2)).splitlines()
        self.assertEqual(out[3:], ["== traced ==", *second, "== traced ==", *second, "2 records read"])

    def test_report_that_cannot_be_continued(self):
        self.write("notes.py", NOTES)
        message = "report.py: error: report `notes` can't be continued"
        out = self.failed(2, message, "--plugin", "notes.py", *reports("listing", "notes"), "--checkpoint", "state", stdin=line(1))
        self.assertEqual((out, self.exists("state")), ("", False))

    def test_other_reports_or_options(self):
        self.ok(*reports("listing", "top"), "--checkpoint", "state", stdin=line(1))
        before = self.read_bytes("state")
        message = "report.py: error: checkpoint `state` belongs to other reports or options"
        for args in (reports("top", "listing"), reports("listing"), [], [*reports("listing", "top"), "--top", "4"], [*reports("listing", "top"), "--account", "acme"]):
            self.assertEqual(self.failed(2, message, *args, "--checkpoint", "state", stdin=line(2)), "")
        self.assertEqual(self.read_bytes("state"), before)
        self.assertIn("2 records read", self.ok(*reports("listing", "top"), "--top", "3", "--checkpoint", "state", stdin=line(2)))

    def test_damaged_checkpoint(self):
        args = [*reports("listing", "outliers", "top"), "--checkpoint", "state"]
        self.ok(*args, stdin="".join(line(number) for number in range(50)))
        content = self.read_bytes("state")
        message = "report.py: error: checkpoint `state` is damaged"
        for damaged in (b"", content[: len(content) // 3], content[: len(content) * 2 // 3], b"\x00\xff" * 300, b"[1]\n", b"hello\n"):
            self.write("state", damaged)
            self.assertEqual(self.failed(2, message, *args, stdin=line(2)), "")
            self.assertEqual(self.read_bytes("state"), damaged)

    def test_errors_leave_the_checkpoint_as_it_was(self):
        self.write("plug/failing.py", FAILING)
        self.write("one.jsonl", line(1))
        for before in (False, True):
            for top, status, stdin, more in ((3, 2, "x", []), (7, 3, "", []), (8, 3, "", []), (9, 3, "", []), (3, 2, "", ["--output", "none/out"]), (3, 2, "", ["missing.jsonl"])):
                name = f"states{top}{before}{len(more)}{stdin}"
                self.write(name + "/other", "")
                args = ["--plugin", "plug/failing.py", *reports("listing", "failing"), "--checkpoint", name + "/state"]
                if before:
                    if top > 6:
                        continue
                    self.ok(*args, "one.jsonl", "--top", str(top))
                    content = self.read_bytes(name + "/state")
                done = self.run_report(*args, *more, "--top", str(top), stdin=stdin)
                if top != 9:
                    self.assertEqual(done.status, status, done)
                    self.assertEqual(self.exists(name + "/state"), before)
                if before:
                    self.assertEqual(self.read_bytes(name + "/state"), content)
                    self.assertIn("2 records read", self.ok(*args, "one.jsonl", "--top", str(top)))
                self.assertEqual(sorted(os.listdir(self.path(name))), ["other", "state"] if before or top == 9 else ["other"])

    def test_failing_restore(self):
        self.write("failing.py", FAILING)
        args = ["--plugin", "failing.py", *reports("listing", "failing"), "--top", "9", "--checkpoint", "state"]
        self.ok(*args, stdin=line(1))
        before = self.read_bytes("state")
        out = self.failed(3, "report.py: error: report `failing` failed: KeyError: 1", *args, stdin=line(2))
        self.assertTrue(f"== listing ==\n{shown(1)}\n".startswith(out), out)
        self.assertEqual(self.read_bytes("state"), before)

    def test_invalid_line_of_a_later_run(self):
        self.ok(*reports("listing", "daily"), "--checkpoint", "state", stdin=line(1) + line(2))
        out = self.failed(2, "report.py: error: -:2: the line is no JSON", *reports("listing", "daily"), "--checkpoint", "state", stdin=line(3) + "x\n")
        self.assertEqual(out.splitlines(), ["== listing ==", shown(1), shown(2), shown(3)])
        self.assertIn("3 records read", self.ok(*reports("listing", "daily"), "--checkpoint", "state", stdin=line(3)))

    def test_earlier_lines_come_before_new_records(self):
        self.ok(*reports("daily", "listing"), "--checkpoint", "state", stdin=line(1, day=1) + line(2, day=2))
        process = self.process("python3", "report.py", *reports("daily", "listing"), "--checkpoint", "state", seconds=5)
        self.assertEqual([process.line(), process.line()], ["== daily ==", f"2024-03-01 {1:>6} {'1.00':>14} {'1.00':>14}"])
        process.send(line(3, day=2).rstrip("\n"))
        process.send(line(4, day=3).rstrip("\n"))
        self.assertEqual(process.line(), f"2024-03-02 {2:>6} {'2.00':>14} {'3.00':>14}")
        self.assertEqual(process.wait().status, 0)


class Streaming(Base):
    def test_listing_shows_records_as_they_come(self):
        process = self.process("python3", "report.py", *reports("listing", "top", "listing"), seconds=5)
        self.assertEqual(process.line(), "== listing ==")
        for number in range(1, 4):
            process.send(line(number).rstrip("\n"))
            self.assertEqual(process.line(), shown(number))
        done = process.wait()
        self.assertEqual(done.stdout.splitlines()[:3], ["3 records", "", "== top =="])

    def test_daily_shows_a_day_when_the_next_begins(self):
        process = self.process("python3", "report.py", *reports("daily", "outliers"), seconds=5)
        self.assertEqual(process.line(), "== daily ==")
        process.send(line(1, day=1).rstrip("\n"))
        process.send(line(2, day=1).rstrip("\n"))
        process.send(line(3, day=2).rstrip("\n"))
        self.assertEqual(process.line(), f"2024-03-01 {2:>6} {'2.00':>14} {'2.00':>14}")
        process.send(line(4, day=1).rstrip("\n"))
        self.assertEqual(process.line(), f"2024-03-02 {1:>6} {'1.00':>14} {'3.00':>14}")
        self.assertEqual(process.wait().status, 0)

    def test_no_temporary_file_is_left(self):
        self.write("scratch/keep", "")
        env = {"TMPDIR": self.path("scratch")}
        many = "".join(line(number) for number in range(500))
        for _ in range(2):
            self.ok(*reports("listing", "outliers"), "--checkpoint", "state", stdin=many, env=env)
        self.ok(*reports("listing", "outliers", "listing"), stdin=many, env=env)
        self.failed(2, "report.py: error: -:501: the line is no JSON", stdin=many + "x\n", env=env)
        self.write("bad.py", BAD)
        message = "report.py: error: report `bad` failed: KeyError: 'three'"
        self.failed(3, message, "--plugin", "bad.py", *reports("outliers", "bad", "listing"), stdin=many, env=env)
        self.assertEqual(os.listdir(self.path("scratch")), ["keep"])

    def big(self):
        # A text with one such character takes four bytes per character in memory.
        self.memo = "\U0001f9fe" + "x" * 25_000
        count = 1_100
        self.write("big.jsonl", "".join(line(number, memo=self.memo) for number in range(count)))
        return count

    def limited(self, *args):
        command = f'ulimit -v {MEMORY_KIB}; exec python3 report.py "$@"'
        done = self.program("sh", "-c", command, "report", *args, seconds=30)
        self.assertEqual(done.status, 0, done)
        return done.stdout

    def listing(self, count):
        yield "== listing =="
        for number in range(count):
            yield shown(number) + "  " + self.memo
        yield f"{count} records"
        yield ""

    def same(self, name, lines):
        digest = hashlib.sha256()
        for text in lines:
            digest.update((text + "\n").encode())
        self.assertEqual(self.program("sha256sum", name).stdout.split()[0], digest.hexdigest())

    def test_memory_of_a_run_with_all_reports(self):
        count = self.big()
        self.limited("big.jsonl", "--output", "out.txt")
        tail = self.program("tail", "-n", "15", "out.txt").stdout.splitlines()
        self.assertEqual(tail[0], "== averages ==")
        self.assertEqual(tail[-4:], ["== outliers ==", "no outliers", "", f"{count} records read"])

    def test_memory_of_a_later_listing(self):
        count = self.big()
        self.limited("big.jsonl", *reports("averages", "listing"), "--output", "out.txt")
        head = ["== averages ==", f"sale   {count:>6} {'1.00':>14}", ""]
        self.same("out.txt", [*head, *self.listing(count), f"{count} records read"])

    def test_memory_of_runs_that_go_on(self):
        count = self.big()
        args = [*reports("listing", "outliers", "averages"), "--output", "out.txt", "--checkpoint", "state"]
        self.limited("big.jsonl", *args)
        self.write("one.jsonl", line(count, memo=self.memo))
        self.limited("one.jsonl", *args)
        tail = ["== outliers ==", "no outliers", "", "== averages ==", f"sale   {count + 1:>6} {'1.00':>14}", ""]
        self.same("out.txt", [*self.listing(count + 1), *tail, f"{count + 1} records read"])

    def test_memory_of_a_report_with_many_lines(self):
        self.write("many.py", '''
from ledger.registry import Report, register

@register("many")
class Many(Report):
    def end(self):
        for number in range(1_100):
            yield f"{number} \\U0001f9fe" + "x" * 25_000
''')
        for names in (["many"], ["averages", "many"]):
            command = ["--plugin", "many.py", *reports(*names), "examples/march.jsonl", "--output", "out.txt"]
            self.limited(*command)
            tail = self.program("tail", "-n", "3", "out.txt").stdout
            self.assertEqual(tail, "1099 \U0001f9fe" + "x" * 25_000 + "\n\n36 records read\n")
