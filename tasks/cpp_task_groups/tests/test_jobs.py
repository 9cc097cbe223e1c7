import lab

SECONDS = 5.0
# A correct library never prints the line, however long this is.
GRACE = 0.25


class Jobs(lab.Case):
    def start(self, workers, *groups, **scripts):
        self.p = self.process("driver", seconds=SECONDS, env={"MALLOC_PERTURB_": "165"})
        for name, steps in scripts.items():
            self.p.send(f"script {name} {steps}")
        self.do(f"pool:{workers}", *(f"group:{name}" for name in groups))

    def do(self, *steps):
        self.p.send(" ".join(steps))

    def expect(self, *lines):
        for line in lines:
            self.assertEqual(self.p.line(), line)

    def expect_any_order(self, *lines):
        self.assertEqual(sorted(self.p.line() for _ in lines), sorted(lines))

    def quiet(self):
        """Fails if the driver prints something."""
        try:
            line = self.p.line(GRACE)
        except AssertionError as error:
            if "no line in time" not in str(error):
                raise
            return
        self.fail(f"unexpected: {line}")

    def end(self):
        self.assertEqual(self.p.wait().status, 0)


class Order(Jobs):
    def test_higher_priority_runs_first(self):
        self.start(1, "a", "b", block="gate:g", x="say:x", y="say:y", z="say:z", u="say:u", v="say:v")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("submit:a:1:x", "submit:b:-2147483648:u", "submit:b:5:y", "submit:a:2147483647:v", "submit:a:-3:z", "queued:q", "unfinished:a:left", "open:g", "wait:a:wa", "wait:b:wb")
        self.expect("q 5", "left 4", "v", "y", "x", "z")
        self.expect_any_order("u", "wa ok", "wb ok")
        self.end()

    def test_equal_priority_runs_in_order_of_submission(self):
        names = [f"s{i}" for i in range(24)]
        self.start(1, "a", "b", block="gate:g", **{name: f"say:{name}" for name in names})
        self.do("submit:a:0:block")
        self.expect("at g")
        for i, name in enumerate(names):
            self.do(f"submit:{'ab'[i % 3 == 0]}:{7}:{name}")
        self.do("open:g")
        self.expect(*names)
        self.end()

    def test_idle_worker_starts_a_job_while_others_wait_for_groups(self):
        self.start(3, "a", "b", "c", block="gate:g", outer="say:outer wait:a:inner", x="say:x", waiter="wait:a:waiter")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("submit:b:0:outer")
        self.expect("outer")
        for _ in range(6):
            self.do("bg:waiter")
        for _ in range(20):
            self.do("submit:c:0:x")
            self.expect("x")
        self.do("open:g")
        self.expect_any_order("inner ok", *["waiter ok"] * 6)
        self.end()



class Finish(Jobs):
    def test_wait_covers_the_destruction_of_the_function_object(self):
        self.start(2, "a", job="say:ran", dropped="gate:d say:gone", waiter="wait:a:w")
        self.do("submit:a:0:job:dropped")
        self.expect("ran", "at d")
        self.do("bg:waiter", "unfinished:a:u")
        self.expect("u 1")
        self.quiet()
        self.do("open:d")
        self.expect("gone", "w ok")
        self.end()

    def test_destructor_of_a_function_object_belongs_to_the_job(self):
        self.start(1, "a", "b", job="say:ran", dropped="wait:a:own shutdown:drain:sd shutdown:cancel:sc submit:b:0:late wait:b:b", late="say:late")
        self.do("submit:a:0:job:dropped", "wait:a:w")
        self.expect("ran", "own logic_error", "sd logic_error", "sc logic_error", "late", "b ok", "w ok")
        self.end()

    def test_groups_can_be_destroyed_right_after_wait(self):
        self.start(2)
        self.do("churn:4000")
        self.assertEqual(self.p.line(12), "churn wrong 0")
        self.end()


class Help(Jobs):
    def test_helper_runs_only_jobs_of_the_subtree_it_waits_for(self):
        self.start(1, "a", "b", "c", outer="gate:g wait:b:inner", x="say:x", y="say:y", z="say:z")
        self.do("group:d:b", "submit:a:0:outer")
        self.expect("at g")
        self.do("submit:c:9:z", "submit:b:0:x", "submit:d:3:y", "submit:a:8:z", "open:g")
        self.expect("y", "x", "inner ok", "z", "z")
        self.end()

    def test_helper_runs_a_job_that_is_submitted_while_it_waits(self):
        self.start(2, "a", "b", outer="say:outer wait:b:inner", block="gate:g", x="say:x")
        self.do("submit:b:0:block")
        self.expect("at g")
        self.do("submit:a:0:outer")
        self.expect("outer")
        self.quiet()
        self.do("submit:b:0:x")
        self.expect("x")
        self.do("open:g")
        self.expect("inner ok")
        self.end()

    def test_thread_without_a_job_only_blocks(self):
        self.start(1, "a", "b", block="gate:g", x="say:x", waiter="say:waiter wait:b:w")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("submit:b:0:x", "bg:waiter")
        self.expect("waiter")
        self.quiet()
        self.do("open:g")
        self.expect("x", "w ok")
        self.end()

    def test_waiting_for_the_own_group_or_an_ancestor_throws(self):
        self.start(1, "a", job="wait:b:own wait:a:parent unfinished:a:u wait:c:child cancelled:b:b")
        self.do("group:b:a", "group:c:b", "submit:b:0:job", "wait:a:w")
        self.expect("own logic_error", "parent logic_error", "u 1", "child ok", "b no", "w ok")
        self.end()

    def test_waiting_for_the_group_of_an_outer_job_throws(self):
        self.start(1, "a", "b", "c", outer="submit:b:0:middle wait:b:inner", middle="submit:c:0:deep wait:c:mid", deep="wait:a:outer wait:b:middle")
        self.do("submit:a:0:outer", "wait:a:w")
        self.expect("outer logic_error", "middle logic_error", "mid ok", "inner ok", "w ok")
        self.end()


class Errors(Jobs):
    def test_wait_rethrows_any_type_once(self):
        self.start(1, "a", "b", bad="throw:int:42", worse="throw:std:broken")
        self.do("submit:a:0:bad", "wait:a:w", "wait:a:w", "submit:b:0:worse", "wait:b:v", "wait:b:v")
        self.expect("w threw int 42", "w ok", "v threw broken", "v ok")
        self.end()

    def test_exception_cancels_the_group_before_the_job_finishes(self):
        self.start(2, "a", "b", bad="gate:g throw:std:broken", other="gate:h token:t", call="unfinished:a:left", gone="say:gone", never="say:never")
        self.do("watch:w:a:call", "submit:a:9:bad", "submit:a:9:other")
        self.expect_any_order("at g", "at h")
        self.do("submit:b:0:bad", "submit:b:0:never:gone", "open:g")
        self.expect("left 2", "at g", "gone")
        self.do("open:h")
        self.expect("t yes")
        self.do("wait:a:w", "cancelled:a:c")
        self.expect("w threw broken", "c yes")
        self.end()

    def test_first_exception_is_kept_even_if_the_group_was_cancelled(self):
        self.start(2, "a", first="gate:g throw:std:first", second="gate:h throw:std:second")
        self.do("submit:a:0:first", "submit:a:0:second")
        self.expect_any_order("at g", "at h")
        self.do("cancel:a:c", "open:h", "await_unfinished:a:1", "open:g", "wait:a:w", "wait:a:w")
        self.expect("c", "w threw second", "w ok")
        self.end()

    def test_exception_of_a_child_does_not_reach_the_parent(self):
        self.start(1, "a", bad="throw:int:7", x="say:x")
        self.do("group:b:a", "submit:b:0:bad", "wait:a:wa", "cancelled:a:c", "cancelled:b:c", "submit:a:0:x", "wait:a:wa", "wait:b:wb")
        self.expect("wa ok", "c no", "c yes", "x", "wa ok", "wb threw int 7")
        self.end()


class Cancel(Jobs):
    def test_destructors_of_discarded_jobs_can_use_the_library(self):
        self.start(1, "a", "b", block="gate:g", x="say:x", y="say:y", gone="submit:a:0:x submit:b:0:y queued:q unfinished:a:u cancel:a:again", child="unfinished:b:b")
        self.do("submit:b:0:block")
        self.expect("at g")
        self.do("submit:a:0:x:gone", "cancel:a:done", "unfinished:a:u", "group:p", "group:c:p", "submit:c:0:x:child", "cancel:p:done", "unfinished:p:p")
        self.expect("x cancelled", "q 1", "u 1", "again", "done", "u 0", "b 2", "done", "p 0")
        self.do("open:g", "wait:b:w", "wait:a:w")
        self.expect("y", "w ok", "w ok")
        self.end()

    def test_cancel_reaches_descendants_only(self):
        self.start(1, "a", "s", x="say:x")
        self.do("group:b:a", "group:c:b", "group:d:a", "cancel:b:done")
        self.do(*(f"cancelled:{name}:{name}" for name in "abcds"), "group:e:c", "cancelled:e:e")
        self.expect("done", "a no", "b yes", "c yes", "d no", "s no", "e yes")
        self.do("submit:e:0:x", "submit:d:0:x", "wait:a:w")
        self.expect("x cancelled", "x", "w ok")
        self.end()

    def test_parent_can_be_destroyed_before_its_child(self):
        self.start(1, "a", x="say:x")
        self.do("group:b:a", "keep:k:a", "drop:a:dropped", "kept:k:k", "cancelled:b:b", "submit:b:0:x", "cancel:b:c", "wait:b:w", "drop:b:dropped")
        self.expect("dropped", "k yes", "b yes", "x cancelled", "c", "w ok", "dropped")
        self.end()

    def test_concurrent_cancels_and_submissions_lose_no_job(self):
        self.start(2)
        self.do("cancel_race:300")
        self.assertEqual(self.p.line(12), "cancel_race wrong 0")
        self.end()


class Watches(Jobs):
    def test_callback_runs_once_and_late_registration_runs_at_once(self):
        self.start(1, "a", call="say:call", late="say:late", removed="say:removed")
        self.do("watch:r:a:removed", "watch:w:a:call", "unwatch:r:r", "cancel:a:c", "cancel:a:c", "watch:v:a:late", "say:next", "unwatch:w:u", "unwatch:v:u")
        self.expect("r", "call", "c", "c", "late", "next", "u", "u")
        self.end()

    def test_callbacks_can_use_the_library(self):
        self.start(1, "a", "b", call="cancelled:a:a submit:b:0:x wait:b:b group:n:a cancelled:n:n cancel:b:cb watch:late:a:inline", inline="say:inline", x="say:x")
        self.do("watch:w:a:call", "cancel:a:c")
        self.expect("a yes", "x", "b ok", "n yes", "cb", "inline", "c")
        self.end()

    def test_reset_blocks_while_another_thread_runs_the_callback(self):
        self.start(1, "a", call="gate:g say:end", cancel="cancel:a:c", unwatch="unwatch:w:u")
        self.do("watch:w:a:call", "bg:cancel")
        self.expect("at g")
        self.do("bg:unwatch", "cancelled:a:a")
        self.expect("a yes")
        self.quiet()
        self.do("open:g")
        self.expect("end")
        self.expect_any_order("u", "c")
        self.end()

    def test_callback_can_remove_one_that_has_not_started(self):
        self.start(1, "a", one="say:call unwatch:two:u unwatch:one:u", two="say:call unwatch:one:u unwatch:two:u")
        self.do("group:b:a", "watch:one:a:one", "watch:two:a:two", "cancel:a:c")
        self.expect("call", "u", "u", "c")
        self.do("group:d", "group:e:d", "watch:one:d:one", "watch:two:e:two", "cancel:d:c")
        self.expect("call", "u", "u", "c")
        self.end()



class Stop(Jobs):
    def test_drain_runs_what_is_queued_and_refuses_new_jobs(self):
        self.start(1, "a", "b", block="gate:g", x="say:x", y="say:y", stop="shutdown:drain:sd")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("submit:a:0:x", "bg:stop", "await_closed:b")
        self.quiet()
        self.do("submit:a:0:y", "cancel:b:c", "submit:b:0:y", "open:g")
        self.expect("y closed", "c", "y closed", "x", "sd ok")
        self.end()

    def test_idle_worker_takes_jobs_during_a_drain(self):
        self.start(2, "a", "b", block="gate:g submit:b:0:x gate:h", x="say:x open:h", stop="shutdown:drain:sd")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("bg:stop", "await_closed:b")
        self.quiet()
        self.do("open:g")
        self.expect_any_order("at h", "x")
        self.expect("sd ok")
        self.end()

    def test_cancel_upgrades_a_drain(self):
        self.start(1, "a", block="gate:g token:t", x="say:x", gone="say:gone", stop="shutdown:drain:sd", now="shutdown:cancel:sc")
        self.do("group:b:a", "submit:a:0:block")
        self.expect("at g")
        self.do("submit:b:0:x:gone", "bg:stop", "await_closed:a")
        self.do("bg:now")
        self.expect("gone")
        self.quiet()
        self.do("open:g")
        self.expect("t yes")
        self.expect_any_order("sd ok", "sc ok")
        self.do("shutdown:drain:again", "group:n", "cancelled:n:n")
        self.expect("again ok", "n yes")
        self.end()

    def test_each_shutdown_waits_for_the_end(self):
        self.start(2, "a", block="gate:g", stop="say:stop shutdown:drain:sd")
        self.do("submit:a:0:block")
        self.expect("at g")
        self.do("bg:stop", "bg:stop", "bg:stop")
        self.expect("stop", "stop", "stop")
        self.quiet()
        self.do("open:g")
        self.expect("sd ok", "sd ok", "sd ok")
        self.end()

    def test_everything_else_outlives_the_pool(self):
        self.start(2, "a", "b", x="say:x", bad="throw:std:late", call="say:call")
        self.do("submit:a:0:bad", "submit:b:0:x", "wait:b:b", "keep:k:b", "watch:w:b:call")
        self.expect("x", "b ok")
        self.do("unpool:gone")
        self.expect("call", "gone")
        self.do("submit:b:0:x", "kept:k:k", "cancel:b:c", "drop:b:d", "kept:k:k", "watch:v:-:call:k", "unwatch:w:u", "wait:a:a", "drop:a:d")
        self.expect("x closed", "k yes", "c", "d", "k yes", "call", "u", "a threw late", "d")
        self.end()

    def test_accepted_jobs_run_if_a_shutdown_races_with_submissions(self):
        self.start(1)
        self.do("shutdown_race:150")
        self.assertEqual(self.p.line(12), "shutdown_race wrong 0")
        self.end()


class WordCount(lab.Case):
    def test_example_keeps_its_behavior(self):
        self.write("one.txt", "a b c\nd\n")
        self.write("two.txt", "")
        done = self.program("wordcount", "one.txt", "two.txt", "one.txt")
        self.assertEqual((done.status, done.stdout), (0, "4 one.txt\n0 two.txt\n4 one.txt\n8 total\n"), done)
        done = self.program("wordcount", "one.txt", "none.txt")
        self.assertEqual((done.status, done.stdout, done.stderr), (1, "", "wordcount: can't read `none.txt`\n"), done)
