import base64
import json

import lab


def bytes_of(text):
    return base64.b64decode(text)


class Files(lab.Case):
    """Runs of the program before it was rewritten, with their files."""

    def cases(self, *numbers):
        cases = json.loads(lab.data("cases.json"))
        for number in numbers:
            case = cases[number]
            self.write("w/in.txt", bytes_of(case["input"]))
            self.write("w/table.json", json.dumps(case["table"]))
            for name in ("o", "o.rejects", "o.state"):
                if self.exists(f"w/{name}"):
                    self.program("rm", f"w/{name}")
            yield number, case

    def run_case(self, run):
        args = [f"w/{word}" if word in ("in.txt", "table.json", "o") else word for word in run["args"]]
        return self.program("node", "bin/intake.js", *args)

    def compare(self, *numbers):
        for number, case in self.cases(*numbers):
            for step, run in enumerate(case["runs"]):
                done = self.run_case(run)
                where = f"case {number}, run {step}"
                self.assertEqual((done.status, done.stdout, done.stderr), (run["status"], run["stdout"], run["stderr"]), where)
                for name, content in run["files"].items():
                    self.assertEqual(self.read_bytes(f"w/{name}"), bytes_of(content), f"{where}: {name}")

    def test_small_chunks_and_batches(self):
        self.compare(0, 1)

    def test_last_line_without_an_end(self):
        self.compare(2, 3)

    def test_blank_lines_at_the_end(self):
        self.compare(4, 5)

    def test_no_products(self):
        self.compare(6, 7)

    def test_goes_on_with_the_files_of_a_crashed_import(self):
        for _, case in self.cases(0):
            first, last = case["runs"][0], case["runs"][-1]
            self.run_case(first)
            for name in ("o", "o.rejects"):
                self.write(f"w/{name}", bytes_of(first["files"][name]) + b'{"line":')
            self.run_case(last)
            for name, content in last["files"].items():
                self.assertEqual(self.read_bytes(f"w/{name}"), bytes_of(content), name)

    def test_errors_are_printed_as_before(self):
        args = ("samples/list.txt", "--table", "samples/table.json", "--out", "o")
        self.write("o.state", '{"version": 1}')
        done = self.program("node", "bin/intake.js", *args)
        self.assertEqual((done.status, done.stdout, done.stderr), (1, "", "intake: version 1 of `o.state` isn't supported\n"))
        self.write("o.state", '{"version": 2, "input": "x.txt", "checksum": "00000001"}')
        done = self.program("node", "bin/intake.js", *args)
        self.assertEqual((done.status, done.stderr), (1, "intake: `o.state` belongs to `x.txt`\n"))
        done = self.program("node", "bin/intake.js", "none", *args[1:])
        self.assertEqual((done.status, done.stderr), (1, "intake: `o.state` belongs to `x.txt`\n"))
        self.program("rm", "o.state")
        done = self.program("node", "bin/intake.js", "none", *args[1:])
        self.assertEqual((done.status, done.stderr), (1, "intake: ENOENT: no such file or directory, open 'none'\n"))
        self.assertFalse(self.exists("o") or self.exists("o.rejects") or self.exists("o.state"))


class Stages(lab.Case):
    def start(self, op, **arguments):
        self.stages = self.driver("node", "tools/driver.js")
        self.do(op, **arguments)

    def do(self, op, **arguments):
        return self.stages.call(op, **arguments)["events"]

    def value(self, op, **arguments):
        return self.stages.call(op, **arguments)["value"]


class Reader(Stages):
    def read(self, content, **options):
        self.stages = self.driver("node", "tools/driver.js")
        return self.value("read", base64=base64.b64encode(content).decode(), **options)

    def test_chunks_are_read_on_demand(self):
        lines = self.read(b"a\nb\r\n\ncd\ne", chunkBytes=4)
        self.assertEqual(lines[:4], [["a", 2, 1], ["b", 5, 2], ["", 6, 2], ["cd", 9, 3]])
        self.assertEqual([line[:2] for line in lines[4:]], [["e", 10]])
        self.assertEqual(self.read(b"a\nb\nc\n", chunkBytes=100, count=2), [["a", 2, 1], ["b", 4, 1]])

    def test_offset_and_byte_order_mark(self):
        content = b"\xef\xbb\xbfab\n\xef\xbb\xbfc\r\r\n"
        self.assertEqual([line[:2] for line in self.read(content, chunkBytes=2)], [["ab", 6], ["\u00ef\u00bb\u00bfc\r", 13]])
        self.assertEqual([line[:2] for line in self.read(content, chunkBytes=2, offset=6)], [["\u00ef\u00bb\u00bfc\r", 13]])


class Enrich(Stages):
    def give(self, sku, reason=None):
        item = {"sku": sku, "reason": reason} if reason else {"sku": sku, "record": {"sku": sku}}
        return sorted(self.do("give", item=item))

    def test_takes_items_up_to_the_limit_and_keeps_their_order(self):
        self.start("enrich", concurrency=3)
        self.assertEqual(self.do("pull"), ["requested"])
        self.assertEqual(self.give("A"), ["lookup A", "requested"])
        self.assertEqual(self.give("B"), ["lookup B", "requested"])
        self.assertEqual(self.give("C"), ["lookup C"])
        self.assertEqual(self.do("found", sku="C", category="c"), [])
        self.assertEqual(self.do("found", sku="B", category=None), [])
        self.assertEqual(self.do("found", sku="A", category="a"), ["got A a"])
        # The consumer isn't waiting now.
        happened = [*self.do("pull"), *self.do("pull")]
        self.assertEqual([event for event in happened if event != "requested"], ["got B (unknown SKU)", "got C c"])
        self.assertLessEqual(happened.count("requested"), 1)

    def test_takes_nothing_while_the_consumer_isnt_waiting(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.give("B")
        self.assertEqual(self.do("found", sku="A", category="a"), ["got A a"])
        self.assertEqual(self.do("found", sku="B", category="b"), [])

    def test_items_without_a_lookup_count(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.assertEqual(self.give("B", "bad SKU"), [])
        self.assertEqual(self.do("found", sku="A", category="a"), ["got A a"])
        self.assertIn("got B (bad SKU)", self.do("pull"))

    def test_finished_item_doesnt_wait_for_the_source(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.assertEqual(self.do("found", sku="A", category="a"), ["got A a"])
        # The request for the second item is outstanding still.
        self.assertEqual(self.do("pull"), [])
        self.assertIn("lookup B", self.give("B"))
        self.assertEqual(self.do("found", sku="B", category="b"), ["got B b"])

    def test_lookup_is_tried_three_times(self):
        self.start("enrich", concurrency=1)
        self.do("pull")
        self.assertEqual(self.give("A"), ["lookup A"])
        self.assertEqual(self.do("broken", sku="A", message="busy"), ["lookup A"])
        self.assertEqual(self.do("broken", sku="A", message="busy"), ["lookup A"])
        self.assertEqual(self.do("broken", sku="A", message="gone"), ["got A (lookup failed: gone)"])
        self.assertEqual(self.do("pull"), ["requested"])
        self.assertEqual(self.do("end"), ["end"])

    def test_items_before_a_failure_of_the_source_come_first(self):
        self.start("enrich", concurrency=3)
        self.do("pull")
        self.give("A")
        self.give("B")
        self.assertEqual(self.do("fail", message="disk"), [])
        self.assertEqual(self.do("found", sku="B", category="b"), [])
        self.assertEqual(self.do("found", sku="A", category="a"), ["got A a"])
        self.assertEqual(self.do("pull"), ["got B b"])
        self.assertEqual(self.do("pull"), ["failed: disk"])
        self.assertEqual(self.do("pull"), ["end"])

    def test_consumer_that_stops_closes_the_source(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.give("B")
        self.do("found", sku="A", category="a")
        self.assertEqual(sorted(self.do("stop")), ["abort B", "closed", "stopped"])
        # The lookup that was aborted isn't tried again.
        self.assertEqual(self.do("broken", sku="B", message="aborted"), [])
        self.assertEqual(self.value("listeners"), 0)

    def test_abort_rejects_the_request_without_waiting_for_lookups(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.give("B")
        happened = self.do("abort", reason="enough")
        self.assertEqual(sorted(happened), ["abort A", "abort B", "closed", "failed: enough"])
        self.assertEqual(self.do("broken", sku="A", message="aborted"), [])
        self.assertEqual(self.do("pull"), ["end"])
        self.assertEqual(self.value("listeners"), 0)

    def test_abort_between_requests_drops_finished_items(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.give("B")
        self.do("found", sku="A", category="a")
        self.do("found", sku="B", category="b")
        happened = [*self.do("abort", reason="enough"), *self.do("pull")]
        self.assertEqual([event for event in happened if not event.startswith("abort")], ["closed", "failed: enough"])

    def test_source_that_has_ended_isnt_closed(self):
        self.start("enrich", concurrency=2)
        self.do("pull")
        self.give("A")
        self.do("end")
        self.assertEqual(self.do("abort", reason="enough"), ["abort A", "failed: enough"])


class Batches(Stages):
    def test_batch_is_yielded_when_it_is_full(self):
        self.start("batches", size=2)
        self.do("pull")
        self.do("give", item="a")
        self.assertEqual(self.do("give", item="b"), ["got a,b"])
        self.do("pull")
        self.do("give", item="c")
        self.assertEqual(self.do("end"), ["got c"])
        self.assertEqual(self.do("pull"), ["end"])

    def test_failure_drops_the_batch_and_a_stop_closes_the_source(self):
        self.start("batches", size=2)
        self.do("pull")
        self.do("give", item="a")
        self.assertEqual(self.do("fail", message="disk"), ["failed: disk"])
        self.start("batches", size=1)
        self.do("pull")
        self.do("give", item="a")
        self.assertEqual(sorted(self.do("stop")), ["closed", "stopped"])


class Import(Stages):
    LINES = 20

    def begin(self, isHeld=True, **more):
        """Starts an import of lines with batches of 3, four lookups at a time."""
        self.write("w/in.txt", "".join(f"AB-{100 + i}|t|1\n" for i in range(self.LINES)))
        options = {"input": "w/in.txt", "out": "w/o", "batch": 3, "concurrency": 4, "chunkBytes": 16}
        table = {f"AB-{100 + i}": "c" for i in range(self.LINES)}
        self.start("import", options=options, isHeld=isHeld, table=table, **more)

    def step(self):
        """Waits until `onBatch` is called or the import is over."""
        return self.value("wait")[0]

    def batches(self, count):
        """Lets the import go on until `onBatch` is called for this batch."""
        for number in range(1, count + 1):
            self.assertEqual(self.step(), f"batch {number}")
            if number < count:
                self.do("go")

    def state(self):
        return json.loads(self.read("w/o.state"))

    def has_ended(self, step, batches):
        """Checks how the import ended, and that it can go on."""
        self.assertEqual(self.step(), step)
        self.assertEqual(self.value("open_files", folder="w"), 0)
        self.assertEqual((self.state()["batches"], self.state()["done"]), (batches, False))
        self.begin(isHeld=False)
        while (step := self.step()).startswith("batch"):
            pass
        self.assertEqual(step, "settled, done")
        self.assertEqual([json.loads(line)["line"] for line in self.read("w/o").splitlines()], list(range(1, self.LINES + 1)))
        self.assertEqual(self.state()["accepted"], self.LINES)

    def test_nothing_goes_on_while_onbatch_runs(self):
        self.begin()
        for number in (1, 2, 3):
            step, lookups = self.value("wait")
            self.assertEqual(step, f"batch {number}")
            self.assertLessEqual(lookups, 3 * number + 4)
            self.assertEqual(self.state()["batches"], number)
            self.assertEqual(self.read("w/o").count("\n"), 3 * number)
            self.do("go")

    def test_stop_leaves_a_state_to_go_on_from(self):
        self.begin()
        self.batches(2)
        self.do("go", result=True)
        self.has_ended("settled, not done", 2)

    def test_failing_onbatch_ends_the_import(self):
        self.begin()
        self.batches(2)
        self.do("go_wrong", message="no")
        self.has_ended("failed: no", 2)

    def test_abort_in_onbatch_begins_no_other_batch(self):
        self.begin()
        self.batches(1)
        self.do("abort", reason="enough")
        self.do("go")
        self.has_ended("failed: enough", 1)

    def test_abort_in_the_last_onbatch_writes_no_end(self):
        self.begin()
        self.batches(7)
        self.do("abort", reason="enough")
        self.do("go")
        self.has_ended("failed: enough", 7)

    def test_abort_during_lookups_doesnt_wait_for_them(self):
        self.begin(isSilent=True)
        self.assertEqual(self.value("lookups", count=4), 4)
        self.assertEqual(sorted(self.do("abort", reason="enough")), ["abort AB-100", "abort AB-101", "abort AB-102", "abort AB-103"])
        self.assertEqual(self.step(), "failed: enough")
        self.assertEqual(self.value("open_files", folder="w"), 0)
        self.assertFalse(self.exists("w/o.state"))

    def test_abort_before_the_call_touches_no_file(self):
        self.stages = self.driver("node", "tools/driver.js")
        self.write("w/in.txt", "AB-100|t|1\n")
        self.write("w/o", "old")
        self.do("abort", reason="enough")
        self.do("import", options={"input": "w/in.txt", "out": "w/o", "batch": 3, "concurrency": 4}, table={})
        self.assertEqual(self.step(), "failed: enough")
        self.assertEqual(self.read("w/o"), "old")
        self.assertFalse(self.exists("w/o.rejects") or self.exists("w/o.state"))

    def test_failed_write_keeps_the_last_state(self):
        self.begin()
        self.batches(1)
        # The name for the next state is taken by a folder.
        self.write("w/o.state.tmp/x", "")
        self.do("go")
        step = self.step()
        self.assertTrue(step.startswith("failed: EISDIR"), step)
        self.assertEqual(self.value("open_files", folder="w"), 0)
        self.assertEqual((self.state()["batches"], self.state()["done"]), (1, False))
