import json

import lab


class RunnerCase(lab.Case):
    def bench(self, slots=2):
        self.d = self.driver("python3", "-m", "runner", "--slots", str(slots))

    def do(self, op, /, **arguments):
        """Carries out a command and returns its events in short."""
        return [short(event) for event in self.d.call(op, **arguments)["events"]]

    def value(self, op, /, **arguments):
        return self.d.call(op, **arguments)["value"]

    def submit(self, *ids, **fields):
        for name in ids:
            self.d.call("submit", id=name, **fields)

    def status(self):
        return self.value("status")

    def states(self, *ids):
        jobs = self.status()["jobs"]
        return [jobs[name] for name in ids]

    def refused(self, kind, op, /, **arguments):
        with self.assertRaises(lab.Raised) as caught:
            self.d.call(op, **arguments)
        self.assertEqual(caught.exception.kind, kind)

    def end(self):
        """Ends the bench and returns its last line and status."""
        done = self.d.wait()
        return json.loads(done.stdout), done.status


def short(event):
    """Returns an event as a tuple of its values, in a fixed order."""
    names = ("event", "at", "id", "attempt", "what", "why", "state", "error", "due")
    return tuple(event[name] for name in names if name in event)


def started(events):
    return [event[2] for event in events if event[0] == "started"]


def without_work(events):
    return [event for event in events if event[0] != "work"]


class Kept(RunnerCase):
    def test_jobs_run_in_slots_and_succeed(self):
        self.bench(1)
        self.assertEqual(self.do("submit", id="a"), [("started", 0, "a", 1), ("work", 0, "a", 1, "began")])
        self.assertEqual(self.do("submit", id="b"), [])
        self.assertEqual(without_work(self.do("finish", id="a")), [("ended", 0, "a", "succeeded"), ("started", 0, "b", 1)])

    def test_failure_has_its_text(self):
        self.bench()
        self.submit("a", "b")
        self.assertEqual(self.do("fail", id="a", error="boom"), [("ended", 0, "a", "failed", "boom")])
        self.assertEqual(self.do("fail", id="b", error=""), [("ended", 0, "b", "failed", "RuntimeError")])

    def test_unknown_need_and_duplicates_are_refused(self):
        self.bench()
        self.submit("a")
        self.refused("ValueError", "submit", id="a")
        self.refused("ValueError", "submit", id="b", needs=["c"])
        self.assertEqual(self.status()["jobs"], {"a": "running"})


class Fields(RunnerCase):
    def test_bad_fields_are_refused(self):
        self.bench()
        bad = {
            "retries": -1, "backoff": -1, "backoff_max": -1, "timeout": 0, "priority": "1", "lock": "", "after": "a", "colour": 1,
        }
        for name, value in [*bad.items(), ("timeout", True), ("retries", 1.5), ("after", ["x"]), ("lock", 7), ("id", ""), ("weight", 0), ("weight", 3), ("weight", True), ("reads", "db"), ("reads", [""]), ("reads", [1]), ("deadline", 0), ("deadline", -1), ("deadline", "9")]:
            with self.subTest(name):
                self.refused("ValueError", "submit", **{"id": "x", name: value})
        self.refused("ValueError", "submit", id="x", lock="db", reads=["disk", "db"])
        self.assertEqual(self.status(), {"now": 0, "jobs": {}, "timers": 0})

    def test_deadline_must_be_later_than_now(self):
        self.bench()
        self.do("advance", by=5)
        self.refused("ValueError", "submit", id="a", deadline=5)
        self.submit("a", deadline=6)
        self.assertEqual(self.status(), {"now": 5, "jobs": {"a": "running"}, "timers": 1})

    def test_null_is_like_a_missing_field(self):
        self.bench()
        names = ("after", "priority", "lock", "retries", "backoff", "backoff_max", "timeout", "weight", "reads", "deadline")
        self.submit("a", **dict.fromkeys(names))
        self.assertEqual(self.do("fail", id="a", error="x"), [("ended", 0, "a", "failed", "x")])


class Dependencies(RunnerCase):
    def test_skips_without_waiting_for_other_needs(self):
        self.bench()
        self.submit("a", "b")
        self.submit("c", needs=["a", "b"])
        self.assertEqual(self.do("fail", id="b", error="x")[1:], [("ended", 0, "c", "skipped", "needs b: failed")])

    def test_skips_follow_each_other(self):
        self.bench()
        self.submit("a")
        self.submit("b", needs=["a"])
        self.submit("c", needs=["b"])
        self.do("cancel", id="a")
        self.assertEqual(self.states("a", "b", "c"), ["cancelled", "skipped", "skipped"])
        self.assertEqual(self.do("submit", id="d", needs=["c", "a"]), [("ended", 0, "d", "skipped", "needs c: skipped")])

    def test_after_waits_for_any_end(self):
        self.bench(3)
        self.submit("a", "b")
        self.submit("c", needs=["b"])
        self.submit("d", after=["a", "c"])
        self.assertEqual(self.do("fail", id="a", error="x"), [("ended", 0, "a", "failed", "x")])
        self.assertEqual(started(self.do("cancel", id="b")), ["d"])

    def test_bad_need_skips_while_after_is_open(self):
        self.bench()
        self.submit("a", "b")
        self.submit("c", needs=["a"], after=["b"])
        self.do("fail", id="a", error="x")
        self.assertEqual(self.states("b", "c"), ["running", "skipped"])

    def test_need_that_is_retried_is_no_failure(self):
        self.bench()
        self.submit("a", retries=1, backoff=5)
        self.submit("b", needs=["a"])
        self.do("fail", id="a", error="x")
        self.assertEqual(self.states("b"), ["blocked"])
        self.do("advance", by=5)
        self.assertEqual(started(self.do("finish", id="a")), ["b"])


    def test_skips_go_down_before_they_go_on(self):
        self.bench(1)
        self.submit("a")
        self.submit("b", "c", needs=["a"])
        self.submit("d", needs=["c", "b"])
        self.submit("e", needs=["b"])
        expected = [("b", "a: failed"), ("d", "b: skipped"), ("e", "b: skipped"), ("c", "a: failed")]
        self.assertEqual(self.do("fail", id="a", error="x")[1:], [("ended", 0, name, "skipped", f"needs {why}") for name, why in expected])

    def test_long_chains(self):
        self.bench(1)
        chain = [{"op": "submit", "id": str(number), "needs": [str(number - 1)] if number else []} for number in range(2500)]
        self.do("batch", commands=chain)
        self.submit("x")
        self.assertEqual(started(self.do("submit", id="y", needs=["2499"], priority=1)), [])
        self.assertEqual(started(self.do("finish", id="0")), ["1"])
        events = without_work(self.do("fail", id="1", error="e"))
        self.assertEqual(events[1], ("ended", 0, "2", "skipped", "needs 1: failed"))
        self.assertEqual(events[-2:], [("ended", 0, "y", "skipped", "needs 2499: skipped"), ("started", 0, "x", 1)])
        self.assertEqual(len(events), 2501)


class Slots(RunnerCase):
    def test_priority_then_order_of_submission(self):
        self.bench(1)
        self.submit("a")
        for name, priority in (("b", 0), ("c", 5), ("d", -1), ("e", 5)):
            self.submit(name, priority=priority)
        order = []
        for name in "acebd":
            order += started(self.do("finish", id=name))
        self.assertEqual(order, ["c", "e", "b", "d"])

    def test_job_with_taken_lock_holds_up_no_other(self):
        self.bench(2)
        self.submit("a", lock="db")
        self.assertEqual(started(self.do("submit", id="b", lock="db", priority=9)), [])
        self.assertEqual(started(self.do("submit", id="c", lock="disk")), ["c"])
        self.assertEqual(started(self.do("finish", id="c")), [])
        self.assertEqual(started(self.do("finish", id="a")), ["b"])

    def test_stopping_attempt_keeps_slot_and_lock(self):
        self.bench(2)
        self.submit("a", lock="db", work="cleanup")
        self.submit("b")
        self.submit("c", lock="db")
        self.submit("d")
        self.assertEqual(started(self.do("cancel", id="a")), [])
        self.assertEqual(started(self.do("finish", id="b")), ["d"])
        self.assertEqual(started(self.do("finish", id="d")), [])
        self.assertEqual(self.states("a", "c"), ["stopping", "ready"])
        self.assertEqual(started(self.do("cleaned", id="a")), ["c"])

    def test_backoff_frees_slot_and_lock(self):
        self.bench(1)
        self.submit("a", lock="db", retries=1, backoff=5)
        self.submit("b", lock="db")
        self.assertEqual(started(self.do("fail", id="a", error="x")), ["b"])
        self.assertEqual(started(self.do("advance", by=5)), [])
        self.assertEqual(self.states("a"), ["ready"])
        self.assertEqual(without_work(self.do("finish", id="b"))[1:], [("started", 5, "a", 2)])

    def test_retried_job_keeps_its_place_in_the_order(self):
        self.bench(1)
        self.submit("a", retries=1)
        self.submit("b")
        self.assertEqual(started(self.do("fail", id="a", error="x")), ["a"])


class Weights(RunnerCase):
    def test_weights_add_up_to_the_slots(self):
        self.bench(5)
        self.submit("a", weight=3)
        self.assertEqual(started(self.do("submit", id="b", weight=2)), ["b"])
        self.submit("c", weight=4)
        self.assertEqual(started(self.do("finish", id="b")), [])
        self.assertEqual(started(self.do("finish", id="a")), ["c"])

    def test_job_that_does_not_fit_holds_up_those_behind_it(self):
        self.bench(3)
        self.submit("a", weight=2, work="cleanup")
        self.submit("b", weight=2)
        self.assertEqual(started(self.do("submit", id="c")), [])
        self.assertEqual(started(self.do("submit", id="d", priority=1)), ["d"])
        self.assertEqual(started(self.do("cancel", id="b")), [])
        self.assertEqual(started(self.do("cancel", id="a")), [])
        self.assertEqual(started(self.do("finish", id="d")), ["c"])

    def test_heavy_job_with_taken_lock_holds_up_no_other(self):
        self.bench(4)
        self.submit("a", lock="db")
        self.submit("b", weight=4, lock="db")
        self.assertEqual(started(self.do("submit", id="c", weight=3)), ["c"])

    def test_cancel_of_a_heavy_job_makes_room(self):
        self.bench(3)
        self.submit("a", weight=2)
        self.submit("b", weight=2, deadline=9)
        self.submit("c")
        self.assertEqual(without_work(self.do("advance", by=9)), [("ended", 9, "b", "failed", "deadline"), ("started", 9, "c", 1)])


class SharedLocks(RunnerCase):
    def test_readers_share(self):
        self.bench(5)
        self.submit("a", "b", reads=["db", "disk"])
        self.assertEqual(self.states("a", "b"), ["running", "running"])
        self.assertEqual(started(self.do("submit", id="c", lock="db")), [])
        self.assertEqual(started(self.do("finish", id="a")), [])
        self.assertEqual(started(self.do("finish", id="b")), ["c"])
        self.assertEqual(started(self.do("submit", id="d", reads=["net", "db"])), [])
        self.assertEqual(started(self.do("submit", id="e", reads=["net"])), ["e"])
        self.assertEqual(started(self.do("finish", id="c")), ["d"])

    def test_readers_do_not_overtake_a_writer(self):
        self.bench(5)
        self.submit("a", reads=["db"])
        self.submit("w", lock="db")
        self.assertEqual(started(self.do("submit", id="b", reads=["db"])), [])
        self.assertEqual(started(self.do("submit", id="c", reads=["db"], priority=1)), ["c"])
        self.do("finish", id="a")
        self.assertEqual(started(self.do("finish", id="c")), ["w"])
        self.assertEqual(started(self.do("finish", id="w")), ["b"])

    def test_writer_that_goes_away_lets_readers_start(self):
        self.bench(5)
        self.submit("a", reads=["db"])
        self.submit("w", lock="db")
        self.submit("b", reads=["db"])
        self.assertEqual(started(self.do("cancel", id="w")), ["b"])

    def test_lock_of_a_kept_job_is_kept_though_it_is_free(self):
        self.bench(5)
        self.submit("a", lock="disk")
        self.submit("w", lock="db", reads=["disk"])
        self.submit("x", lock="net", reads=["db"])
        self.assertEqual(started(self.do("submit", id="y", lock="db")), [])
        self.assertEqual(started(self.do("submit", id="z", reads=["net"])), [])
        self.assertEqual(started(self.do("submit", id="r", reads=["other"])), ["r"])
        self.assertEqual(started(self.do("finish", id="a")), ["w"])
        self.assertEqual(started(self.do("finish", id="w")), ["x"])
        self.assertEqual(started(self.do("finish", id="x")), ["y", "z"])

    def test_reads_of_a_kept_job_are_not_kept(self):
        self.bench(5)
        self.submit("a", lock="disk")
        self.submit("w", lock="db", reads=["disk", "net"])
        self.assertEqual(started(self.do("submit", id="b", lock="net")), ["b"])

    def test_read_lock_stays_until_the_cleanup_has_ended(self):
        self.bench(5)
        self.submit("a", reads=["db"], work="cleanup")
        self.submit("w", lock="db")
        self.assertEqual(started(self.do("cancel", id="a")), [])
        self.assertEqual(started(self.do("cleaned", id="a")), ["w"])


class Ranks(RunnerCase):
    def test_job_has_the_rank_of_those_that_need_it(self):
        self.bench(1)
        self.submit("x")
        self.submit("a", "b", "c")
        self.submit("d", needs=["c"])
        self.submit("e", needs=["d"], priority=3)
        self.submit("f", after=["b"], priority=9)
        self.submit("g", priority=2)
        order = []
        for name in "xcdega":
            order += started(self.do("finish", id=name))
        self.assertEqual("".join(order), "cdegab")

    def test_jobs_that_have_ended_lift_nothing(self):
        self.bench(1)
        self.submit("x")
        self.submit("a", "b")
        self.submit("c", needs=["b"], priority=3)
        self.do("cancel", id="c")
        self.assertEqual(started(self.do("finish", id="x")), ["a"])

    def test_rank_counts_for_locks_and_weights(self):
        self.bench(2)
        self.submit("x", reads=["db"])
        self.submit("w", lock="db")
        self.submit("h", weight=2)
        self.submit("r", reads=["db"])
        self.assertEqual(started(self.do("submit", id="s", needs=["r"], priority=1)), ["r"])

    def test_rank_needs_no_higher_priority_of_its_own(self):
        self.bench(1)
        self.submit("x")
        self.submit("a", priority=-2)
        self.submit("b", priority=-5)
        self.submit("c", needs=["b"], priority=-1)
        self.assertEqual(started(self.do("finish", id="x")), ["b"])


class Deadlines(RunnerCase):
    def test_waiting_jobs_fail_at_their_deadline(self):
        self.bench(1)
        self.submit("a", deadline=9, retries=1, backoff=7)
        self.do("advance", by=1)
        self.do("fail", id="a", error="x")
        self.submit("x")
        self.submit("b", deadline=7)
        self.submit("c", needs=["x"], deadline=6)
        self.submit("d", needs=["c"])
        expected = [("ended", 6, "c", "failed", "deadline"), ("ended", 6, "d", "skipped", "needs c: failed"), ("ended", 7, "b", "failed", "deadline")]
        self.assertEqual(self.do("advance", by=6), expected)
        self.assertEqual(self.do("advance", by=3), [("ended", 9, "a", "failed", "deadline")])
        self.assertEqual(self.status()["timers"], 0)

    def test_running_attempt_is_cancelled(self):
        self.bench()
        self.submit("a", deadline=9, retries=5)
        self.submit("b", deadline=9, retries=5, work="stubborn")
        self.do("advance", by=8)
        expected = [("stopping", 9, "a", 1, "deadline"), ("stopping", 9, "b", 1, "deadline"), ("ended", 9, "a", "failed", "deadline")]
        self.assertEqual(without_work(self.do("advance", by=1)), expected)
        self.assertEqual(self.status()["timers"], 0)
        self.assertEqual(self.do("finish", id="b"), [("ended", 9, "b", "failed", "deadline")])

    def test_deadline_during_the_cleanup_of_a_timeout(self):
        self.bench(3)
        self.submit("a", "b", deadline=9, timeout=5, retries=5, work="cleanup")
        self.do("advance", by=6)
        self.assertEqual(self.status()["timers"], 2)
        self.assertEqual(self.do("cleaned", id="a")[1:2], [("retry", 6, "a", 1, "timeout", 6)])
        self.assertEqual(without_work(self.do("advance", by=3)), [("stopping", 9, "a", 2, "deadline")])
        self.assertEqual(self.status()["timers"], 0)
        self.assertEqual(self.do("cleaned", id="b")[1:], [("ended", 9, "b", "failed", "deadline")])
        self.assertEqual(self.do("cleaned", id="a")[1:], [("ended", 9, "a", "failed", "deadline")])

    def test_deadline_during_the_cleanup_of_a_cancel(self):
        self.bench()
        self.submit("a", deadline=9, work="cleanup")
        self.do("cancel", id="a")
        self.assertEqual(self.status()["timers"], 0)
        self.assertEqual(self.do("advance", by=20), [])
        self.assertEqual(self.do("cleaned", id="a")[1:], [("ended", 20, "a", "cancelled", "cancel")])

    def test_cancel_during_the_cleanup_of_a_deadline(self):
        self.bench()
        self.submit("a", "b", deadline=9, timeout=5, work="cleanup")
        self.do("advance", by=7)
        self.do("cancel", id="a")
        self.assertEqual(self.status()["timers"], 1)
        self.do("advance", by=7)
        self.assertEqual(self.do("cancel", id="b"), [])
        self.assertEqual([self.do("cleaned", id=name)[1] for name in "ab"], [("ended", 14, name, "cancelled", "cancel") for name in "ab"])

    def test_timeout_and_deadline_at_the_same_time(self):
        self.bench()
        self.submit("a", deadline=9, timeout=9, retries=5)
        expected = [("stopping", 9, "a", 1, "deadline"), ("ended", 9, "a", "failed", "deadline")]
        self.assertEqual(without_work(self.do("advance", by=30)), expected)
        self.submit("x", "y")
        self.submit("b", timeout=5, deadline=60)
        self.do("advance", by=25)
        self.do("finish", id="x")
        self.assertEqual(without_work(self.do("advance", by=5)), [("stopping", 60, "b", 1, "deadline"), ("ended", 60, "b", "failed", "deadline")])

    def test_attempt_that_would_be_due_too_late(self):
        self.bench()
        self.submit("a", "b", deadline=9, retries=5, backoff=6)
        self.do("advance", by=2)
        self.assertEqual(self.do("fail", id="a", error="x"), [("retry", 2, "a", 1, "x", 8)])
        self.do("advance", by=1)
        self.assertEqual(self.do("fail", id="b", error="x"), [("ended", 3, "b", "failed", "x")])
        self.assertEqual(without_work(self.do("advance", by=5)), [("started", 8, "a", 2)])
        self.assertEqual(self.do("fail", id="a", error="y"), [("ended", 8, "a", "failed", "y")])
        self.assertEqual(self.status()["timers"], 0)

    def test_deadline_counts_during_a_shutdown(self):
        self.bench()
        self.submit("a", deadline=5)
        self.submit("b", deadline=50, work="cleanup")
        self.do("shutdown", grace=10)
        expected = [("stopping", 5, "a", 1, "deadline"), ("ended", 5, "a", "failed", "deadline"), ("stopping", 10, "b", 1, "shutdown")]
        self.assertEqual(without_work(self.do("advance", by=10)), expected)
        self.assertEqual(self.status()["timers"], 0)
        self.do("advance", by=80)
        self.assertEqual(self.do("cleaned", id="b")[1:], [("ended", 90, "b", "cancelled", "shutdown"), ("stopped", 90)])

    def test_deadline_of_a_job_that_ended_earlier(self):
        self.bench()
        self.submit("a", "b", deadline=5)
        self.submit("c", needs=["a"], deadline=5)
        self.do("finish", id="b")
        self.do("fail", id="a", error="x")
        self.assertEqual((self.status()["timers"], self.do("advance", by=9)), (0, []))


class Retries(RunnerCase):
    def test_backoff_doubles_up_to_its_limit(self):
        self.bench()
        self.submit("a", retries=4, backoff=3, backoff_max=10)
        times = []
        for _ in range(4):
            (retry,) = without_work(self.do("fail", id="a", error="x"))
            times.append(retry[-1] - retry[1])
            self.assertEqual(started(self.do("advance", by=times[-1])), ["a"])
        self.assertEqual(times, [3, 6, 10, 10])
        self.assertEqual(self.do("fail", id="a", error="last"), [("ended", 29, "a", "failed", "last")])

    def test_retry_event_and_next_attempt(self):
        self.bench()
        self.submit("a", retries=1, backoff=4)
        self.assertEqual(self.do("fail", id="a", error="x"), [("retry", 0, "a", 1, "x", 4)])
        self.assertEqual(self.states("a"), ["backoff"])
        self.assertEqual(self.do("advance", by=9), [("started", 4, "a", 2), ("work", 4, "a", 2, "began")])
        self.assertEqual(self.do("finish", id="a"), [("ended", 9, "a", "succeeded")])

    def test_delay_zero_starts_again_at_once(self):
        self.bench()
        self.submit("a", retries=1)
        self.assertEqual(without_work(self.do("fail", id="a", error="x")), [("retry", 0, "a", 1, "x", 0), ("started", 0, "a", 2)])

    def test_permanent_failure_is_not_retried(self):
        self.bench()
        self.submit("a", retries=3)
        self.assertEqual(self.do("fail", id="a", error="x", permanent=True), [("ended", 0, "a", "failed", "x")])

    def test_work_that_cancels_itself_has_failed(self):
        self.bench()
        self.submit("a", retries=1, backoff=2)
        self.submit("b", needs=["a"])
        self.assertEqual(self.do("quit", id="a"), [("retry", 0, "a", 1, "cancelled itself", 2)])
        self.do("advance", by=2)
        self.assertEqual(self.do("quit", id="a")[0], ("ended", 2, "a", "failed", "cancelled itself"))
        self.assertEqual(self.states("b"), ["skipped"])


class Timeouts(RunnerCase):
    def test_timeout_counts_from_the_start_of_each_attempt(self):
        self.bench()
        self.submit("a", timeout=10, retries=1, backoff=5)
        self.assertEqual(self.do("advance", by=9), [])
        self.assertEqual(
            without_work(self.do("advance", by=100)),
            [
                ("stopping", 10, "a", 1, "timeout"), ("retry", 10, "a", 1, "timeout", 15), ("started", 15, "a", 2),
                ("stopping", 25, "a", 2, "timeout"), ("ended", 25, "a", "failed", "timeout"),
            ],
        )

    def test_backoff_counts_from_the_end_of_the_cleanup(self):
        self.bench()
        self.submit("a", timeout=10, retries=1, backoff=5, work="cleanup")
        self.do("advance", by=17)
        self.assertEqual(self.do("cleaned", id="a")[1:], [("retry", 17, "a", 1, "timeout", 22)])

    def test_work_that_returns_after_its_timeout_has_failed(self):
        self.bench()
        self.submit("a", timeout=10, work="stubborn")
        self.do("advance", by=12)
        self.assertEqual(self.do("finish", id="a"), [("ended", 12, "a", "failed", "timeout")])

    def test_work_that_raises_after_its_timeout_timed_out(self):
        self.bench()
        self.submit("a", "b", timeout=10, work="stubborn", retries=1, backoff=1)
        self.do("advance", by=10)
        self.assertEqual(self.do("fail", id="a", error="x", permanent=True), [("retry", 10, "a", 1, "timeout", 11)])
        self.assertEqual(self.do("fail", id="b", error="x"), [("retry", 10, "b", 1, "timeout", 11)])

    def test_waiting_takes_no_time_from_the_timeout(self):
        self.bench(1)
        self.submit("a")
        self.submit("b", timeout=10)
        self.do("advance", by=50)
        self.do("finish", id="a")
        self.assertEqual(self.do("advance", by=9), [])
        self.assertEqual(self.states("b"), ["running"])


class Cancel(RunnerCase):
    def test_waiting_jobs_end_at_once(self):
        self.bench(1)
        self.submit("a", retries=1, backoff=5)
        self.do("fail", id="a", error="x")
        self.submit("b", "c")
        self.submit("d", needs=["b"])
        for name in "acd":
            self.assertEqual(self.do("cancel", id=name), [("ended", 0, name, "cancelled", "cancel")])
        self.assertEqual(started(self.do("advance", by=20)), [])

    def test_running_job_is_cancelled(self):
        self.bench()
        self.submit("a", retries=5)
        self.assertEqual(self.do("cancel", id="a"), [("stopping", 0, "a", 1, "cancel"), ("ended", 0, "a", "cancelled", "cancel")])

    def test_returns_whether_the_job_had_not_ended(self):
        self.bench()
        self.submit("a", "b", work="cleanup")
        self.do("finish", id="b")
        self.assertEqual([self.value("cancel", id=name) for name in ("a", "a", "b")], [True, True, False])
        self.do("cleaned", id="a")
        self.assertIs(self.value("cancel", id="a"), False)
        self.refused("ValueError", "cancel", id="x")

    def test_cleanup_is_not_interrupted_by_a_second_cancel(self):
        self.bench()
        self.submit("a", work="cleanup", timeout=10)
        self.do("cancel", id="a")
        self.assertEqual(self.do("cancel", id="a"), [])
        self.assertEqual(self.do("advance", by=20), [])
        self.assertEqual(self.do("cleaned", id="a"), [("work", 20, "a", 1, "cleaned"), ("ended", 20, "a", "cancelled", "cancel")])

    def test_cancel_during_the_cleanup_of_a_timeout(self):
        self.bench()
        self.submit("a", work="cleanup", timeout=10, retries=3)
        self.do("advance", by=10)
        self.assertEqual(self.do("cancel", id="a"), [])
        self.assertEqual(self.do("cleaned", id="a")[1:], [("ended", 10, "a", "cancelled", "cancel")])

    def test_failing_cleanup_does_not_change_the_end(self):
        self.bench()
        self.submit("a", work="cleanup", retries=3)
        self.do("cancel", id="a")
        self.assertEqual(self.do("cleaned", id="a", error="x"), [("ended", 0, "a", "cancelled", "cancel")])

    def test_work_that_returns_in_spite_of_it_is_cancelled(self):
        self.bench()
        self.submit("a", work="stubborn")
        self.submit("b", needs=["a"])
        self.do("cancel", id="a")
        self.assertEqual(self.states("a"), ["stopping"])
        events = self.do("finish", id="a")
        self.assertEqual(events, [("ended", 0, "a", "cancelled", "cancel"), ("ended", 0, "b", "skipped", "needs a: cancelled")])

    def test_cancel_together_with_the_end_of_the_work(self):
        for first, second in (("finish", "cancel"), ("cancel", "finish")):
            with self.subTest(first):
                self.bench(1)
                self.submit("a", "b")
                events = self.do("batch", commands=[{"op": first, "id": "a"}, {"op": second, "id": "a"}])
                self.assertEqual([event for event in events if event[0] == "ended"], [("ended", 0, "a", "cancelled", "cancel")])
                self.assertEqual(started(events), ["b"])

    def test_cancel_before_the_first_step(self):
        self.bench(1)
        events = self.do("batch", commands=[{"op": "submit", "id": "a", "timeout": 5, "retries": 2}, {"op": "cancel", "id": "a"}, {"op": "submit", "id": "b"}])
        self.assertEqual([event for event in events if event[0] == "ended"], [("ended", 0, "a", "cancelled", "cancel")])
        self.assertIn("b", started(events))
        self.assertEqual((self.states("a", "b"), self.status()["timers"]), (["cancelled", "running"], 0))


class Shutdown(RunnerCase):
    def test_waiting_jobs_are_cancelled_in_order(self):
        self.bench(2)
        self.submit("a", "r")
        self.submit("b", retries=1, backoff=5)
        self.do("finish", id="r")
        self.do("fail", id="b", error="x")
        self.submit("s")
        self.submit("d", needs=["a"])
        self.submit("c", priority=5)
        expected = [("ended", 0, name, "cancelled", "shutdown") for name in "bdc"]
        self.assertEqual(self.do("shutdown", grace=10), expected)

    def test_running_jobs_may_finish(self):
        self.bench()
        self.submit("a", "b")
        self.submit("c")
        self.do("shutdown", grace=10)
        self.do("advance", by=9)
        self.assertEqual(self.do("finish", id="a"), [("ended", 9, "a", "succeeded")])
        self.assertEqual(self.do("finish", id="b"), [("ended", 9, "b", "succeeded"), ("stopped", 9)])
        self.assertEqual(self.do("advance", by=9), [])
        self.assertEqual(self.end(), ({"tasks": 0, "timers": 0, "events": []}, 0))

    def test_grace_ends_with_cancels(self):
        self.bench()
        self.submit("a")
        self.submit("b", work="cleanup")
        self.do("shutdown", grace=10)
        events = without_work(self.do("advance", by=15))
        self.assertEqual([e for e in events if e[2] == "a"], [("stopping", 10, "a", 1, "shutdown"), ("ended", 10, "a", "cancelled", "shutdown")])
        self.assertEqual([e for e in events if e[2] == "b"], [("stopping", 10, "b", 1, "shutdown")])
        self.assertEqual(self.do("cancel", id="b"), [])
        self.assertEqual(self.do("cleaned", id="b")[1:], [("ended", 15, "b", "cancelled", "shutdown"), ("stopped", 15)])

    def test_failures_are_final(self):
        self.bench()
        self.submit("a", retries=3, backoff=1)
        self.submit("b", retries=3, timeout=5)
        self.do("shutdown", grace=10)
        self.assertEqual(self.do("fail", id="a", error="x"), [("ended", 0, "a", "failed", "x")])
        self.assertEqual(
            without_work(self.do("advance", by=50)),
            [("stopping", 5, "b", 1, "timeout"), ("ended", 5, "b", "failed", "timeout"), ("stopped", 5)],
        )

    def test_attempt_in_timeout_cleanup_is_left_alone(self):
        self.bench()
        self.submit("a", retries=3, timeout=5, work="cleanup")
        self.do("advance", by=5)
        self.do("shutdown", grace=10)
        self.assertEqual(self.do("advance", by=20), [])
        self.assertEqual(self.do("cleaned", id="a")[1:], [("ended", 25, "a", "failed", "timeout"), ("stopped", 25)])

    def test_cancel_during_the_grace(self):
        self.bench()
        self.submit("a", work="cleanup")
        self.do("shutdown", grace=10)
        self.do("cancel", id="a")
        self.assertEqual(self.do("advance", by=20), [])
        self.assertEqual(self.do("cleaned", id="a")[1:], [("ended", 20, "a", "cancelled", "cancel"), ("stopped", 20)])

    def test_second_shutdown_can_only_shorten(self):
        self.bench()
        self.submit("a")
        self.do("shutdown", grace=10)
        self.do("shutdown", grace=50)
        self.do("advance", by=2)
        self.do("shutdown", grace=3)
        self.assertEqual(self.do("advance", by=2), [])
        self.assertEqual(self.do("advance", by=1)[0], ("stopping", 5, "a", 1, "shutdown"))

    def test_longer_second_shutdown_is_ignored(self):
        self.bench()
        self.submit("a")
        self.do("shutdown", grace=10)
        self.do("advance", by=5)
        self.do("shutdown", grace=10)
        self.assertEqual(self.status()["timers"], 1)
        self.assertEqual(self.do("advance", by=5)[0], ("stopping", 10, "a", 1, "shutdown"))

    def test_without_grace_or_jobs(self):
        self.bench()
        self.submit("a", work="stubborn")
        self.assertEqual(without_work(self.do("shutdown", grace=0)), [("stopping", 0, "a", 1, "shutdown")])
        self.assertEqual(self.do("finish", id="a"), [("ended", 0, "a", "cancelled", "shutdown"), ("stopped", 0)])
        self.bench()
        self.assertEqual(self.do("shutdown", grace=7), [("stopped", 0)])
        self.assertEqual((self.do("shutdown", grace=0), self.status()["timers"]), ([], 0))

    def test_submit_is_refused(self):
        self.bench()
        self.submit("a")
        self.do("shutdown", grace=5)
        self.refused("RuntimeError", "submit", id="b")
        self.assertEqual(self.status()["jobs"], {"a": "running"})


class Leftovers(RunnerCase):
    def test_timers_exist_only_for_a_purpose(self):
        self.bench(3)
        self.submit("a", timeout=100, retries=1, backoff=9)
        self.submit("b", timeout=100, work="cleanup")
        self.submit("c", timeout=100)
        counts = [self.status()["timers"]]
        for op, name in (("finish", "c"), ("cancel", "b"), ("cleaned", "b")):
            self.do(op, id=name)
            counts.append(self.status()["timers"])
        self.do("fail", id="a", error="x")
        counts.append(self.status()["timers"])
        self.do("cancel", id="a")
        counts.append(self.status()["timers"])
        self.assertEqual(counts, [3, 2, 1, 1, 1, 0])

    def test_no_task_is_left(self):
        self.bench(1)
        self.submit("a", retries=1)
        self.submit("b", needs=["a"])
        self.submit("c", "d", after=["b"])
        self.do("fail", id="a", error="x")
        self.do("fail", id="a", error="x")
        self.do("cancel", id="d")
        self.do("finish", id="c")
        self.do("shutdown", grace=5)
        self.assertEqual(self.end(), ({"tasks": 0, "timers": 0, "events": []}, 0))

    def test_end_of_input_abandons_jobs(self):
        self.bench(1)
        self.submit("a", timeout=9)
        self.submit("b", retries=1)
        self.submit("c", needs=["b"])
        last, status = self.end()
        ended = [("ended", 0, name, "abandoned") for name in "abc"]
        self.assertEqual([short(event) for event in last["events"]], [*ended, ("stopped", 0)])
        self.assertEqual((last["tasks"], last["timers"], status), (0, 0, 1))

    def test_abandon_during_a_shutdown(self):
        self.bench(2)
        self.submit("a", work="stubborn")
        self.submit("b")
        self.do("shutdown", grace=30)
        self.do("cancel", id="a")
        last, status = self.end()
        self.assertEqual(
            [short(event) for event in last["events"] if event["event"] != "work"],
            [("ended", 0, "a", "abandoned"), ("ended", 0, "b", "abandoned"), ("stopped", 0)],
        )
        self.assertEqual((last["timers"], status), (0, 1))
