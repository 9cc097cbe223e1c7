import lab


class Base(lab.Case):
    def start(self, workers=1, capacity=10, max_overtakes=100):
        self.driver_process = self.process("{build}/debug/examples/driver", seconds=12)
        self.says(f"new {workers} {capacity} {max_overtakes}", "ok")

    def ask(self, command):
        self.driver_process.send(command)
        return self.driver_process.line()

    def says(self, command, expected):
        self.assertEqual(self.ask(command), expected, command)

    def all_say(self, expected, *commands):
        for command in commands:
            self.says(command, expected)

    def occupy(self, *names, group="-"):
        """Submits jobs that run until they are opened."""
        for name in names:
            self.says(f"submit {name} 0 {group} gate", "ok")
        self.says(f"until running {len(names)}", "ok")

    def submit(self, *jobs):
        """Submits jobs, each given as `NAME PRIORITY GROUP KIND`."""
        for job in jobs:
            self.says(f"submit {job}", "ok")

    def check_order(self, expected):
        self.says("open hold", "ok")
        self.says(f"until finished {len(expected) + 1}", "ok")
        self.says("started", ",".join(["hold", *expected]))


class Results(Base):
    def test_values_and_statistics(self):
        self.start(workers=2)
        self.submit("a 0 - value 5", "b 3 - value x")
        self.all_say("ok", "until finished 2")
        self.says("join b", "ok x")
        self.says("join a", "ok 5")
        self.says("stats", "queued=0 running=0 blocked=0 finished=2 canceled=0 panicked=0")

    def test_panics_reach_their_handle_only(self):
        self.start(workers=1)
        self.submit("a 0 - panic some-text", "b 0 - panic-str", "c 0 - panic-other", "d 0 - value 1")
        self.says("join a", "panicked some-text")
        self.says("join b", "panicked fixed text")
        self.says("join c", "panicked unknown panic")
        self.says("join d", "ok 1")
        self.says("stats", "queued=0 running=0 blocked=0 finished=1 canceled=0 panicked=3")

    def test_dropped_handles_leave_their_jobs_alone(self):
        self.start()
        self.occupy("hold")
        self.submit("a 0 - value 1")
        self.all_say("ok", "forget a", "forget hold")
        self.check_order(["a"])


class Order(Base):
    def test_priority_first_then_submission(self):
        self.start()
        self.occupy("hold")
        self.submit("a 0 - value", "b 2 - value", "c -1 - value", "d 2 - value", "e 1 - value", "f 0 - value")
        self.check_order(["b", "d", "e", "a", "f", "c"])

    def test_limit_of_overtakes(self):
        self.start(max_overtakes=2)
        self.occupy("hold")
        self.submit("a 0 - value", "b 5 - value", "c 1 - value", "d 5 - value", "e 5 - value", "f 5 - value")
        # b and d overtake a, which then comes first; d and e overtake c.
        self.check_order(["b", "d", "a", "e", "c", "f"])
        self.start(max_overtakes=0)
        self.occupy("hold")
        self.submit("a 0 - value", "b 5 - value", "c 9 - value")
        self.check_order(["a", "b", "c"])

    def test_jobs_that_are_joined_by_jobs_run_at_once(self):
        self.start(max_overtakes=1)
        self.occupy("hold")
        self.submit("p 9 - parent x=0,y=1,z=2 x,y", "a 5 - value", "b 5 - value")
        self.check_order(["p", "x", "y", "a", "b", "z"])
        self.says("join p", "ok x:true,y:true,z:queued")

    def test_joined_jobs_overtake_no_one(self):
        self.start(max_overtakes=2)
        self.occupy("hold")
        self.submit("a 0 - value", "p 9 - parent x=0,y=0,z=0 x,y,z", "b 5 - value", "c 5 - value")
        # p and b overtake a, but x, y and z don't.
        self.check_order(["p", "x", "y", "z", "b", "a", "c"])


class Bounds(Base):
    def test_full_queue(self):
        self.start(capacity=2)
        self.occupy("hold")
        self.submit("a 0 - value", "b 0 - value")
        self.says("try c 9 - value", "full")
        self.says("dropped", "c")
        self.says("cancel a", "true")
        self.says("try c 9 - value", "ok")
        self.check_order(["c", "b"])

    def test_blocked_submitters_enter_in_their_order(self):
        self.start(capacity=1)
        self.occupy("hold")
        self.submit("a 0 - value")
        for number, name in enumerate("bcd", 1):
            self.says(f"background {name} {number} - value", "started")
            self.says(f"until blocked {number}", "ok")
        for name, after in zip("abc", "bcd"):
            self.says(f"cancel {name}", "true")
            self.says(f"await submit-{after}", "ok")
            self.says("try x 0 - value", "full")
        self.says("stats", "queued=1 running=1 blocked=0 finished=0 canceled=3 panicked=0")
        self.check_order(["d"])

    def test_a_job_that_begins_makes_room(self):
        self.start(capacity=1)
        self.occupy("hold")
        self.submit("a 0 - gate")
        self.says("background b 0 - value 1", "started")
        self.says("until blocked 1", "ok")
        self.says("open hold", "ok")
        self.says("await submit-b", "ok")
        self.says("stats", "queued=1 running=1 blocked=0 finished=1 canceled=0 panicked=0")
        self.says("open a", "ok")
        self.says("join b", "ok 1")

    def test_jobs_never_wait_for_room(self):
        self.start(capacity=2)
        self.occupy("hold")
        self.submit("p 9 - parent x=0,y=0,z=0", "a 0 - value")
        self.check_order(["p", "a", "x"])
        self.says("join p", "ok x:queued,y:full,z:full")

    def test_many_threads(self):
        self.start(workers=3, capacity=4, max_overtakes=3)
        is_right, most = self.ask("stress 4 150").split()
        self.assertEqual(is_right, "true")
        self.assertLessEqual(int(most), 4)
        self.says("drain x", "started")
        self.says("await x", "ended")


class Joining(Base):
    def test_join_inside_and_outside(self):
        self.start(workers=1, capacity=1)
        self.submit("a 0 - family 30")
        self.says("join a", "ok 31")
        self.occupy("hold")
        self.says("join-background hold", "started")
        self.says("is-waiting join-hold", "true")
        self.says("open hold", "ok")
        self.says("await join-hold", "ok false")

    def test_calls_that_would_wait_for_themselves_panic(self):
        self.start(workers=2)
        self.says("group g", "ok")
        for kind in ("drain", "shutdown", "group-wait g"):
            self.submit(f"a 0 g {kind}")
            self.assertTrue(self.ask("join a").startswith("panicked "), kind)
        self.submit("b 0 g value 1")
        self.says("join b", "ok 1")
        self.says("stats", "queued=0 running=0 blocked=0 finished=1 canceled=0 panicked=3")


class Canceling(Base):
    def test_queued_jobs_never_run(self):
        self.start()
        self.occupy("hold")
        self.submit("a 0 - value", "b 0 - value")
        self.says("cancel a", "true")
        self.says("dropped", "a")
        self.says("is-finished a", "true")
        self.says("cancel a", "false")
        self.says("stats", "queued=1 running=1 blocked=0 finished=0 canceled=1 panicked=0")
        self.says("join a", "canceled")
        self.check_order(["b"])

    def test_running_jobs_are_told(self):
        self.start()
        self.submit("a 0 - spin")
        self.says("until running 1", "ok")
        self.says("cancel a", "false")
        self.says("join a", "ok stopped")
        self.submit("b 0 - value 3")
        self.all_say("ok", "until finished 2")
        self.says("cancel b", "false")
        self.says("join b", "ok 3")

    def test_destructors_may_use_the_executor(self):
        self.start(capacity=3)
        self.says("group g", "ok")
        self.occupy("hold")
        self.submit("a 0 - effect-stats", "b 0 g effect-stats", "c 0 - effect-panic")
        self.says("cancel a", "true")
        self.says("cancel-group g", "1")
        self.says("cancel c", "true")
        self.says("dropped", "a,b,c")
        self.says("join a", "canceled")
        self.says("join c", "canceled")
        self.submit("d 0 - effect-panic")
        self.says("shutdown x", "started")
        self.says("until queued 0", "ok")
        self.says("open hold", "ok")
        self.says("await x", "ended")
        self.says("join d", "canceled")

    def test_groups_are_canceled_as_a_whole(self):
        self.start(workers=2)
        self.all_say("ok", "group g", "group h")
        self.submit("r 0 g spin")
        self.says("until running 1", "ok")
        self.submit("hold 0 h gate")
        self.says("until running 2", "ok")
        self.submit("a 0 g value", "b 0 h value 2", "c 0 g value", "d 0 - value 4")
        self.says("cancel-group g", "2")
        self.says("is-group-canceled g", "true")
        self.says("is-group-canceled h", "false")
        self.says("join r", "ok stopped")
        self.says("join a", "canceled")
        self.says("try e 0 g value", "group")
        self.says("submit e 0 g value", "group")
        self.says("cancel-group g", "0")
        self.says("join d", "ok 4")
        self.says("open hold", "ok")
        self.says("join hold", "ok false")
        self.says("join b", "ok 2")

    def test_blocked_submitters_of_a_canceled_group_give_up(self):
        self.start(capacity=1)
        self.says("group g", "ok")
        self.occupy("hold")
        self.submit("a 0 - value")
        for number, job in enumerate(("b 0 g value", "c 0 - value", "d 0 g value"), 1):
            self.says(f"background {job}", "started")
            self.says(f"until blocked {number}", "ok")
        self.says("cancel-group g", "0")
        self.says("await submit-b", "group")
        self.says("await submit-d", "group")
        self.says("until blocked 1", "ok")
        self.says("cancel a", "true")
        self.says("await submit-c", "ok")
        self.check_order(["c"])

    def test_waiting_for_a_group(self):
        self.start(workers=2)
        self.all_say("ok", "group g", "group empty")
        self.says("wait-group empty", "started")
        self.says("await group-empty", "ended")
        self.occupy("r", group="g")
        self.submit("other 0 - gate")
        self.says("until running 2", "ok")
        self.submit("a 0 g value", "b 0 g panic x", "c 0 - gate")
        self.says("wait-group g", "started")
        self.says("cancel a", "true")
        self.says("is-waiting group-g", "true")
        self.says("open other", "ok")
        self.says("until panicked 1", "ok")
        self.says("is-waiting group-g", "true")
        self.says("cancel-group g", "0")
        self.says("is-waiting group-g", "true")
        self.says("open r", "ok")
        self.says("await group-g", "ended")
        self.says("join r", "ok true")


class Ending(Base):
    def test_drain_runs_what_is_queued(self):
        self.start(workers=2)
        self.occupy("hold", "hold2")
        self.submit("a 0 - parent x=0,y=5", "b 1 - value 2", "c 0 - panic x")
        self.says("drain end", "started")
        self.wait_for_rejection()
        self.says("is-waiting end", "true")
        self.all_say("ok", "open hold", "open hold2")
        self.says("await end", "ended")
        self.says("alive", "0")
        self.says("join a", "ok x:queued,y:queued")
        self.says("until finished 6", "ok")
        self.says("until panicked 1", "ok")

    def test_running_jobs_may_submit_while_the_executor_drains(self):
        self.start(workers=2)
        self.submit("p 0 - late", "hold 0 - gate")
        self.says("until running 2", "ok")
        self.says("drain end", "started")
        self.wait_for_rejection()
        self.says("open p", "ok")
        self.says("join p", "ok queued")
        self.says("open hold", "ok")
        self.says("await end", "ended")
        self.says("until finished 3", "ok")

    def wait_for_rejection(self):
        """Waits until the end has begun; the attempts until then are canceled."""
        for number in range(1000):
            if self.ask(f"try probe{number} 0 - value") == "shutdown":
                return
            self.ask(f"cancel probe{number}")
        self.fail("jobs are still accepted")

    def test_drain_rejects_blocked_submitters(self):
        self.start(capacity=1)
        self.occupy("hold")
        self.submit("a 0 - value 1")
        self.says("background b 0 - value", "started")
        self.says("until blocked 1", "ok")
        self.says("drain end", "started")
        self.says("await submit-b", "shutdown")
        self.says("dropped", "b")
        self.says("open hold", "ok")
        self.says("await end", "ended")
        self.says("join a", "ok 1")
        self.says("submit c 0 - value", "shutdown")

    def test_shutdown_cancels_and_waits(self):
        self.start(workers=2, capacity=2)
        self.submit("r 0 - spin")
        self.says("until running 1", "ok")
        self.submit("hold 0 - gate")
        self.says("until running 2", "ok")
        self.submit("a 0 - value", "b 0 - value")
        self.says("background c 0 - value", "started")
        self.says("until blocked 1", "ok")
        self.says("shutdown end", "started")
        self.says("await submit-c", "shutdown")
        self.says("join a", "canceled")
        self.says("join b", "canceled")
        self.says("join r", "ok stopped")
        self.says("is-waiting end", "true")
        self.says("open hold", "ok")
        self.says("await end", "ended")
        self.says("alive", "0")
        self.says("join hold", "ok true")
        self.says("stats", "queued=0 running=0 blocked=0 finished=2 canceled=2 panicked=0")

    def test_shutdown_overrides_drain(self):
        self.start(workers=1)
        self.submit("r 0 - spin")
        self.says("until running 1", "ok")
        self.submit("a 0 - value")
        self.says("drain one", "started")
        self.says("drain two", "started")
        self.says("shutdown three", "started")
        self.all_say("ended", "await three", "await one", "await two")
        self.says("join a", "canceled")
        self.says("join r", "ok stopped")
        self.says("alive", "0")
        self.says("drain again", "started")
        self.says("await again", "ended")

    def test_shutdown_rejects_children(self):
        self.start(workers=1)
        self.says("group g", "ok")
        self.submit("p 0 - late")
        self.says("until running 1", "ok")
        self.says("cancel-group g", "0")
        self.says("shutdown end", "started")
        self.wait_for_rejection()
        self.says("try q 0 g value", "shutdown")
        self.says("open p", "ok")
        self.says("join p", "ok shutdown")
        self.says("await end", "ended")

    def test_dropped_executor_shuts_down(self):
        self.start(workers=1)
        self.submit("v 0 - value 1")
        self.says("join v", "ok 1")
        self.says("drop-executor end", "started")
        self.says("await end", "ended")
        self.says("alive", "0")

    def test_executor_dropped_by_its_last_job(self):
        self.start(workers=1)
        self.occupy("hold")
        self.says("drop-executor end", "started")
        self.says("await end", "ended")
        self.says("open hold", "ok")
        self.says("join hold", "ok false")


class Jobrun(lab.Case):
    def test_results_in_the_order_of_lines(self):
        text = "sum 1 10\n\n  \nfoo 1\ndiv 7 2\ndiv 1 0\ncollatz 27\ncollatz 0\nsum 5 4\nsum 18446744073709551614 18446744073709551615\n"
        for threads in ("1", "3"):
            done = self.program("{build}/debug/jobrun", "--threads", threads, stdin=text)
            expected = ["1: 55", "4: invalid", "5: 3", "6: failed: division by zero", "7: 111", "8: failed: the start is 0", "9: 0", "10: failed: the sum is too large"]
            self.assertEqual((done.stdout.splitlines(), done.stderr, done.status), (expected, "", 1))

    def test_many_jobs(self):
        done = self.program("{build}/debug/jobrun", stdin="".join(f"sum {n} {n + 1}\n" for n in range(3000)))
        self.assertEqual(done.stdout, "".join(f"{n + 1}: {2 * n + 1}\n" for n in range(3000)))
        self.assertEqual(done.status, 0)
        self.assertEqual(self.program("{build}/debug/jobrun", "--threads", "0").status, 2)
