import lab


def clause(attribute, *values, op="in", **more):
    return {"attribute": attribute, "op": op, "values": list(values), **more}


def members(*segments, **more):
    return {"op": "segment", "values": list(segments), **more}


def rule(name, *clauses, variation=1, **more):
    return {"id": name, "clauses": list(clauses), "serve": {"variation": variation}, **more}


def flag(key, *rules, requires=(), **more):
    return {
        "key": key,
        "on": True,
        "variations": ["old", "new", "other"],
        "off_variation": 0,
        "rules": list(rules),
        "prerequisites": [{"flag": name, "variation": 1} for name in requires],
        "fallthrough": {"variation": 0},
        **more,
    }


class FlagCase(lab.Case):
    def setUp(self):
        self.flags = self.driver("node", "bin/flags.js")

    def put(self, *flags):
        return [self.flags.call("put_flag", flag=one)["version"] for one in flags]

    def segment(self, key, **more):
        self.flags.call("put_segment", segment={"key": key, **more})

    def result(self, name, user="u", **context):
        return self.flags.call("evaluate", flag=name, context={"key": user, **context})

    def reason(self, name, user="u", **context):
        return self.result(name, user, **context)["reason"]

    def misses(self):
        return self.flags.call("stats")["misses"]

    def hits(self):
        return self.flags.call("stats")["hits"]


class Existing(FlagCase):
    def test_steps_of_the_evaluation(self):
        self.put(flag("a", rule("pro", clause("plan", "pro"), clause("age", 17, op="gt"))), flag("b", requires=["a"]))
        self.assertEqual(
            self.result("a", plan="pro", age=18), {"variation": 1, "value": "new", "reason": "rule:pro", "version": 1}
        )
        self.assertEqual(self.reason("a", plan="pro"), "fallthrough")
        self.assertEqual(self.reason("b", plan="free"), "prerequisite:a")
        self.assertEqual(self.put(flag("a", on=False)), [2])
        self.assertEqual(self.result("a", plan="pro", age=18)["reason"], "off")

    def test_included_wins_over_excluded(self):
        self.segment("beta", included=["x"], excluded=["x", "y"], rules=[{"clauses": [clause("plan", "pro")]}])
        self.put(flag("a", rule("beta", members("beta")), rule("rest", members("none", negate=True))))
        reasons = [self.reason("a", user, plan="pro") for user in "xyz"]
        self.assertEqual(reasons, ["rule:beta", "rule:rest", "rule:beta"])

    def test_rollout_keeps_its_buckets(self):
        weights = [{"variation": index, "weight": weight} for index, weight in enumerate((30000, 30000, 40000))]
        self.put(flag("a", fallthrough={"rollout": weights}))
        found = "".join(str(self.result("a", f"user-{index}")["variation"]) for index in range(20))
        self.assertEqual(found, "10221112210200001221")

    def test_cycles_are_refused(self):
        self.put(flag("a", requires=["b"]))
        with self.assertRaises(lab.Raised) as caught:
            self.put(flag("b", requires=["a"]))
        self.assertEqual(caught.exception.kind, "cycle")


class Updates(FlagCase):
    def test_segment_that_is_put_later(self):
        self.put(flag("a", rule("vip", members("vip"))))
        self.assertEqual(self.reason("a"), "fallthrough")
        self.segment("vip", included=["u"])
        self.assertEqual(self.reason("a"), "rule:vip")
        self.flags.call("delete_segment", key="vip")
        self.assertEqual(self.reason("a"), "fallthrough")
        self.segment("vip", included=["u"])
        self.assertEqual(self.reason("a"), "rule:vip")

    def test_segment_that_refers_to_another_since_an_update(self):
        self.segment("vip")
        self.put(flag("a", rule("vip", members("vip"))))
        self.assertEqual(self.reason("a"), "fallthrough")
        self.segment("vip", rules=[{"clauses": [members("staff")]}])
        self.assertEqual(self.reason("a"), "fallthrough")
        self.segment("staff", included=["u"])
        self.assertEqual(self.reason("a"), "rule:vip")

    def test_attribute_that_a_segment_looks_at_since_an_update(self):
        self.segment("vip")
        self.put(flag("a", rule("vip", members("vip"))))
        self.reason("a", country="de")
        self.segment("vip", rules=[{"clauses": [clause("country", "de")]}])
        self.assertEqual(self.reason("a", country="de"), "rule:vip")
        self.assertEqual(self.reason("a", country="fr"), "fallthrough")

    def test_flag_that_is_put_again(self):
        self.put(flag("a", rule("x", clause("plan", "pro"))))
        self.assertEqual(self.reason("a", plan="pro"), "rule:x")
        self.flags.call("delete_flag", key="a")
        self.assertEqual(self.put(flag("a", rule("y", clause("plan", "free")))), [1])
        self.assertEqual(self.reason("a", plan="pro"), "fallthrough")
        self.assertEqual(self.reason("a", plan="free"), "rule:y")

    def test_import_with_the_same_versions(self):
        self.put(flag("a", rule("x", clause("plan", "pro"))))
        self.segment("s")
        self.assertEqual(self.reason("a", plan="pro"), "rule:x")
        new = [flag("a", rule("z", clause("country", "de")), version=1)]
        self.flags.call("import", flags=new, segments=[])
        self.assertEqual(self.reason("a", plan="pro"), "fallthrough")
        self.assertEqual(self.reason("a", plan="pro", country="de"), "rule:z")

    def test_prerequisite_of_a_prerequisite(self):
        always = rule("all", clause("none", 1, negate=True))
        self.put(flag("a", always), flag("b", always, requires=["a"]), flag("c", always, requires=["b"]))
        self.assertEqual(self.reason("c"), "rule:all")
        self.put(flag("a", on=False))
        self.assertEqual(self.reason("c"), "prerequisite:b")
        self.put(flag("a", always))
        self.assertEqual(self.reason("c"), "rule:all")
        self.flags.call("delete_flag", key="a")
        self.assertEqual([self.reason("b"), self.reason("c")], ["prerequisite:a", "prerequisite:b"])

    def test_segment_of_a_prerequisite(self):
        self.segment("vip", included=["u"])
        self.put(flag("a", rule("vip", members("vip"))), flag("b", requires=["a"]))
        self.assertEqual(self.reason("b"), "fallthrough")
        self.segment("vip", excluded=["u"])
        self.assertEqual(self.reason("b"), "prerequisite:a")

    def test_missing_prerequisite_that_is_put_later(self):
        self.put(flag("b", requires=["a"]), flag("c", requires=["b"], variations=["x", "y"]))
        self.assertEqual([self.reason("b"), self.reason("c")], ["prerequisite:a", "prerequisite:b"])
        self.put(flag("b", rule("r", clause("plan", "pro")), requires=["a"]), flag("a", rule("r", clause("plan", "pro"))))
        self.assertEqual(self.reason("c", plan="pro"), "fallthrough")
        self.assertEqual(self.reason("c", plan="free"), "prerequisite:b")


class Order(FlagCase):
    A = rule("a", clause("plan", "pro"), priority=100)
    B = rule("b", clause("plan", "pro"), priority=50)

    def test_rules_with_the_same_priority_after_a_patch(self):
        self.put(flag("f", self.A, self.B))
        self.assertEqual(self.reason("f", plan="pro"), "rule:b")
        self.flags.call("patch_rule", flag="f", rule="b", set={"priority": 100})
        self.assertEqual(self.reason("f", plan="pro"), "rule:a")

    def test_stored_order_stays(self):
        self.put(flag("f", self.A, self.B))
        self.reason("f", plan="pro")
        self.segment("s")
        self.assertEqual([one["id"] for one in self.flags.call("get_flag", key="f")["rules"]], ["a", "b"])
        self.assertEqual([one["id"] for one in self.flags.call("export")["flags"][0]["rules"]], ["a", "b"])

    def test_priority_zero_is_first(self):
        self.put(flag("f", self.B, {**self.A, "priority": 0}))
        self.assertEqual(self.reason("f", plan="pro"), "rule:a")

    def test_patch_to_zero_and_back_to_the_default(self):
        self.put(flag("f", self.A, {**self.B, "priority": 200}))
        self.assertEqual(self.flags.call("patch_rule", flag="f", rule="b", set={"priority": 0}), {"version": 2})
        self.assertEqual(self.flags.call("get_flag", key="f")["rules"][1]["priority"], 0)
        self.assertEqual(self.reason("f", plan="pro"), "rule:b")
        self.flags.call("patch_rule", flag="f", rule="b", set={"priority": None, "note": ""})
        self.assertEqual(self.flags.call("get_flag", key="f")["rules"][1], {**rule("b", clause("plan", "pro")), "note": ""})
        self.assertEqual(self.reason("f", plan="pro"), "rule:a")


class Contexts(FlagCase):
    def test_attribute_of_a_prerequisite(self):
        self.put(flag("a", rule("de", clause("country", "de"))), flag("b", requires=["a"]), flag("c", requires=["b"]))
        self.put(flag("b", requires=["a"], fallthrough={"variation": 1}))
        self.assertEqual(self.reason("b", country="de"), "fallthrough")
        self.assertEqual(self.reason("b", country="fr"), "prerequisite:a")
        self.assertEqual(self.reason("c", country="de"), "fallthrough")
        self.assertEqual(self.reason("c", country="fr"), "prerequisite:b")

    def test_attribute_of_a_rollout_in_fallthrough(self):
        half = [{"variation": 0, "weight": 50000}, {"variation": 1, "weight": 50000}]
        self.put(flag("a", fallthrough={"rollout": half, "by": "account"}))
        found = {self.result("a", account=f"acct-{index}")["variation"] for index in range(40)}
        self.assertEqual(found, {0, 1})

    def test_types_matter(self):
        self.put(flag("a", rule("one", clause("plan", 1)), rule("yes", clause("plan", "true")), rule("ab", clause("plan", "a,b"))))
        reasons = [self.reason("a", plan=plan) for plan in ("1", 1, True, "true", ["a", "b"], "a,b")]
        self.assertEqual(reasons, ["fallthrough", "rule:one", "fallthrough", "rule:yes", "fallthrough", "rule:ab"])

    def test_values_with_separators(self):
        self.put(flag("a", rule("r", clause("x", "1"), clause("y", "2|z=3", negate=True)), rule("s", clause("z", "3"))))
        self.assertEqual(self.reason("a", x="1", y="2|z=3", z="4"), "fallthrough")
        self.assertEqual(self.reason("a", x="1", y="2", z="3|z=4"), "rule:r")
        self.put(flag("b", rule("u", clause("x", "undefined"))))
        self.assertEqual([self.reason("b"), self.reason("b", x="undefined")], ["fallthrough", "rule:u"])


class Cache(FlagCase):
    def test_other_attributes_share_a_result(self):
        self.segment("s", rules=[{"clauses": [clause("country", "de")]}])
        self.put(flag("a", rule("r", members("s"))), flag("b", requires=["a"]))
        for page in range(5):
            self.result("b", country="de", page=page)
        self.assertEqual(self.flags.call("stats"), {"hits": 4, "misses": 1})
        self.result("b", country="fr", page=1)
        self.assertEqual(self.misses(), 2)

    def test_changes_of_others_drop_nothing(self):
        self.segment("s", included=["u"])
        self.put(flag("a", rule("r", members("s"))), flag("b", requires=["a"]), flag("other", rule("r", members("t"))))
        for name in ("a", "b", "other"):
            self.result(name)
        self.segment("t", included=["x"])
        self.put(flag("b", requires=["a"]), flag("new"))
        self.flags.call("delete_flag", key="new")
        self.result("a")
        self.assertEqual((self.hits(), self.misses()), (1, 3))
        self.segment("s", included=["x"])
        self.result("other")
        self.assertEqual((self.hits(), self.misses()), (1, 4))
        self.result("other")
        self.result("b")
        self.assertEqual((self.hits(), self.misses()), (2, 5))

    def test_former_dependency_drops_nothing(self):
        self.segment("s", included=["u"])
        self.segment("t", rules=[{"clauses": [members("s")]}])
        self.put(flag("a", rule("r", members("t"))))
        self.assertEqual(self.reason("a"), "rule:r")
        self.segment("t", included=["u"])
        self.assertEqual(self.reason("a"), "rule:r")
        self.segment("s")
        self.assertEqual(self.reason("a"), "rule:r")
        self.assertEqual(self.flags.call("stats"), {"hits": 1, "misses": 2})

    def test_missing_flags_are_not_counted(self):
        with self.assertRaises(lab.Raised) as caught:
            self.result("nope")
        self.assertEqual(caught.exception.kind, "not_found")
        self.assertEqual(self.flags.call("stats"), {"hits": 0, "misses": 0})


class Windows(FlagCase):
    def clock(self, at):
        return self.flags.call("clock", at=at)

    def test_limits_of_a_window(self):
        self.put(flag("a", rule("r", **{"from": 10}, until=20), rule("s", until=0)))
        found = []
        for at in (0, 9, 10, 19, 20):
            self.assertEqual(self.clock(at), {"at": at})
            found.append(self.reason("a"))
        self.assertEqual(found, ["fallthrough", "fallthrough", "rule:r", "rule:r", "fallthrough"])

    def test_time_does_not_go_back(self):
        self.clock(5)
        self.clock(5)
        for at in (4, 5.5, "6", None):
            with self.assertRaises(lab.Raised) as caught:
                self.clock(at)
            self.assertEqual(caught.exception.kind, "bad_request")

    def test_windows_in_segments_and_prerequisites(self):
        self.segment("inner", rules=[{"clauses": [], "until": 30}])
        self.segment("s", rules=[{"clauses": [members("inner")], "from": 10}])
        self.put(flag("a", rule("r", members("s"))), flag("b", requires=["a"]))
        found = []
        for at in (9, 10, 29, 30):
            self.clock(at)
            found.append(self.reason("b"))
        self.assertEqual(found, ["prerequisite:a", "fallthrough", "fallthrough", "prerequisite:a"])
        self.assertEqual(self.misses(), 3)

    def test_window_that_is_patched(self):
        self.put(flag("a", rule("r")))
        self.flags.call("patch_rule", flag="a", rule="r", set={"until": 0})
        self.assertEqual(self.reason("a"), "fallthrough")
        self.flags.call("patch_rule", flag="a", rule="r", set={"until": None})
        self.assertEqual(self.reason("a"), "rule:r")

    def test_results_are_shared_across_windows(self):
        self.put(flag("a", rule("r", **{"from": 10}, until=20), rule("s", **{"from": 15}, until=20), rule("t", **{"from": None}, until=None)))
        hits = []
        for at in (1, 9, 10, 14, 15, 19, 20, 99):
            self.clock(at)
            self.reason("a")
            hits.append(self.hits())
        self.assertEqual(hits, [0, 1, 1, 2, 2, 3, 4, 5])

    def test_windows_of_others_make_no_difference(self):
        self.put(flag("a"), flag("b", rule("r", **{"from": 10})), flag("c", requires=["a"]))
        self.segment("s", rules=[{"clauses": [], "from": 10}])
        self.reason("c")
        self.clock(10)
        self.reason("c")
        self.assertEqual(self.hits(), 1)


def put_flag(*arguments, **more):
    return {"op": "put_flag", "flag": flag(*arguments, **more)}


def put_segment(key, **more):
    return {"op": "put_segment", "segment": {"key": key, **more}}


def delete_flag(key):
    return {"op": "delete_flag", "key": key}


def delete_segment(key):
    return {"op": "delete_segment", "key": key}


def patch(name, of, **values):
    return {"op": "patch_rule", "flag": name, "rule": of, "set": values}


class ReleaseCase(FlagCase):
    def apply(self, *changes):
        return self.flags.call("apply", changes=list(changes))

    def refused(self, kind, op, **arguments):
        with self.assertRaises(lab.Raised) as caught:
            self.flags.call(op, **arguments)
        self.assertEqual(caught.exception.kind, kind)

    def revision(self):
        return self.flags.call("revision")["revision"]

    def exported(self, kind="flags"):
        return [(one["key"], one["version"]) for one in self.flags.call("export")[kind]]

    def versions(self, revision, flags=None, segments=None):
        return {"revision": revision, "versions": {"flags": flags or {}, "segments": segments or {}}}


class Releases(ReleaseCase):
    def test_requests_make_revisions(self):
        self.assertEqual(self.revision(), 0)
        self.put(flag("a", rule("r")), flag("a", rule("r")))
        self.flags.call("delete_flag", key="none")
        self.flags.call("patch_rule", flag="a", rule="r", set={})
        self.refused("not_found", "patch_rule", flag="a", rule="x", set={})
        self.segment("s")
        self.flags.call("delete_segment", key="s")
        self.assertEqual(self.revision(), 5)
        self.flags.call("import", flags=[], segments=[])
        self.assertEqual(self.revision(), 6)

    def test_changes_are_one(self):
        self.put(flag("a", rule("r")))
        done = self.apply(put_segment("s"), put_flag("b", requires=["a"]), patch("a", "r", priority=7), put_flag("c"), delete_flag("c"))
        self.assertEqual(done, self.versions(2, {"a": 2, "b": 1}, {"s": 1}))
        self.assertEqual(self.flags.call("get_flag", key="a")["rules"][0]["priority"], 7)
        self.assertEqual(self.exported(), [("a", 2), ("b", 1)])
        self.assertEqual(self.apply(delete_flag("b"), delete_segment("s"), delete_flag("none")), self.versions(3, {"b": None}, {"s": None}))

    def test_refused_change_refuses_all(self):
        self.put(flag("a"))
        self.refused("not_found", "apply", changes=[put_flag("b"), delete_flag("a"), patch("a", "r")])
        self.refused("bad_request", "apply", changes=[put_flag("b"), {"op": "import"}])
        self.refused("bad_request", "apply", changes=[put_flag("b"), {"op": "put_segment"}])
        self.refused("bad_request", "apply")
        self.refused("cycle", "apply", changes=[put_flag("b", requires=["c"]), put_flag("c", requires=["b"])])
        self.assertEqual((self.revision(), self.exported()), (1, [("a", 1)]))

    def test_cycles_on_the_way_are_fine(self):
        self.put(flag("a"), flag("b", requires=["a"]))
        done = self.apply(put_flag("a", requires=["b"]), put_flag("b"))
        self.assertEqual(done["versions"]["flags"], {"a": 2, "b": 2})
        self.segment("s")
        self.segment("t", rules=[{"clauses": [members("s")]}])
        self.apply(put_segment("s", rules=[{"clauses": [members("t")]}]), put_segment("t"))
        self.refused("cycle", "apply", changes=[put_segment("t", rules=[{"clauses": [members("s")]}])])

    def test_versions_grow_once_and_only_with_the_content(self):
        self.put(flag("a", rule("r")), flag("b"), flag("c"))
        self.put(flag("b"), flag("c"))
        same = {name: value for name, value in reversed(flag("b").items()) if name not in ("rules", "prerequisites")}
        done = self.apply(
            patch("a", "r", priority=1), patch("a", "r", priority=2), delete_flag("c"), put_flag("c", on=False),
            put_flag("b", rule("x")), {"op": "put_flag", "flag": {**same, "version": 40}},
        )
        self.assertEqual(done, self.versions(6, {"a": 2, "c": 3}))
        self.assertEqual(self.exported(), [("a", 2), ("b", 2), ("c", 3)])
        self.assertEqual(self.result("b")["version"], 2)

    def test_no_change_is_no_revision(self):
        self.put(flag("a", rule("r")))
        self.segment("s")
        done = self.apply(put_flag("b"), delete_flag("b"), patch("a", "r", priority=5), patch("a", "r", priority=None), put_segment("s", rules=[]))
        self.assertEqual(done, self.versions(2))
        self.assertEqual(self.apply(), self.versions(2))
        self.assertEqual(self.revision(), 2)

    def test_order_of_lists_matters(self):
        self.put(flag("a", rule("r"), rule("s")))
        self.assertEqual(self.apply(put_flag("a", rule("s"), rule("r"))), self.versions(2, {"a": 2}))
        self.assertEqual(self.reason("a"), "rule:s")

    def test_revert_restores_content_with_new_versions(self):
        self.put(flag("a", rule("r")), flag("b"), flag("c"), flag("d"))
        self.segment("s", included=["u"])
        self.put(flag("a", on=False))
        self.apply(delete_flag("b"), put_segment("s"), delete_flag("d"), put_flag("e"))
        self.assertEqual(self.reason("a"), "off")
        done = self.flags.call("revert", revision=5)
        self.assertEqual(done, self.versions(8, {"a": 3, "b": 1, "d": 1, "e": None}, {"s": 3}))
        self.assertEqual(self.reason("a"), "rule:r")
        self.assertEqual(self.exported(), [("a", 3), ("c", 1), ("b", 1), ("d", 1)])
        self.assertEqual(self.flags.call("revert", revision=7)["versions"]["flags"], {"a": 4, "b": None, "d": None, "e": 1})
        self.assertEqual(self.flags.call("revert", revision=9), self.versions(9))

    def test_revert_to_the_start_and_to_nothing(self):
        self.put(flag("a"))
        self.assertEqual(self.flags.call("revert", revision=0), self.versions(2, {"a": None}))
        for revision in (3, -1, "1", 0.5, None):
            self.refused("not_found", "revert", revision=revision)

    def test_revert_of_an_import(self):
        self.put(flag("a", rule("r")))
        self.flags.call("import", flags=[{**flag("a"), "version": 9}], segments=[{"key": "s"}])
        self.assertEqual(self.flags.call("revert", revision=1), self.versions(3, {"a": 10}, {"s": None}))
        self.assertEqual(self.result("a"), {"variation": 1, "value": "new", "reason": "rule:r", "version": 10})


class ReleaseCache(ReleaseCase):
    def filled(self):
        self.segment("s", rules=[{"clauses": [clause("plan", "pro")]}])
        self.put(flag("a", rule("r", members("s"))), flag("b", requires=["a"]), flag("c"), flag("d", rule("r", members("t"))))
        for name in "abcd":
            self.reason(name, plan="pro")

    def hit(self, *names):
        hits = []
        for name in names:
            before = self.hits()
            self.reason(name, plan="pro")
            hits.append(self.hits() - before)
        return hits

    def test_apply_drops_what_depends_on_changes(self):
        self.filled()
        self.apply(put_segment("s", rules=[{"clauses": [clause("plan", "free")]}]), put_flag("c"), put_flag("new"))
        self.assertEqual(self.reason("b", plan="pro"), "prerequisite:a")
        self.assertEqual(self.hit("a", "b", "c", "d"), [0, 1, 1, 1])
        self.apply(put_segment("t", included=["u"]))
        self.assertEqual(self.hit("a", "b", "c", "d"), [1, 1, 1, 0])

    def test_unchanged_content_drops_nothing(self):
        self.filled()
        self.apply(put_segment("s"), put_segment("t"), delete_segment("t"), delete_flag("c"), put_flag("c"), put_segment("s", rules=[{"clauses": [clause("plan", "pro")]}]))
        self.assertEqual(self.hit("a", "b", "c", "d"), [1, 1, 1, 1])
        self.refused("cycle", "apply", changes=[put_flag("a", requires=["b"])])
        self.assertEqual(self.hit("a", "b", "c", "d"), [1, 1, 1, 1])

    def test_revert_drops_what_depends_on_changes(self):
        self.filled()
        before = self.revision()
        self.apply(put_flag("a", rule("x", priority=3)), put_segment("t", included=["u"]))
        self.assertEqual([self.reason("b", plan="pro"), self.reason("d")], ["fallthrough", "rule:r"])
        self.put(flag("c", on=False))
        self.reason("c", plan="pro")
        self.flags.call("revert", revision=before + 1)
        self.assertEqual(self.hit("a", "b", "c", "d"), [0, 1, 0, 1])
        self.flags.call("revert", revision=before)
        self.assertEqual(self.hit("a", "b", "c", "d"), [0, 0, 1, 0])

    def test_preview_has_no_effect(self):
        self.filled()
        context = {"key": "u", "plan": "pro"}
        stats, revision = self.flags.call("stats"), self.revision()
        changes = [patch("a", "r", priority=3), put_segment("s", excluded=["u"]), put_flag("a", on=False)]
        self.assertEqual(
            self.flags.call("preview", changes=changes, flag="a", context=context),
            {"variation": 0, "value": "old", "reason": "off", "version": 2},
        )
        self.assertEqual(self.flags.call("preview", changes=changes[1:2], flag="b", context=context)["reason"], "prerequisite:a")
        self.assertEqual(self.flags.call("preview", changes=[put_flag("c")], flag="c", context=context)["version"], 1)
        self.refused("not_found", "preview", changes=[delete_flag("a")], flag="a", context=context)
        self.refused("bad_request", "preview", changes=[], flag="a", context={})
        self.refused("cycle", "preview", changes=[put_flag("a", requires=["a"])], flag="c", context=context)
        self.assertEqual((self.flags.call("stats"), self.revision()), (stats, revision))
        self.assertEqual(self.hit("a", "b", "c", "d"), [1, 1, 1, 1])
        self.assertEqual(self.reason("a", plan="pro"), "rule:r")

    def test_preview_is_at_the_present_time(self):
        self.flags.call("clock", at=50)
        changes = [put_flag("a", rule("r", **{"from": 50}))]
        self.assertEqual(self.flags.call("preview", changes=changes, flag="a", context={"key": "u"})["reason"], "rule:r")
