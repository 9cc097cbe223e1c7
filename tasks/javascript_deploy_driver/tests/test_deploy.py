import json

import lab

OLD = "1.0"
NEW = "2.0"


def plan(*services):
    return {"environment": "prod", "version": NEW, "services": list(services)}


def nodes(*names, version=OLD):
    return {name: {"service": name.split("-")[0], "version": version} for name in names}


def temporary(call, times=1, **more):
    return {"call": call, "exit": 75, "times": times, **more}


def report(status, services, failure=None, errors=()):
    keys = ("service", "node", "step", "exit")
    return {
        "status": status,
        "services": services,
        "failure": dict(zip(keys, failure)) if failure else None,
        "cleanup_errors": [dict(zip(keys[1:], error)) for error in errors],
    }


WEB = plan({"name": "web"})
DEPLOYED = ["node drain web-1", "release install web-1 2.0", "release check web-1", "node restore web-1"]


class DeployCase(lab.Case):
    def deploy(self, what, fleet, faults=(), exit=0, inside=False, page_size=9, lease_seconds=1000):
        state = {"environment": "prod", "page_size": page_size, "lease_seconds": lease_seconds, "nodes": fleet}
        self.write("state/fleet.json", json.dumps(state))
        self.write("state/faults.json", json.dumps(list(faults)))
        self.write("plan.json", json.dumps(what))
        command = ["sh", "-c", "cd state && exec node ../bin/deploy.js ../plan.json"] if inside else ["node", "bin/deploy.js", "plan.json"]
        done = self.program(*command, env={"FLEET_STATE": self.path("state")}, seconds=30)
        self.assertEqual(done.status, exit, done)
        return done

    def log(self):
        if not self.exists("state/calls.jsonl"):
            return []
        return [json.loads(line) for line in self.read("state/calls.jsonl").splitlines()]

    def calls(self):
        """All calls between the start (acquire, list) and the release of the lease."""
        texts = [call["call"] + (f" -> {call['status']}" if call["status"] else "") for call in self.log()]
        self.assertEqual(texts[:2], ["lease acquire prod", "fleet list prod"])
        self.assertEqual(texts[-1], "lease release")
        return texts[2:-1]

    def fleet(self):
        return json.loads(self.read("state/fleet.json"))["nodes"]

    def assert_untouched(self, *names):
        for name in names:
            self.assertEqual(self.fleet()[name], nodes(name)[name])


class Existing(DeployCase):
    def test_dry_run_prints_the_order(self):
        self.write("plan.json", json.dumps(plan({"name": "web", "needs": ["b"]}, {"name": "b"}, {"name": "a", "needs": ["web"]}, {"name": "c"})))
        done = self.program("node", "bin/deploy.js", "--dry-run", "plan.json")
        self.assertEqual((done.status, done.stdout), (0, "b\nc\nweb\na\n"))

    def test_invalid_plan_calls_no_tool(self):
        done = self.deploy(plan({"name": "a", "needs": ["b"]}, {"name": "b", "needs": ["a"]}), nodes("a-1"), exit=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.log(), [])


class Success(DeployCase):
    def test_groups_in_the_order_of_names(self):
        done = self.deploy(plan({"name": "web", "batch": 2}, {"name": "x"}), nodes("web-9", "web-10", "web-2"))
        self.assertEqual(done.json(), report("done", {"web": "deployed", "x": "unchanged"}))
        self.assertEqual(
            [" ".join(call.split()[:3]) for call in self.calls()],
            ["node drain web-10", "node drain web-2", "release install web-10", "release install web-2"]
            + ["release check web-10", "release check web-2", "node restore web-10", "node restore web-2"]
            + ["node drain web-9", "release install web-9", "release check web-9", "node restore web-9"],
        )
        self.assertTrue(all(node["version"] == NEW and "receipt" not in node for node in self.fleet().values()))

    def test_pages_and_nodes_with_the_version(self):
        fleet = {**nodes("web-1", "other-1"), **nodes("web-2", "db-1", version=NEW)}
        done = self.deploy(plan({"name": "web", "needs": ["db"]}, {"name": "db"}), fleet, page_size=1, inside=True)
        self.assertEqual(done.json(), report("done", {"db": "unchanged", "web": "deployed"}))
        calls = [call["call"] for call in self.log()]
        self.assertEqual(calls, ["lease acquire prod"] + ["fleet list prod"] * 4 + DEPLOYED + ["lease release"])


class Retries(DeployCase):
    def test_temporary_failures_are_repeated_after_a_wait(self):
        faults = [temporary("fleet list prod", retry_after=7), temporary("release check web-1", times=2, retry_after=2)]
        done = self.deploy(WEB, nodes("web-1"), faults)
        self.assertEqual(done.json()["status"], "done")
        calls = [call["call"] for call in self.log()]
        self.assertEqual(calls[1:4], ["fleet list prod", "clock wait 7", "fleet list prod"])
        self.assertEqual(calls[6:-2], ["release check web-1", "clock wait 2"] * 2 + ["release check web-1"])

    def test_three_attempts(self):
        done = self.deploy(WEB, nodes("web-1"), [temporary("node drain web-1", times=3)], exit=1)
        self.assertEqual(done.json(), report("failed", {"web": "rolled_back"}, ("web", "web-1", "drain", 75)))
        self.assertEqual(self.calls(), ["node drain web-1 -> 75", "clock wait 3"] * 3)

    def test_permanent_failures_are_not_repeated(self):
        what = plan({"name": "web", "needs": ["api"]}, {"name": "api", "needs": ["db"]}, {"name": "db"})
        faults = [{"call": "release install api-1 2.0", "exit": 69}]
        done = self.deploy(what, {**nodes("db-1", version=NEW), **nodes("web-1", "api-1")}, faults, exit=1)
        services = {"db": "unchanged", "api": "rolled_back", "web": "skipped"}
        self.assertEqual(done.json(), report("failed", services, ("api", "api-1", "install", 69)))
        self.assertEqual(self.calls(), ["node drain api-1", "release install api-1 2.0 -> 69", "node restore api-1"])
        self.assert_untouched("api-1", "web-1")

    def test_operation_is_passed_on(self):
        call = "release install web-1 2.0"
        done = self.deploy(WEB, nodes("web-1"), [temporary(call, operation=True), temporary(call)])
        self.assertEqual(done.json(), report("done", {"web": "deployed"}))
        installs = [entry for entry in self.log() if entry["call"] == call]
        operation = installs[0]["answer"]["operation"]
        self.assertEqual([entry["options"].get("operation") for entry in installs], [None, operation, operation])

    def test_lease_is_not_available(self):
        done = self.deploy(WEB, nodes("web-1"), [temporary("lease acquire prod"), {"call": "lease acquire prod", "exit": 69}], exit=4)
        self.assertEqual(done.json(), report("no_lease", {"web": "skipped"}, (None, None, "acquire", 69)))
        self.assertEqual([entry["call"] for entry in self.log()], ["lease acquire prod", "clock wait 3", "lease acquire prod"])

    def test_list_fails(self):
        done = self.deploy(WEB, nodes("web-1", "web-2"), [{"call": "fleet list prod", "exit": 69, "after": 1}], page_size=1, exit=1)
        self.assertEqual(done.json(), report("failed", {"web": "skipped"}, (None, None, "list", 69)))
        self.assertEqual([entry["call"] for entry in self.log()][-2:], ["fleet list prod", "lease release"])


class Cleanup(DeployCase):
    def test_all_groups_of_the_service_are_rolled_back(self):
        fleet = nodes("db-1", "web-1", "web-2")
        faults = [{"call": "release check web-2", "healthy": False}]
        done = self.deploy(plan({"name": "web", "needs": ["db"]}, {"name": "db"}), fleet, faults, exit=1)
        services = {"db": "deployed", "web": "rolled_back"}
        self.assertEqual(done.json(), report("failed", services, ("web", "web-2", "check", 0)))
        self.assertEqual(
            self.calls()[-6:],
            ["release check web-2", "release rollback web-2", "node restore web-2"]
            + ["node drain web-1", "release rollback web-1", "node restore web-1"],
        )
        self.assert_untouched("web-1", "web-2")
        self.assertEqual(self.fleet()["db-1"]["version"], NEW)

    def test_group_is_undone_in_reverse_order(self):
        faults = [{"call": "release install web-2 2.0", "exit": 69}]
        self.deploy(plan({"name": "web", "batch": 3}), nodes("web-1", "web-2", "web-3"), faults, exit=1)
        self.assertEqual(
            self.calls()[5:], ["node restore web-3", "node restore web-2", "release rollback web-1", "node restore web-1"]
        )
        self.assert_untouched("web-1", "web-2", "web-3")

    def test_installation_in_doubt_is_abandoned(self):
        call = "release install web-1 2.0"
        faults = [temporary(call, times=2, operation=True), temporary(call)]
        done = self.deploy(WEB, nodes("web-1"), faults, exit=1)
        self.assertEqual(done.json(), report("failed", {"web": "rolled_back"}, ("web", "web-1", "install", 75)))
        self.assertEqual(self.calls()[7:], ["release abandon web-1", "node restore web-1"])
        self.assert_untouched("web-1")

    def test_operation_that_is_over_is_not_abandoned(self):
        call = "release install web-1 2.0"
        faults = [temporary(call, operation=True), {"call": call, "exit": 69}]
        done = self.deploy(WEB, nodes("web-1"), faults, exit=1)
        self.assertEqual(done.json()["failure"]["exit"], 69)
        self.assertEqual(self.calls()[-2:], [call + " -> 69", "node restore web-1"])

    def test_restore_is_tried_again_after_the_rollback(self):
        done = self.deploy(WEB, nodes("web-1"), [{"call": "node restore web-1", "exit": 69}], exit=1)
        self.assertEqual(done.json(), report("failed", {"web": "rolled_back"}, ("web", "web-1", "restore", 69)))
        self.assertEqual(self.calls()[-2:], ["release rollback web-1", "node restore web-1"])
        self.assert_untouched("web-1")

    def test_cleanup_error_ends_the_cleanup_of_the_node_only(self):
        faults = [
            {"call": "release check web-1", "healthy": False},
            {"call": "release rollback web-2", "exit": 69},
            {"call": "lease release", "exit": 69},
        ]
        done = self.deploy(plan({"name": "web", "batch": 2}), nodes("web-1", "web-2"), faults, exit=3)
        errors = [("web-2", "rollback", 69), (None, "release", 69)]
        self.assertEqual(done.json(), report("failed", {"web": "rolled_back"}, ("web", "web-1", "check", 0), errors))
        texts = [entry["call"] for entry in self.log()]
        self.assertEqual(texts[-4:-1], ["release rollback web-2", "release rollback web-1", "node restore web-1"])
        self.assertIn("receipt", self.fleet()["web-2"])
        self.assert_untouched("web-1")

    def test_release_of_the_lease_fails_after_a_success(self):
        done = self.deploy(WEB, nodes("web-1"), [{"call": "lease release", "exit": 69}], exit=3)
        self.assertEqual(done.json(), report("done", {"web": "deployed"}, errors=[(None, "release", 69)]))


class Lease(DeployCase):
    def test_lease_is_renewed_before_a_step_that_needs_it(self):
        # The lease ends at 13, and each call takes a second: the installation begins at 3, the second drain at 6.
        done = self.deploy(WEB, nodes("web-1", "web-2"), lease_seconds=12)
        self.assertEqual(done.json()["status"], "done")
        self.assertEqual(
            self.calls(),
            DEPLOYED + ["lease renew"] + [call.replace("web-1", "web-2") for call in DEPLOYED],
        )

    def test_lease_is_renewed_between_attempts(self):
        call = "release install web-1 2.0"
        faults = [temporary(call, operation=True, retry_after=8), temporary("lease renew")]
        done = self.deploy(WEB, nodes("web-1"), faults, lease_seconds=20)
        self.assertEqual(done.json()["status"], "done")
        self.assertEqual(
            self.calls()[1:6], [call + " -> 75", "clock wait 8", "lease renew -> 75", "clock wait 3", "lease renew"]
        )

    def test_renewal_fails_while_an_installation_is_in_doubt(self):
        call = "release install web-1 2.0"
        faults = [temporary(call, operation=True, retry_after=60)]
        done = self.deploy(WEB, nodes("web-1"), faults, lease_seconds=30, exit=1)
        self.assertEqual(done.json(), report("failed", {"web": "rolled_back"}, ("web", "web-1", "renew", 77)))
        self.assertEqual(self.calls()[2:], ["clock wait 60", "lease renew -> 77", "release abandon web-1", "node restore web-1"])
        self.assert_untouched("web-1")

    def test_cleanup_without_a_lease_goes_on(self):
        faults = [temporary("release check web-2", retry_after=60), {"call": "release check web-2", "exit": 69}]
        done = self.deploy(WEB, nodes("web-1", "web-2"), faults, lease_seconds=30, exit=3)
        self.assertEqual(
            done.json(),
            report("failed", {"web": "rolled_back"}, ("web", "web-2", "check", 69), [("web-1", "renew", 77)]),
        )
        self.assertEqual(self.calls()[-3:], ["release rollback web-2", "node restore web-2", "lease renew -> 77"])
        self.assert_untouched("web-2")


class JournalCase(DeployCase):
    def start(self, plan_name="plan.json", journal="deploy.journal"):
        return self.program("node", "bin/deploy.js", f"--journal={journal}", plan_name, env={"FLEET_STATE": self.path("state")}, seconds=30)

    def prepare(self, what, fleet, faults=(), page_size=9, lease_seconds=1000):
        state = {"environment": "prod", "page_size": page_size, "lease_seconds": lease_seconds, "nodes": fleet}
        self.write("state/fleet.json", json.dumps(state))
        self.write("state/faults.json", json.dumps(list(faults)))
        self.write("plan.json", json.dumps(what))

    def crash(self):
        done = self.start()
        self.assertLess(done.status, 0, done)
        self.assertEqual(done.stdout, "")

    def pass_time(self, seconds):
        state = json.loads(self.read("state/fleet.json"))
        state["clock"] += seconds
        self.write("state/fleet.json", json.dumps(state))

    def texts(self, start=0):
        marks = []
        for entry in self.log()[start:]:
            mark = " again" if entry["answer"].get("replayed") else ""
            marks.append(entry["call"] + (f" -> {entry['status']}" if entry["status"] else "") + mark)
        return marks

    def finish(self, exit=0):
        done = self.start()
        self.assertEqual(done.status, exit, done)
        return done.json()

    def crash_everywhere(self, when, fault, exit, wanted, calls):
        """Plays a deployment that crashes at each call, and checks the report and the calls that had an effect."""
        self.prepare(WEB, nodes("web-1"), [fault, {"call": "*", "crash": when, "times": 999}])
        done = self.start()
        for _ in range(24):
            if done.status >= 0:
                break
            done = self.start()
        self.assertEqual(done.status, exit, done)
        self.assertEqual(done.json(), wanted)
        # `clock wait 0` crashes, too, after which it is repeated, and another one follows.
        self.assertEqual([text for text in self.texts() if not text.endswith(" again") and text != "clock wait 0"], calls)


class Keys(DeployCase):
    def test_each_attempt_has_a_key_of_its_own(self):
        for _ in range(2):
            self.deploy(WEB, {}, [temporary("fleet list prod", times=2)])
        keys = [entry["options"].get("key") for entry in self.log()]
        self.assertEqual(len(set(keys)), 14)


class Crashes(JournalCase):
    def test_call_whose_answer_was_lost(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "release install web-1 2.0", "crash": "after"}])
        self.crash()
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(
            self.texts(3), [DEPLOYED[1], f"{DEPLOYED[1]} again", "clock wait 0", DEPLOYED[2], DEPLOYED[3], "lease release"]
        )

    def test_crash_at_the_beginning_and_at_the_end(self):
        faults = [{"call": "lease acquire prod", "crash": "after"}, {"call": "lease release", "crash": "after"}]
        self.prepare(WEB, nodes("web-1"), faults)
        self.crash()
        self.crash()
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(
            self.texts(),
            ["lease acquire prod", "lease acquire prod again", "clock wait 0", "fleet list prod", *DEPLOYED]
            + ["lease release", "lease release again"],
        )

    def test_lease_that_has_expired_is_acquired_anew(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "node drain web-1", "crash": "after"}], lease_seconds=30)
        self.crash()
        self.pass_time(100)
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(self.texts(3), [f"{DEPLOYED[0]} again", "clock wait 0", "lease acquire prod", *DEPLOYED[1:], "lease release"])

    def test_lease_that_ends_soon_is_renewed(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "node drain web-1", "crash": "after"}], lease_seconds=30)
        self.crash()
        self.pass_time(20)
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(self.texts(3), [f"{DEPLOYED[0]} again", "clock wait 0", "lease renew", *DEPLOYED[1:], "lease release"])

    def test_repeated_call_gets_what_it_gets_without_the_lease(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "node drain web-1", "crash": "before"}], lease_seconds=30)
        self.crash()
        self.pass_time(100)
        self.assertEqual(self.finish(exit=1), report("failed", {"web": "rolled_back"}, ("web", "web-1", "drain", 77)))
        self.assertEqual(self.texts(2), ["node drain web-1 -> 77", "lease release"])

    def test_lease_that_someone_else_has(self):
        faults = [{"call": "node drain web-1", "crash": "after"}, {"call": "lease acquire prod", "exit": 69, "after": 1}]
        self.prepare(WEB, nodes("web-1"), faults, lease_seconds=30)
        self.crash()
        self.pass_time(100)
        self.assertEqual(self.finish(exit=1), report("failed", {"web": "rolled_back"}, ("web", "web-1", "renew", 77)))
        self.assertEqual(
            self.texts(3),
            ["node drain web-1 again", "clock wait 0", "lease acquire prod -> 69", "lease renew -> 77", "node restore web-1", "lease release"],
        )

    def test_temporary_failure_before_the_crash(self):
        call = "release install web-1 2.0"
        faults = [temporary(call, operation=True, retry_after=6), temporary(call), {"call": call, "crash": "after"}]
        self.prepare(WEB, nodes("web-1"), faults)
        self.crash()
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(
            self.texts(3),
            [f"{call} -> 75", f"{call} -> 75 again", "clock wait 6", "clock wait 0", f"{call} -> 75", "clock wait 3", *DEPLOYED[1:], "lease release"],
        )
        installs = [entry for entry in self.log() if entry["call"] == call]
        operation = installs[0]["answer"]["operation"]
        self.assertEqual([entry["options"].get("operation") for entry in installs], [None, None, operation, operation])

    def test_attempts_are_counted_across_crashes(self):
        faults = [temporary("node drain web-1", times=9), {"call": "node drain web-1", "crash": "after", "after": 1}]
        self.prepare(WEB, nodes("web-1"), faults)
        self.crash()
        self.assertEqual(self.finish(exit=1), report("failed", {"web": "rolled_back"}, ("web", "web-1", "drain", 75)))
        drains = [text for text in self.texts() if text == "node drain web-1 -> 75"]
        self.assertEqual(len(drains), 3)

    def test_crash_during_a_wait(self):
        faults = [temporary("release check web-1", retry_after=9), {"call": "clock wait 9", "crash": "before"}]
        self.prepare(WEB, nodes("web-1"), faults)
        self.crash()
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(
            self.texts(4), ["release check web-1 -> 75", "clock wait 9", "clock wait 0", *DEPLOYED[2:], "lease release"]
        )

    def test_renewal_that_had_begun(self):
        faults = [temporary("lease renew", retry_after=2), {"call": "lease renew", "crash": "after"}]
        self.prepare(WEB, nodes("web-1"), faults, lease_seconds=9)
        self.crash()
        self.pass_time(50)
        self.finish()
        self.assertEqual(
            self.texts(2),
            ["lease renew -> 75", "lease renew -> 75 again", "clock wait 2", "clock wait 0", "lease acquire prod", "lease renew"]
            + [DEPLOYED[0], "lease renew", *DEPLOYED[1:], "lease release"],
        )

    def test_decision_to_renew_is_made_again(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "fleet list prod", "crash": "after"}, {"call": "lease renew", "crash": "after"}], lease_seconds=11)
        self.crash()
        self.pass_time(3)
        self.crash()
        self.pass_time(5)
        self.finish()
        self.assertEqual(
            self.texts(1),
            ["fleet list prod", "fleet list prod again", "clock wait 0", "lease renew", "lease renew again", "clock wait 0", "lease renew"]
            + [*DEPLOYED, "lease release"],
        )

    def test_crash_during_the_cleanup(self):
        faults = [
            {"call": "release check web-2", "healthy": False},
            {"call": "node restore web-2", "exit": 69},
            {"call": "node drain web-1", "crash": "after", "after": 1},
        ]
        self.prepare(WEB, nodes("web-1", "web-2"), faults)
        self.crash()
        begun = len(self.log())
        wanted = report("failed", {"web": "rolled_back"}, ("web", "web-2", "check", 0), [("web-2", "restore", 69)])
        self.assertEqual(self.finish(exit=3), wanted)
        self.assertEqual(
            self.texts(begun), ["node drain web-1 again", "clock wait 0", "release rollback web-1", "node restore web-1", "lease release"]
        )

    def test_crash_at_each_call_after_it_was_made(self):
        call = DEPLOYED[1]
        calls = ["lease acquire prod", "fleet list prod", DEPLOYED[0], f"{call} -> 75", "clock wait 3", call, *DEPLOYED[2:], "lease release"]
        self.crash_everywhere("after", temporary(call, operation=True), 0, report("done", {"web": "deployed"}), calls)

    def test_crash_at_each_call_before_it_is_made(self):
        calls = ["lease acquire prod", "fleet list prod", DEPLOYED[0], f"{DEPLOYED[1]} -> 69", DEPLOYED[3], "lease release"]
        wanted = report("failed", {"web": "rolled_back"}, ("web", "web-1", "install", 69))
        self.crash_everywhere("before", {"call": DEPLOYED[1], "exit": 69}, 1, wanted, calls)
        self.assert_untouched("web-1")


class JournalFiles(JournalCase):
    def test_finished_deployment_prints_its_report_again(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "fleet list prod", "exit": 69}])
        first = self.finish(exit=1)
        count = len(self.log())
        self.assertEqual(self.finish(exit=1), first)
        self.assertEqual(len(self.log()), count)

    def test_incomplete_line_is_ignored_and_does_no_damage(self):
        faults = [{"call": "node drain web-1", "crash": "after"}, {"call": "release check web-1", "crash": "after"}]
        self.prepare(WEB, nodes("web-1"), faults)
        self.crash()
        self.write("deploy.journal", self.read("deploy.journal") + '{"call":["rel')
        self.crash()
        self.write("deploy.journal", self.read("deploy.journal") + "{")
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(self.finish(), report("done", {"web": "deployed"}))
        self.assertEqual(self.texts()[-4:], [DEPLOYED[2] + " again", "clock wait 0", DEPLOYED[3], "lease release"])

    def test_file_without_a_complete_line_begins_a_deployment(self):
        self.prepare(WEB, {})
        self.write("deploy.journal", '{"ru')
        self.assertEqual(self.finish(), report("done", {"web": "unchanged"}))

    def test_other_plan_is_refused(self):
        self.prepare(WEB, nodes("web-1"), [{"call": "node drain web-1", "crash": "after"}])
        self.crash()
        count, journal = len(self.log()), self.read("deploy.journal") + '{"x'
        self.write("deploy.journal", journal)
        for other in ({**WEB, "version": "3.0"}, plan({"name": "web", "batch": 2}), plan({"name": "web"}, {"name": "x"})):
            self.write("other.json", json.dumps(other))
            done = self.start("other.json")
            self.assertEqual((done.status, done.stdout), (2, ""), done)
        self.assertEqual((len(self.log()), self.read("deploy.journal")), (count, journal))

    def test_folder_in_the_place_of_the_journal(self):
        self.prepare(WEB, nodes("web-1"))
        done = self.start(journal="state")
        self.assertEqual((done.status, done.stdout, self.log()), (2, "", []))
