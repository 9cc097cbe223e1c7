import hashlib
import signal

import lab


class Pipeline(lab.Case):
    def start(self, items=9, workers=2, window=4, auto=("source", "sink"), **more):
        self.pipe = self.driver("driver")
        self.pipe.call("start", items=items, workers=workers, window=window, auto=list(auto), **more)

    def wait_for(self, *events):
        self.pipe.call("await", events=list(events))

    def permit(self, call, how="ok"):
        self.pipe.call("permit", call=call, how=how)

    def settle(self):
        return self.pipe.call("settle")

    def finish(self):
        answer = self.pipe.call("finish")
        self.assertEqual(answer["left"], 0, "goroutines are left")
        return answer

    def delivered(self, answer):
        return [event[1:] for event in answer["events"] if event.startswith("=")]

    def stats(self, answer):
        return [answer[name] for name in ("taken", "delivered", "skipped", "failed")]

    def before(self, answer, first, second):
        events = answer["events"]
        self.assertIn(first, events)
        self.assertIn(second, events)
        self.assertLess(events.index(first), events.index(second), events)


class Order(Pipeline):
    def test_results_are_delivered_in_the_order_of_the_items(self):
        self.start(items=4, workers=4)
        self.wait_for("+work 0", "+work 1", "+work 2", "+work 3")
        for i in (3, 1, 2):
            self.permit(f"work {i}")
            self.wait_for(f"-work {i}")
        self.assertNotIn("+sink 1", self.settle())
        self.permit("work 0")
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["0 v0", "1 v1", "2 v2", "3 v3"])
        self.assertEqual(answer["error"], "")
        self.assertEqual(self.stats(answer), [4, 4, 0, 0])

    def test_a_slow_item_does_not_stop_the_others_in_the_window(self):
        self.start(items=6, workers=2, window=4)
        self.wait_for("+work 0", "+work 1")
        for i in (1, 2, 3):
            self.wait_for(f"+work {i}")
            self.permit(f"work {i}")
        self.wait_for("-work 3")
        self.permit("work 0")
        for i in (4, 5):
            self.permit(f"work {i}")
        self.assertEqual(self.delivered(self.finish()), [f"{i} v{i}" for i in range(6)])

    def test_skipped_items_are_not_delivered(self):
        self.start(items=5, auto=["source", "work", "sink"], skip=[0, 3, 4])
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["1 v1", "2 v2"])
        self.assertEqual(self.stats(answer), [5, 2, 3, 0])
        self.assertEqual(answer["error"], "")


class Bounds(Pipeline):
    def test_no_more_work_calls_than_workers(self):
        self.start(items=40, workers=3, window=9, auto=["source", "work", "sink"])
        answer = self.finish()
        active = 0
        for event in answer["events"]:
            active += event.startswith("+work") - event.startswith("-work")
            self.assertLessEqual(active, 3)
        self.assertEqual(self.stats(answer), [40, 40, 0, 0])

    def test_the_window_counts_from_the_source_call_to_the_end_of_the_sink_call(self):
        self.start(items=9, workers=2, window=3, auto=["source", "work"])
        self.wait_for("+sink 0", "-work 2")
        self.assertNotIn("+source 3", self.settle())
        for i in range(9):
            self.permit(f"sink {i}")
        answer = self.finish()
        for i in range(6):
            self.before(answer, f"-sink {i}", f"+source {i + 3}")

    def test_skipped_items_keep_their_place_until_their_turn(self):
        self.start(items=5, workers=2, window=3, skip=[1, 2])
        self.wait_for("+work 0", "-source 2")
        self.assertNotIn("+source 3", self.settle())
        for i in (0, 3, 4):
            self.permit(f"work {i}")
        self.assertEqual(self.stats(self.finish()), [5, 3, 2, 0])

    def test_window_zero_is_twice_the_workers(self):
        self.start(items=9, workers=2, window=0)
        self.wait_for("+work 0", "-source 3")
        self.assertNotIn("+source 4", self.settle())
        for i in range(9):
            self.permit(f"work {i}")
        self.finish()

    def test_a_window_smaller_than_the_workers_is_respected(self):
        self.start(items=3, workers=4, window=1, auto=["source", "work", "sink"])
        answer = self.finish()
        self.before(answer, "-sink 0", "+source 1")
        self.before(answer, "-sink 1", "+source 2")

    def test_number_of_goroutines_does_not_grow_with_the_items(self):
        self.start(items=600, workers=4, window=500)
        self.wait_for("+work 3", "-source 499")
        for i in range(600):
            self.permit(f"work {i}")
        answer = self.finish()
        self.assertLessEqual(answer["more"], 4 + 3)

    def test_wrong_options_are_refused_before_anything_is_called(self):
        for options in ({"workers": 0}, {"window": -1}, {"max_failures": -1}):
            self.start(**{"canceled": True, **options})
            answer = self.finish()
            self.assertFalse(answer["is_cause"], options)
            self.assertNotEqual(answer["error"], "", options)
            self.assertEqual(answer["events"], ["returned"], options)


class Failures(Pipeline):
    def test_earlier_items_are_delivered_before_a_failure_is_returned(self):
        self.start(items=9, workers=3, window=6)
        self.wait_for("+work 0", "+work 1", "+work 2")
        self.permit("work 2", "boom")
        self.wait_for("-work 2")
        self.assertFalse([e for e in self.settle() if e.startswith("!")])
        self.permit("work 1")
        self.permit("work 0")
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["0 v0", "1 v1"])
        self.assertNotIn("+work 6", answer["events"])
        self.assertEqual(answer["error"], "item 2: boom")
        self.assertEqual(answer["item"], 2)

    def test_failures_are_counted_in_the_order_of_the_items(self):
        self.start(items=9, workers=4, window=4, max_failures=1)
        self.wait_for("+work 0", "+work 1", "+work 2", "+work 3")
        self.permit("work 3", "three")
        self.wait_for("-work 3")
        self.permit("work 2", "two")
        self.wait_for("-work 2")
        # Items after 3 can't be reached now, but 1 can.
        self.assertFalse([e for e in self.settle() if e.startswith(("!work 0", "!work 1"))])
        self.permit("work 0", "zero")
        self.wait_for("=0 !zero")
        self.permit("work 1")
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["0 !zero", "1 v1"])
        self.assertEqual(answer["error"], "item 0: zero\nitem 2: two")
        self.assertEqual(self.stats(answer)[1:], [2, 0, 1])

    def test_the_fatal_item_moves_forward_when_an_earlier_one_fails(self):
        self.start(items=9, workers=5, window=5, max_failures=1)
        self.wait_for(*(f"+work {i}" for i in range(5)))
        self.permit("work 1", "one")
        self.wait_for("-work 1")
        self.permit("work 3", "three")
        self.wait_for("!work 4 item 3: three")
        self.assertNotIn("!work 2", " ".join(self.settle()))
        self.permit("work 0", "zero")
        self.wait_for("!work 2 item 1: one")
        answer = self.finish()
        self.assertEqual(answer["error"], "item 0: zero\nitem 1: one")
        self.assertEqual(self.delivered(answer), ["0 !zero"])

    def test_tolerated_failures_are_delivered_without_a_value(self):
        self.start(items=4, auto=["source", "work", "sink"], max_failures=2, fail=[1, 3])
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["0 v0", "1 !bad 1", "2 v2", "3 !bad 3"])
        self.assertEqual((answer["error"], self.stats(answer)), ("", [4, 4, 0, 2]))

    def test_a_failure_cancels_the_waiting_source(self):
        self.start(items=9, workers=2, window=6, auto=["sink", "source 0"])
        self.wait_for("+work 0", "+source 1")
        self.permit("work 0", "boom")
        self.wait_for("!source 1 item 0: boom")
        answer = self.finish()
        self.assertEqual((answer["error"], self.stats(answer)), ("item 0: boom", [1, 0, 0, 0]))

    def test_a_source_error_waits_for_the_items_before_it(self):
        self.start(items=9, workers=2, window=6, auto=["sink", "source 0", "source 1"])
        self.wait_for("+work 0", "+work 1")
        self.permit("source 2", "broken")
        self.wait_for("-source 2")
        self.assertFalse([e for e in self.settle() if e.startswith("!")])
        # The first item is delivered while the second one is worked on.
        self.permit("work 0")
        self.wait_for("-sink 0")
        self.permit("work 1")
        answer = self.finish()
        self.assertEqual(self.delivered(answer), ["0 v0", "1 v1"])
        self.assertEqual((answer["error"], answer["item"]), ("source: broken", -1))

    def test_a_failed_item_before_a_source_error_wins(self):
        self.start(items=9, workers=2, window=6, auto=["sink", "source 0", "source 1"])
        self.wait_for("+work 0", "+work 1")
        self.permit("source 2", "broken")
        self.wait_for("-source 2")
        self.permit("work 1", "boom")
        self.permit("work 0")
        answer = self.finish()
        self.assertEqual(answer["error"], "item 1: boom")
        self.assertEqual(self.delivered(answer), ["0 v0"])

    def test_a_sink_error_cancels_everything(self):
        self.start(items=9, workers=3, window=6, auto=["source"])
        self.wait_for("+work 0", "+work 1", "+work 2")
        self.permit("work 0")
        self.wait_for("+sink 0", "+work 3")
        # Item 0 comes before it, so that its sink error counts.
        self.permit("work 3", "boom")
        self.wait_for("-work 3")
        self.permit("sink 0", "full")
        self.wait_for(*(f"!work {i} sink: item 0: full" for i in (1, 2)))
        answer = self.finish()
        self.assertEqual((answer["error"], answer["item"]), ("sink: item 0: full", -1))
        self.assertEqual(answer["delivered"], 0)
        self.assertNotIn("+work 5", answer["events"])

    def test_panics_become_errors(self):
        for call, text in (("work 0", "item 0: panic: ouch"), ("source 0", "source: panic: ouch"), ("sink 0", "sink: item 0: panic: ouch")):
            self.start(items=1, auto=[])
            for name in ("source 0", "work 0", "sink 0"):
                self.permit(name, "panic ouch" if name == call else "ok")
            self.permit("source 1")
            answer = self.finish()
            self.assertEqual((answer["error"], answer["panic"], answer["stack"]), (text, "ouch", True))

    def test_run_waits_for_calls_that_ignore_their_context(self):
        self.start(items=9, workers=2, deaf=["work"])
        self.wait_for("+work 0", "+work 1")
        self.permit("work 0", "boom")
        self.wait_for("!work 1 item 0: boom")
        self.assertNotIn("returned", self.settle())
        self.permit("work 1")
        answer = self.finish()
        self.before(answer, "-work 1", "returned")
        self.assertEqual((answer["error"], self.delivered(answer)), ("item 0: boom", []))


class Cancellation(Pipeline):
    def test_the_cause_is_returned_and_active_calls_are_canceled(self):
        self.start(items=9, workers=3, auto=["source 0", "source 1", "source 2", "sink"])
        self.wait_for("+work 0", "+work 1", "+work 2", "+source 3")
        self.permit("work 0")
        self.wait_for("-sink 0")
        # The cancellation wins over the failure, since item 1 still runs.
        self.permit("work 2", "boom")
        self.wait_for("-work 2")
        self.pipe.call("cancel")
        self.wait_for("!work 1 canceled by the caller")
        answer = self.finish()
        self.assertTrue(answer["is_cause"], answer["error"])
        self.assertEqual(self.stats(answer), [3, 1, 0, 0])

    def test_no_sink_call_begins_after_the_cancellation(self):
        self.start(items=9, workers=3, auto=["source", "work"], deaf=["sink"])
        self.wait_for("+sink 0", "-work 1", "-work 2")
        self.pipe.call("cancel")
        self.wait_for("!sink 0 canceled by the caller")
        self.permit("sink 0")
        answer = self.finish()
        self.assertTrue(answer["is_cause"], answer["error"])
        self.assertEqual(self.delivered(answer), ["0 v0"])
        self.assertEqual(answer["delivered"], 1)

    def test_cancellation_during_the_last_sink_call_counts(self):
        self.start(items=1, auto=["source", "work"], deaf=["sink"])
        self.wait_for("+sink 0", "-source 1")
        self.pipe.call("cancel")
        self.permit("sink 0")
        answer = self.finish()
        self.assertTrue(answer["is_cause"], answer["error"])
        self.assertEqual(self.stats(answer), [1, 1, 0, 0])

    def test_nothing_is_called_if_the_context_was_done_before(self):
        self.start(canceled=True)
        answer = self.finish()
        self.assertTrue(answer["is_cause"], answer["error"])
        self.assertEqual(answer["events"], ["returned"])

    def test_the_context_of_an_item_ends_with_its_work_call(self):
        self.start(items=9, workers=2, auto=["source"])
        self.wait_for("+work 0", "+work 1")
        self.permit("work 1")
        self.assertTrue(self.pipe.call("context", index=1))
        self.pipe.call("cancel")
        self.finish()


class Map(Pipeline):
    def call(self, **arguments):
        answer = self.driver("driver").call("map", **arguments)
        self.assertEqual(answer["left"], 0, "goroutines are left")
        return answer

    def test_values_are_in_order(self):
        self.assertEqual(self.call(items=50, workers=3)["values"], [f"v{i}" for i in range(50)])
        self.assertEqual(self.call(items=3, workers=2, skip=[1])["values"], ["v0", "", "v2"])

    def test_the_first_failed_item_decides_and_its_error_is_unchanged(self):
        answer = self.call(items=20, workers=3, fail=[4, 5])
        self.assertEqual((answer["values"], answer["failed"]), (None, 4))
        answer = self.call(items=3, workers=2, canceled=True)
        self.assertEqual((answer["values"], answer["is_cause"]), (None, True))


class Digest(lab.Case):
    def setUp(self):
        self.lines = {}
        for name in ("a", "b", "c", "d"):
            self.write(f"files/{name}", name * 1000)
            self.lines[name] = f"{hashlib.sha256(name.encode() * 1000).hexdigest()}  files/{name}"

    def test_output_without_failures_is_unchanged(self):
        self.write("list", "# all\nfiles/b\r\n\nfiles\nfiles/a\nfiles/b")
        done = self.program("digest", "-j", "2", "list")
        self.assertEqual(done.stdout, "".join(self.lines[n] + "\n" for n in "bab") + "# files 3, skipped 1, failed 0\n", done)
        self.assertEqual(done.status, 0, done)

    def test_lines_appear_while_the_input_is_open(self):
        process = self.process("digest")
        for name in "abcdab":
            process.send(f"files/{name}")
            self.assertEqual(process.line(), self.lines[name])
        done = process.wait()
        self.assertEqual((done.status, done.stdout), (0, "# files 6, skipped 0, failed 0\n"), done)

    def test_a_failure_ends_the_program_although_the_input_is_open(self):
        process = self.process("digest")
        process.send("files/a")
        process.send("files/none")
        self.assertEqual(process.line(), self.lines["a"])
        self.assertEqual(process.line(), "# files 1, skipped 0, failed 0")
        self.assertEqual(process.wait().status, 1)

    def test_an_interrupt_ends_the_program(self):
        process = self.process("digest", "-")
        process.send("files/a")
        self.assertEqual(process.line(), self.lines["a"])
        process.kill(signal.SIGINT)
        self.assertEqual(process.line(), "# files 1, skipped 0, failed 0")
        self.assertEqual(process.wait().status, 130)

    def test_tolerated_failures_are_listed_in_place(self):
        done = self.program("digest", "-max-failures", "2", stdin="files/none\nfiles/c\nfiles/no  ne\nfiles/d\n")
        self.assertEqual(done.stdout, f"failed  files/none\n{self.lines['c']}\nfailed  files/no  ne\n{self.lines['d']}\n# files 2, skipped 0, failed 2\n", done)
        self.assertEqual(done.status, 1, done)

    def test_a_manifest_error_keeps_what_was_written(self):
        done = self.program("digest", stdin="files/c\n" + "x" * 5000 + "\nfiles/a\n")
        self.assertEqual((done.status, done.stdout), (1, f"{self.lines['c']}\n# files 1, skipped 0, failed 0\n"), done)

    def test_wrong_usage(self):
        for arguments in (["-j", "0"], ["-window", "-1"], ["-max-failures", "-1"], ["a", "b"]):
            done = self.program("digest", *arguments)
            self.assertEqual((done.status, done.stdout), (2, ""), done)
