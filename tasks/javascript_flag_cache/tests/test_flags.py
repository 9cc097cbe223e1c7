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
