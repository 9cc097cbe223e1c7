import hashlib
import json

import lab

CASES = json.loads(lab.data("cases.json"))


def release(version, requires=None, constrains=None, **more):
    found = {"version": version, "source": f"s-{version}", "cost": 1, **more}
    if requires:
        found["requires"] = requires
    if constrains:
        found["constrains"] = constrains
    return found


def versions(count):
    return [f"1.{minor}.0" for minor in range(count)]


def print_of(package, version, source, required, toolchain="t"):
    content = [package, version, source, toolchain, sorted(required.items())]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Base(lab.Case):
    def plan(self, command, catalog, requires, *args, lock=None, overrides=None, status=0, state=None, running=None, seconds=10):
        project = {"toolchain": "t", "requires": requires}
        if overrides is not None:
            project["overrides"] = overrides
        self.write("project.json", json.dumps(project))
        self.write("catalog.json", json.dumps({"packages": catalog}))
        arguments = [command, "project.json", "catalog.json", *args]
        if running is not None:
            state = state or {}
        for name, content in (("lock", {"packages": lock}), ("state", {"built": state})):
            if list(content.values()) != [None]:
                if name == "state" and running is not None:
                    content["running"] = running
                self.write(name + ".json", json.dumps(content))
                arguments += ["--" + name, name + ".json"]
        done = self.program("python3", "plan.py", *arguments, seconds=seconds)
        self.assertEqual(done.status, status, done)
        return done.json()

    def selects(self, expected, catalog, requires, *args, **more):
        self.assertEqual(self.plan("resolve", catalog, requires, *args, **more), {"packages": expected})

    def conflicts(self, requirements, blocked, catalog, requires, *args, **more):
        found = self.plan("resolve", catalog, requires, *args, status=1, **more)
        blocked = [{"package": package, "version": version, "violates": ranges} for package, version, ranges in blocked]
        self.assertEqual(found, {"conflict": {"requirements": requirements, "blocked": blocked}})


class Selection(Base):
    def test_goes_back_to_an_older_release(self):
        done = self.program("python3", "plan.py", "resolve", "examples/project.json", "examples/catalog.json")
        self.assertEqual(done.json(), {"packages": {"app": "2.0.0", "net": "1.4.0"}})

    def test_earlier_packages_of_the_list_get_newer_releases(self):
        catalog = {
            "a": [release("1.0.0"), release("2.0.0", {}, {"b": "<2"})],
            "b": [release("1.0.0"), release("2.0.0", {}, {"a": "<2"})],
        }
        self.selects({"a": "2.0.0", "b": "1.0.0"}, catalog, {"a": "*", "b": "*"})
        self.selects({"a": "1.0.0", "b": "2.0.0"}, catalog, {"b": "*", "a": "*"})
        # mid is decided before a gets into the list, which is behind b then.
        catalog["top"] = [release("1.0.0", {"mid": "*", "b": "*"})]
        catalog["mid"] = [release("1.0.0", {"a": "*"})]
        self.selects({"top": "1.0.0", "mid": "1.0.0", "a": "1.0.0", "b": "2.0.0"}, catalog, {"top": "*"})

    def test_locked_releases_come_first(self):
        catalog = {
            "a": [release("1.0.0"), release("1.1.0"), release("1.2.0", {"b": "^2"})],
            "b": [release("1.0.0"), release("2.0.0"), release("2.1.0")],
        }
        requires = {"a": "^1", "b": "*"}
        self.selects({"a": "1.0.0", "b": "2.0.0"}, catalog, requires, lock={"a": "1.0.0", "b": "2.0.0", "z": "1.0.0"})
        self.selects({"a": "1.2.0", "b": "2.0.0"}, catalog, requires, "--upgrade", "a", lock={"a": "1.0.0", "b": "2.0.0"})
        self.selects({"a": "1.2.0", "b": "2.1.0"}, catalog, requires, lock={"a": "1.0.9", "b": "1.0.0"})
        self.selects({"a": "1.2.0", "b": "2.1.0"}, catalog, {"a": ">1.1", "b": "*"}, lock={"a": "1.0.0", "b": "3.0.0"})

    def test_yanked_releases_need_a_lock(self):
        catalog = {"a": [release("1.0.0"), release("1.1.0", yanked=True), release("1.2.0")]}
        self.selects({"a": "1.0.0"}, catalog, {"a": "<1.2"})
        self.selects({"a": "1.1.0"}, catalog, {"a": "*"}, lock={"a": "1.1.0"})
        self.selects({"a": "1.2.0"}, catalog, {"a": "*"}, "--upgrade", "a", lock={"a": "1.1.0"})

    def test_constrains_do_not_select(self):
        catalog = {
            "a": [release("1.0.0", {"c": "*"}), release("2.0.0", {"c": "*"}, {"b": "<2", "x": "=9.0.0", "c": "<2"})],
            "b": [release("1.0.0"), release("2.0.0", {}, {"a": "^1"})],
            "c": [release("1.0.0", {"b": "*"}), release("2.0.0")],
        }
        self.selects({"a": "2.0.0", "b": "1.0.0", "c": "1.0.0"}, catalog, {"a": "*"})
        self.selects({"b": "2.0.0", "a": "1.0.0", "c": "2.0.0"}, catalog, {"b": "*", "a": "*"})

    def test_overrides_replace_all_ranges(self):
        catalog = {
            "a": [release("1.0.0", {"b": "^2"}, {"c": "<1"}), release("1.1.0", {"b": "^2", "a": "<1"})],
            "b": [release("1.0.0"), release("1.5.0"), release("2.0.0")],
            "c": [release("1.0.0"), release("1.1.0-rc.1")],
        }
        overrides = {"b": "<2", "c": "1.1.0-rc.1", "a": "*", "z": "*"}
        self.selects({"a": "1.1.0", "b": "1.5.0"}, catalog, {"a": "1.0.0"}, overrides=overrides)
        self.selects({"a": "1.1.0", "b": "1.5.0", "c": "1.1.0-rc.1"}, catalog, {"a": "*", "c": "^7"}, overrides=overrides)
        self.selects({"a": "1.0.0", "b": "2.0.0"}, catalog, {"a": "*"}, overrides={})

    def test_packages_that_do_not_exist_and_cycles(self):
        catalog = {
            "a": [release("1.0.0", {"b": "*"}), release("1.1.0", {"ghost": "*"}), release("1.2.0", {"a": "<1.2"})],
            "b": [release("1.0.0", {"a": "^1"}), release("2.0.0", {"a": "^2"})],
        }
        self.selects({"a": "1.0.0", "b": "1.0.0"}, catalog, {"a": "*"})
        self.selects({}, catalog, {})

    def test_selections_of_mixed_catalogs(self):
        for case in CASES["selections"]:
            with self.subTest(project=case["project"]):
                overrides = case["project"].get("overrides")
                found = self.plan(
                    "resolve", case["catalog"]["packages"], case["project"]["requires"],
                    lock=case["lock"]["packages"], overrides=overrides,
                )
                self.assertEqual(found, case["result"])


class Large(Base):
    def wide(self, first, last):
        catalog = {f"f{number:02}": [release(version) for version in versions(20)] for number in range(97)}
        requires = {"base": "*", **{package: "*" for package in catalog}, "last": "*"}
        return {**catalog, "base": first, "last": last}, requires

    def check(self, first, last, expected):
        catalog, requires = self.wide(first, last)
        found = self.plan("resolve", catalog, requires, seconds=8)
        self.assertEqual(set(found), {"packages"})
        selection = found["packages"]
        self.assertEqual({package: version for package, version in selection.items() if package[0] != "f"}, expected)
        self.assertTrue(all(selection[package] == "1.19.0" for package in requires if package[0] == "f"))

    def test_late_requirement_of_an_early_package(self):
        self.check(
            [release(version) for version in versions(20)],
            [release(version, {"base": "<1.2"}) for version in versions(20)],
            {"base": "1.1.0", "last": "1.19.0"},
        )

    def test_late_packages_that_early_ones_exclude(self):
        self.check(
            [release(version, {}, {"last": "<1" if minor else "<1.3"}) for minor, version in enumerate(versions(20))],
            [release(version) for version in versions(20)],
            {"base": "1.0.0", "last": "1.2.0"},
        )

    def test_late_packages_that_only_early_ones_require(self):
        catalog, requires = self.wide(
            [release(version, {"one": "*"} if minor else {}) for minor, version in enumerate(versions(20))],
            [release(version) for version in versions(20)],
        )
        # `one` comes after all others; its only choice requires a package without releases.
        catalog["one"] = [release("1.0.0", {"ghost": "*"})]
        selection = self.plan("resolve", catalog, requires, seconds=8)["packages"]
        self.assertEqual((selection["base"], selection["last"]), ("1.0.0", "1.19.0"))
        self.assertEqual(len(selection), 99)

    def test_several_packages_exclude_one_together(self):
        catalog, requires = self.wide([], [])
        for package in ("base", "f40", "f80"):
            catalog[package] = [release(version) for version in versions(20)]
        # Each release of the last package is excluded by another of the three.
        needs = [{"f80": "<1.18"}, {"f40": "<1.18"}, {"base": "<1.18", "f80": "<1.19"}]
        catalog["last"] = [release(f"1.{minor}.0", {}, need) for minor, need in enumerate(needs)]
        catalog["last"] += [release("0.1.0", {}, {"base": "<1.1", "f40": "<1.1", "f80": "<1.1"})]
        selection = self.plan("resolve", catalog, requires, seconds=8)["packages"]
        self.assertEqual({package: selection[package] for package in ("base", "f40", "f80", "last")},
                         {"base": "1.19.0", "f40": "1.19.0", "f80": "1.17.0", "last": "1.0.0"})
        # Without the choices of f80 and f40, only those of base are left.
        catalog["f80"], catalog["f40"] = [release("1.19.0")], [release("1.19.0")]
        catalog["last"][2] = release("1.2.0", {}, {"base": "<1.18"})
        selection = self.plan("resolve", catalog, requires, seconds=8)["packages"]
        self.assertEqual({package: selection[package] for package in ("base", "f40", "f80", "last")},
                         {"base": "1.17.0", "f40": "1.19.0", "f80": "1.19.0", "last": "1.2.0"})

    def test_large_conflict_is_explained(self):
        catalog, requires = self.wide(
            [release(version) for version in versions(20)],
            [release(version, {"base": "^2"}) for version in versions(20)],
        )
        blocked = [("base", "1.19.0", ["last 1.19.0 requires base ^2"])]
        self.conflicts(["last *"], blocked, catalog, requires, seconds=9)

    def test_long_chain(self):
        count = 3000
        catalog = {f"p{number}": [release("1.0.0", {f"p{number + 1}": "^1"})] for number in range(count)}
        catalog[f"p{count}"] = [release("1.0.0")]
        found = self.plan("build", catalog, {"p0": "*"}, "--jobs", "2", seconds=9)
        self.assertEqual(found["end"], count + 1)
        self.assertEqual([entry["package"] for entry in found["schedule"]], [f"p{n}" for n in range(count, -1, -1)])


class Conflicts(Base):
    def test_requirements_and_blocked_packages(self):
        catalog = {
            "a": [release("1.0.0", {"c": "^1"})],
            "b": [release("1.0.0", {"c": "^2", "d": "*"}), release("1.1.0", {"c": "^2.1"})],
            "c": [release("1.0.0"), release("2.0.0"), release("2.1.0")],
            "d": [release("1.0.0")],
        }
        blocked = [("c", "2.1.0", ["a 1.0.0 requires c ^1"])]
        requires = {"d": "*", "a": "^1.0", "b": "*", "c": ">=1"}
        self.conflicts(["a ^1.0", "b *"], blocked, catalog, requires)
        found = self.plan("build", catalog, requires, status=1)
        self.assertEqual(found["conflict"]["blocked"][0]["version"], "2.1.0")

    def test_requirements_are_left_out_in_the_order_of_the_project(self):
        catalog = {
            "a": [release("1.0.0", {}, {"c": "<2"})],
            "b": [release("1.0.0", {}, {"c": "<2"})],
            "c": [release("1.0.0"), release("2.0.0")],
        }
        blocked = [("c", "2.0.0", ["b 1.0.0 constrains c <2"])]
        self.conflicts(["b *", "c ^2"], blocked, catalog, {"a": "*", "b": "*", "c": "^2"})
        blocked = [("c", "2.0.0", ["a 1.0.0 constrains c <2"])]
        self.conflicts(["c ^2", "a *"], blocked, catalog, {"b": "*", "c": "^2", "a": "*"})

    def test_ranges_of_all_sources(self):
        catalog = {
            "a": [release("1.0.0", {"c": "=1.0.0", "b": "*"}, {"c": "<1.5"})],
            "b": [release("1.0.0", {"c": "=1.1.0  ||  =1.2.0"})],
            "c": [release("1.0.0"), release("1.1.0"), release("2.0.0-rc.1"), release("3.0.0", yanked=True)],
        }
        sources = ["project: c ^1.1", "a 1.0.0 requires c =1.0.0", "a 1.0.0 constrains c <1.5", "b 1.0.0 requires c =1.1.0  ||  =1.2.0"]
        self.conflicts(["a *"], [("c", "2.0.0-rc.1", sources[1:])], catalog, {"c": "^1.1", "a": "*"})
        catalog["b"][0]["requires"] = {}
        self.conflicts(["c ^1.1", "a *"], [("c", "2.0.0-rc.1", sources[:3])], catalog, {"c": "^1.1", "a": "*"})
        # A locked release comes first, also if it was withdrawn.
        blocked = [("c", "3.0.0", sources[:3])]
        self.conflicts(["c ^1.1", "a *"], blocked, catalog, {"c": "^1.1", "a": "*"}, lock={"c": "3.0.0"})

    def test_override_in_a_conflict(self):
        catalog = {
            "a": [release("1.0.0", {"b": "^1"})],
            "b": [release("1.0.0"), release("1.1.0", {"c": "*"})],
            "c": [release("1.0.0", {}, {"a": "^2"})],
        }
        blocked = [
            ("a", "1.0.0", ["c 1.0.0 constrains a ^2"]),
            ("b", "1.0.0", ["override: b =1.1.0"]),
        ]
        self.conflicts(["a *"], blocked, catalog, {"b": "^7", "a": "*"}, overrides={"b": "=1.1.0"})
        catalog["b"].pop(0)
        self.conflicts(["a *"], blocked[:1], catalog, {"b": "^7", "a": "*"}, overrides={"b": "=1.1.0"})

    def test_nothing_is_blocked(self):
        catalog = {"a": [release("1.0.0", {"ghost": "*"})], "b": [release("1.0.0", yanked=True)]}
        self.conflicts(["a *"], [], catalog, {"a": "*"})
        self.conflicts(["b *"], [], catalog, {"b": "*"})
        self.conflicts(["other ^1"], [], catalog, {"a": "*", "other": "^1"})

    def test_conflicts_of_mixed_catalogs(self):
        for case in CASES["conflicts"]:
            with self.subTest(project=case["project"]):
                found = self.plan(
                    "resolve", case["catalog"]["packages"], case["project"]["requires"], status=1,
                    lock=case["lock"]["packages"], overrides=case["project"].get("overrides"),
                )
                self.assertEqual(found, case["result"])


class Build(Base):
    def build(self, packages, *args, state=None, status=0):
        """Plans a build of packages `{name: (cost, required, interface)}`."""
        catalog = {}
        for name, (cost, required, interface) in packages.items():
            more = {"interface": interface} if interface is not None else {}
            catalog[name] = [release("1.0.0", {other: "*" for other in required.split()}, cost=cost, **more)]
        return self.plan("build", catalog, {name: "*" for name in packages}, *args, state=state, status=status)

    def prints(self, packages, toolchain="t"):
        """Returns the state in which packages `{name: (source, required, interface)}` are built."""
        found = {}
        for name, (source, required, _) in packages.items():
            digests = {other: packages[other][2] or found[other]["fingerprint"] for other in required.split()}
            fingerprint = print_of(name, "1.0.0", source, digests, toolchain)
            found[name] = {"version": "1.0.0", "fingerprint": fingerprint}
        return found

    def started(self, plan):
        return [(entry["start"], entry["worker"], entry["package"]) for entry in plan["schedule"]]

    chain = {"a": (1, "", None), "b": (2, "a", "ib"), "c": (3, "b", None), "d": (4, "c", None)}

    def state(self, toolchain="t", **sources):
        packages = {
            name: (sources.get(name, "s-1.0.0"), required, interface)
            for name, (_, required, interface) in self.chain.items()
        }
        return self.prints(packages, toolchain)

    def test_everything_and_nothing(self):
        plan = self.build(self.chain)
        self.assertEqual(plan["actions"], {"a": "build", "b": "build", "c": "build", "d": "build"})
        self.assertEqual(plan["schedule"][1], {"package": "b", "worker": 1, "start": 1, "end": 3})
        self.assertEqual(plan["end"], 10)
        plan = self.build(self.chain, state=self.state())
        self.assertEqual(plan, {"actions": {"a": "keep", "b": "keep", "c": "keep", "d": "keep"}, "schedule": [], "end": 0})

    def test_changes_stop_at_an_unchanged_interface(self):
        plan = self.build(self.chain, state=self.state(a="old"))
        self.assertEqual(plan["actions"], {"a": "build", "b": "build", "c": "keep", "d": "keep"})
        plan = self.build(self.chain, state=self.state(c="old"))
        self.assertEqual(plan["actions"], {"a": "keep", "b": "keep", "c": "build", "d": "build"})
        plan = self.build({**self.chain, "b": (2, "a", "new")}, state=self.state())
        self.assertEqual(plan["actions"], {"a": "keep", "b": "keep", "c": "build", "d": "build"})
        plan = self.build({**self.chain, "b": (2, "a", None)}, state=self.state())
        self.assertEqual(plan["actions"], {"a": "keep", "b": "keep", "c": "build", "d": "build"})
        plan = self.build(self.chain, state=self.state("other"))
        self.assertEqual(set(plan["actions"].values()), {"build"})

    def test_packages_that_are_not_selected_are_removed(self):
        state = {**self.state(), "old": {"version": "1.0.0", "fingerprint": "x"}}
        del state["d"]
        plan = self.build(self.chain, state=state)
        self.assertEqual(plan["actions"], {"a": "keep", "b": "keep", "c": "keep", "d": "build", "old": "remove"})
        self.assertEqual(self.started(plan), [(0, 1, "d")])

    def test_builds_wait_across_kept_packages(self):
        plan = self.build(self.chain, "--jobs", "3", state=self.state(a="old", d="old"))
        # b, which isn't built again, would be enough for c.
        self.assertEqual(plan["actions"], {"a": "build", "b": "build", "c": "keep", "d": "build"})
        self.assertEqual(self.started(plan), [(0, 1, "a"), (1, 1, "b"), (3, 1, "d")])
        self.assertEqual(plan["end"], 7)

    def test_longest_chain_goes_first(self):
        packages = {
            "a": (5, "", None), "b": (2, "", None), "c": (2, "b", None), "d": (3, "c", None), "e": (1, "", None),
            "f": (6, "a d", None), "g": (1, "", None),
        }
        plan = self.build(packages, "--jobs", "2")
        expected = [(0, 1, "b"), (0, 2, "a"), (2, 1, "c"), (4, 1, "d"), (5, 2, "e"), (6, 2, "g"), (7, 1, "f")]
        self.assertEqual(self.started(plan), expected)
        self.assertEqual(plan["end"], 13)
        self.assertEqual([entry[2] for entry in self.started(self.build(packages))], ["b", "a", "c", "d", "f", "e", "g"])

    def test_ties_go_by_name_and_worker(self):
        packages = {
            "z": (2, "", None), "b": (3, "", None), "B": (3, "", None), "m": (2, "", None), "n": (1, "m z", None),
            "k": (1, "b", None), "é": (1, "B", None), "l": (1, "b", None),
        }
        plan = self.build(packages, "--jobs", "3")
        expected = [
            (0, 1, "B"), (0, 2, "b"), (0, 3, "m"), (2, 3, "z"), (3, 1, "k"), (3, 2, "l"), (4, 1, "n"), (4, 2, "é"),
        ]
        self.assertEqual(self.started(plan), expected)

    def test_cycles(self):
        self.assertEqual(self.build({"a": (1, "b", None), "b": (1, "a", "i")}, status=1), {"cycle": ["a", "b"]})
        packages = {
            "a": (1, "c", None), "b": (1, "a", None), "c": (1, "b", None), "x": (1, "z a", None), "z": (1, "y", None),
            "y": (1, "x", None), "k": (1, "x q", None), "q": (1, "r", None), "r": (1, "k", None),
        }
        self.assertEqual(self.build(packages, status=1), {"cycle": ["a", "c", "b"]})
        packages["b"] = (1, "d", None)
        packages["d"] = (1, "a c", None)
        self.assertEqual(self.build(packages, status=1), {"cycle": ["b", "d", "c"]})
        packages["y"] = (1, "x y", None)
        self.assertEqual(self.build(packages, status=1), {"cycle": ["y"]})

    def test_constrains_make_no_cycle(self):
        catalog = {"a": [release("1.0.0", {"b": "*"})], "b": [release("1.0.0", {}, {"a": "^1"})]}
        plan = self.plan("build", catalog, {"a": "*"})
        self.assertEqual(self.started(plan), [(0, 1, "b"), (1, 1, "a")])


class Tools(Base):
    def test_tools_are_selected_behind_requirements(self):
        catalog = {
            "a": [release("1.0.0", {"x": "*"}, tools={"gen": "*", "x": "<2"}), release("2.0.0", {"x": "*"}, tools={"x": "<1"})],
            "x": [release("1.0.0", {}, {"gen": "<2"}), release("2.0.0")],
            "gen": [release("1.0.0", tools={"lib": "*"}), release("2.0.0")],
            "lib": [release("1.0.0")],
        }
        self.selects({"a": "1.0.0", "x": "1.0.0", "gen": "1.0.0", "lib": "1.0.0"}, catalog, {"a": "*"})
        # b is decided before gen, which is the tool of an earlier release.
        catalog = {
            "a": [release("1.0.0", {"b": "*"}, tools={"gen": "*"})],
            "b": [release("1.0.0"), release("2.0.0", {}, {"gen": "<2"})],
            "gen": [release("1.0.0"), release("2.0.0", {}, {"b": "<2"})],
        }
        self.selects({"a": "1.0.0", "b": "2.0.0", "gen": "1.0.0"}, catalog, {"a": "*"})
        self.selects({"a": "1.0.0", "b": "1.0.0", "gen": "2.0.0"}, catalog, {"gen": "*", "a": "*"})

    def test_undone_choices_take_their_tools_with_them(self):
        catalog = {
            "a": [release("2.0.0", tools={"gen": "^1", "x": "*"}), release("1.0.0")],
            "b": [release("1.0.0", {"gen": "^2"})],
            "gen": [release("1.0.0"), release("2.0.0")],
            "x": [release("1.0.0")],
        }
        self.selects({"a": "1.0.0", "b": "1.0.0", "gen": "2.0.0"}, catalog, {"a": "*", "b": "*"})

    def test_tools_in_conflicts(self):
        catalog = {
            "a": [release("1.0.0", {"gen": "^1.0"}, {"gen": "<1.9"}, tools={"gen": "^1.1"})],
            "b": [release("1.0.0", tools={"gen": "^2"})],
            "gen": [release("1.0.0"), release("2.0.0")],
        }
        ranges = ["a 1.0.0 requires gen ^1.0", "a 1.0.0 tools gen ^1.1", "a 1.0.0 constrains gen <1.9"]
        self.conflicts(["a *"], [("gen", "2.0.0", ranges)], catalog, {"b": "*", "a": "*"})
        catalog["a"][0]["tools"] = {"gen": "^1"}
        ranges[1] = "a 1.0.0 tools gen ^1"
        self.conflicts(["b *", "a *"], [("gen", "2.0.0", ranges)], catalog, {"b": "*", "a": "*"})

    def test_late_tool_of_an_early_package(self):
        catalog = {f"f{number:02}": [release(version) for version in versions(20)] for number in range(97)}
        requires = {"base": "*", **{package: "*" for package in catalog}}
        catalog["base"] = [release(version, tools={"gen": "*"} if minor else {}) for minor, version in enumerate(versions(20))]
        catalog["gen"] = [release("1.0.0", tools={"ghost": "*"})]
        selection = self.plan("resolve", catalog, requires, seconds=8)["packages"]
        self.assertEqual((selection["base"], len(selection)), ("1.0.0", 98))

    def prints(self, **sources):
        """Returns the state in which gen (a tool of b, which a requires), lib (which gen requires), a and b are built."""
        found = {"lib": print_of("lib", "1.0.0", sources.get("lib", "s-1.0.0"), {})}
        found["gen"] = print_of("gen", "1.0.0", sources.get("gen", "s-1.0.0"), {"lib": "il"})
        found["b"] = print_of("b", "1.0.0", sources.get("b", "s-1.0.0"), {"gen": found["gen"]})
        found["a"] = print_of("a", "1.0.0", sources.get("a", "s-1.0.0"), {"b": "ib"})
        return {name: {"version": "1.0.0", "fingerprint": text} for name, text in found.items()}

    catalog = {
        "lib": [release("1.0.0", interface="il", cost=2)],
        "gen": [release("1.0.0", {"lib": "*"}, interface="ig", cost=3)],
        "b": [release("1.0.0", tools={"gen": "*"}, interface="ib", cost=4)],
        "a": [release("1.0.0", {"b": "*"}, cost=5)],
    }

    def build(self, *args, **more):
        plan = self.plan("build", self.catalog, {"a": "*"}, *args, **more)
        return plan["actions"], [(entry["start"], entry["worker"], entry["package"]) for entry in plan["schedule"]]

    def test_new_tool_builds_anew_in_spite_of_its_interface(self):
        actions, schedule = self.build(state=self.prints(gen="old"))
        self.assertEqual(actions, {"a": "keep", "b": "build", "gen": "build", "lib": "keep"})
        self.assertEqual(schedule, [(0, 1, "gen"), (3, 1, "b")])
        actions, _ = self.build(state=self.prints(lib="old"))
        self.assertEqual(actions, {"a": "keep", "b": "keep", "gen": "keep", "lib": "build"})

    def test_builds_wait_for_what_their_tools_require(self):
        state = self.prints(lib="old", b="old", a="old")
        actions, schedule = self.build("--jobs", "3", state=state)
        self.assertEqual(actions, {"a": "build", "b": "build", "gen": "keep", "lib": "build"})
        self.assertEqual(schedule, [(0, 1, "lib"), (2, 1, "b"), (6, 1, "a")])

    def test_tools_of_kept_packages_do_not_matter(self):
        state = self.prints(a="old")
        del state["gen"]
        actions, schedule = self.build("--jobs", "3", state=state)
        self.assertEqual(actions, {"a": "build", "b": "keep", "gen": "build", "lib": "keep"})
        self.assertEqual(schedule, [(0, 1, "a"), (0, 2, "gen")])

    def test_package_that_is_required_and_a_tool(self):
        catalog = {"lib": [release("1.0.0", interface="il")], "a": [release("1.0.0", {"lib": "*"}, tools={"lib": "*"})]}
        state = {"a": {"version": "1.0.0", "fingerprint": print_of("a", "1.0.0", "s-1.0.0", {"lib": print_of("lib", "1.0.0", "s-1.0.0", {})})}}
        plan = self.plan("build", catalog, {"a": "*"}, state=state)
        self.assertEqual(plan["actions"], {"a": "keep", "lib": "build"})

    def test_tools_make_cycles(self):
        catalog = {
            "a": [release("1.0.0", {"b": "*"})], "b": [release("1.0.0", tools={"c": "*"})], "c": [release("1.0.0", {"a": "*"}, tools={"d": "*"})],
            "d": [release("1.0.0", tools={"c": "*"})],
        }
        self.assertEqual(self.plan("build", catalog, {"a": "*"}, status=1), {"cycle": ["c", "d"]})
        catalog["b"][0]["tools"] = {"b": "*"}
        self.assertEqual(self.plan("build", catalog, {"a": "*"}, status=1), {"cycle": ["b"]})


class Memory(Base):
    def started(self, packages, *args, **more):
        """Plans builds `{name: (cost, memory, required)}`."""
        catalog = {
            name: [release("1.0.0", {other: "*" for other in required.split()}, cost=cost, memory=memory)]
            for name, (cost, memory, required) in packages.items()
        }
        plan = self.plan("build", catalog, {name: "*" for name in packages}, *args, **more)
        return [(entry["start"], entry["worker"], entry["package"]) for entry in plan["schedule"]]

    def test_memory_limits_builds_at_a_time(self):
        packages = {"a": (4, 3, ""), "b": (3, 2, ""), "c": (2, 2, ""), "d": (1, 0, "")}
        self.assertEqual(self.started(packages, "--jobs", "4", "--memory", "5"), [(0, 1, "a"), (0, 2, "b"), (3, 2, "c"), (3, 3, "d")])
        self.assertEqual(self.started(packages, "--jobs", "4"), [(0, 1, "a"), (0, 2, "b"), (0, 3, "c"), (0, 4, "d")])

    def test_build_without_memory_holds_up_those_behind_it(self):
        packages = {"a": (4, 3, ""), "b": (3, 3, ""), "c": (2, 1, ""), "d": (9, 1, "a")}
        self.assertEqual(self.started(packages, "--jobs", "4", "--memory", "4"), [(0, 1, "a"), (4, 1, "d"), (4, 2, "b"), (7, 2, "c")])

    def test_build_that_needs_more_than_there_is_runs_alone(self):
        packages = {"a": (4, 1, ""), "b": (3, 9, ""), "c": (2, 0, ""), "d": (1, 9, "")}
        self.assertEqual(self.started(packages, "--jobs", "4", "--memory", "4"), [(0, 1, "a"), (4, 1, "b"), (7, 1, "c"), (9, 1, "d")])

    def test_builds_that_become_possible_may_overtake(self):
        packages = {"a": (2, 2, ""), "b": (4, 2, ""), "c": (3, 4, ""), "d": (8, 2, "a")}
        self.assertEqual(self.started(packages, "--jobs", "2", "--memory", "4"), [(0, 1, "a"), (0, 2, "b"), (2, 1, "d"), (10, 1, "c")])


class RunningBuilds(Base):
    # a requires b, which requires c.
    catalog = {
        "a": [release("1.0.0", {"b": "*"}, cost=2)],
        "b": [release("1.0.0", {"c": "*"}, interface="ib", cost=6, memory=3)],
        "c": [release("1.0.0", interface="ic", cost=4, memory=2)],
        "d": [release("1.0.0", cost=1)],
    }
    prints = {
        "a": print_of("a", "1.0.0", "s-1.0.0", {"b": "ib"}), "b": print_of("b", "1.0.0", "s-1.0.0", {"c": "ic"}),
        "c": print_of("c", "1.0.0", "s-1.0.0", {}), "d": print_of("d", "1.0.0", "s-1.0.0", {}),
    }

    def build(self, running, *args, built=""):
        entries = {name: {"fingerprint": text or self.prints[name], "worker": worker, "left": left} for name, (text, worker, left) in running.items()}
        state = {name: {"version": "1.0.0", "fingerprint": self.prints[name]} for name in built}
        plan = self.plan("build", self.catalog, {"a": "*", "d": "*"}, *args, state=state, running=entries)
        return plan, [(entry["start"], entry["end"], entry["worker"], entry["package"]) for entry in plan["schedule"]]

    def test_running_build_goes_on(self):
        plan, schedule = self.build({"c": (None, 2, 3)}, "--jobs", "2")
        self.assertEqual(schedule, [(0, 1, 1, "d"), (0, 3, 2, "c"), (3, 9, 1, "b"), (9, 11, 1, "a")])
        self.assertEqual((plan["actions"], plan["end"]), (dict.fromkeys("abcd", "build"), 11))
        self.assertNotIn("cancel", plan)

    def test_running_build_waits_for_nothing(self):
        plan, schedule = self.build({"b": (None, 1, 1)}, "--jobs", "2")
        self.assertEqual(schedule, [(0, 1, 1, "b"), (0, 4, 2, "c"), (1, 2, 1, "d"), (4, 6, 1, "a")])

    def test_chains_leave_running_builds_out(self):
        catalog = {
            "a": [release("1.0.0", {"b": "*"}, cost=1)], "b": [release("1.0.0", cost=2)], "c": [release("1.0.0", cost=4)],
            "e": [release("1.0.0", {"c": "*"}, cost=9, interface="ie")], "d": [release("1.0.0", cost=5)],
        }
        fingerprint = print_of("e", "1.0.0", "s-1.0.0", {"c": print_of("c", "1.0.0", "s-1.0.0", {})})
        running = {"e": {"fingerprint": fingerprint, "worker": 2, "left": 30}}
        plan = self.plan("build", catalog, {name: "*" for name in "abced"}, "--jobs", "1", running=running)
        self.assertEqual([entry["package"] for entry in plan["schedule"]], ["d", "e", "c", "b", "a"])
        self.assertEqual((plan["schedule"][1]["worker"], plan["end"]), (2, 30))

    def test_other_running_builds_are_cancelled(self):
        plan, schedule = self.build({"z": ("x", 1, 9), "d": ("other", 2, 9), "c": (None, 3, 9)}, "--jobs", "3", built="bc")
        self.assertEqual(plan["cancel"], ["c", "d", "z"])
        self.assertEqual(plan["actions"], {"a": "build", "b": "keep", "c": "keep", "d": "build"})
        self.assertEqual(schedule, [(0, 2, 1, "a"), (0, 1, 2, "d")])

    def test_worker_beyond_the_number_of_jobs(self):
        plan, schedule = self.build({"c": (None, 5, 2)}, "--jobs", "1")
        self.assertEqual(schedule, [(0, 1, 1, "d"), (0, 2, 5, "c"), (2, 8, 1, "b"), (8, 10, 1, "a")])

    def test_running_builds_have_their_memory(self):
        _, schedule = self.build({"b": (None, 1, 3)}, "--jobs", "3", "--memory", "4")
        self.assertEqual(schedule, [(0, 3, 1, "b"), (3, 7, 1, "c"), (3, 4, 2, "d"), (7, 9, 1, "a")])
        _, schedule = self.build({"b": ("x", 1, 3), "c": (None, 3, 3)}, "--jobs", "3", "--memory", "4")
        self.assertEqual(schedule, [(0, 1, 1, "d"), (0, 3, 3, "c"), (3, 9, 1, "b"), (9, 11, 1, "a")])
        _, schedule = self.build({"b": (None, 1, 3), "c": (None, 3, 2)}, "--jobs", "3", "--memory", "2")
        self.assertEqual(schedule, [(0, 3, 1, "b"), (0, 2, 3, "c"), (3, 5, 1, "a"), (3, 4, 2, "d")])


class Unchanged(Base):
    def test_versions_and_messages(self):
        done = self.program("python3", "plan.py", "versions", "examples/catalog.json", "tls", "~1.0.0 || >=1.1")
        self.assertEqual((done.status, done.stdout), (0, "1.1.0\n1.0.2\n"))
        done = self.program("python3", "plan.py", "resolve", "examples/project.json", "none.json")
        self.assertEqual((done.status, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "plan.py: error: none.json: No such file or directory\n")
