import lab

ENV = {"MALLOC_PERTURB_": "165"}

FILE = """scene 1
issued 3 1 15 2
root e1.1 e0.3
entity e0.3 lamp
tags big red
props x=-4 y=10
links bulb=e1.1 old=e2.7
children e3.2
entity e1.1 table
tags
props
links
children
entity e3.2 cord
tags
props
links
children
end 3
"""


class Scene(lab.Case):
    def run_all(self, *commands, status=0):
        """Runs commands and returns the answer to each; lines of trees are joined to their first line."""
        done = self.program("scene", stdin="".join(c + "\n" for c in commands), env=ENV, seconds=6)
        self.assertEqual(done.status, status, done)
        answers = []
        for line in done.stdout.split("\n")[:-1]:
            if line.startswith("  "):
                answers[-1] += "\n" + line
            else:
                answers.append(line)
        self.assertEqual(len(answers), len(commands), done)
        return answers

    def check(self, *pairs):
        """Takes commands and their expected answers; commands without `=>` must only succeed."""
        commands = [pair.split(" => ")[0] for pair in pairs]
        for pair, answer in zip(pairs, self.run_all(*commands)):
            command, arrow, expected = pair.partition(" => ")
            if arrow:
                self.assertEqual(answer, expected, command)
            else:
                self.assertTrue(answer.split()[0] == "ok", f"{command}: {answer}")


class Handles(Scene):
    def test_lowest_empty_slot_gets_its_next_generation(self):
        self.check(
            "create a => ok e0.1", "create b => ok e1.1", "create c => ok e2.1", "destroy e1.1 => ok 1", "destroy e0.1 => ok 1",
            "create d => ok e0.2", "create e => ok e1.2", "create f => ok e3.1", "show e0.1 => error: no entity `e0.1`",
            "stats => ok live=4 free=0 retired=0 undo=8 redo=0",
        )

    def test_handles_are_parsed_strictly(self):
        self.check("create a", *(f"show {h} => error: no entity `{h}`" for h in ("e1.1", "e0.0", "e0.2", "e0.16", "e00.1", "e0.01", "e", "0.1", "e-1.1", "e0.1x", "e1000000.1", "root")))

    def test_slot_is_retired_after_15_generations(self):
        commands = []
        for generation in range(1, 16):
            commands += [f"create a => ok e0.{generation}", f"destroy e0.{generation} => ok 1"]
        self.check(*commands, "stats => ok live=0 free=0 retired=1 undo=8 redo=0", "create b => ok e1.1", "destroy e1.1", "create c => ok e1.2")

    def test_undo_and_redo_bring_entities_of_retired_slots_back(self):
        commands = []
        for generation in range(1, 15):
            commands += ["create a", f"destroy e0.{generation}"]
        self.check(
            *commands, "create last => ok e0.15", "destroy e0.15", "undo", "find last => ok e0.15", "undo", "find last => error: no name `last`",
            "stats => ok live=0 free=0 retired=1 undo=6 redo=2", "redo", "show e0.15 => ok e0.15 name=last parent=root children=[] tags=[] props=[] links=[]",
            "redo", "create next => ok e1.1",
        )

    def test_undone_creation_keeps_its_handle_issued(self):
        self.check(
            "create a => ok e0.1", "undo", "redo", "find a => ok e0.1", "undo", "create b => ok e0.2", "show e0.1 => error: no entity `e0.1`",
            "undo", "undo => error: nothing to undo", "create c => ok e0.3",
        )

    def test_handle_is_not_reissued_after_undone_destruction(self):
        self.check(
            "create a => ok e0.1", "destroy e0.1", "create b => ok e0.2", "undo", "undo", "find a => ok e0.1", "destroy e0.1",
            "create c => ok e0.3", "show e0.2 => error: no entity `e0.2`",
        )

    def test_rolled_back_creation_keeps_its_handle_issued(self):
        self.check("begin", "create a => ok e0.1", "rollback", "create b => ok e0.2", "stats => ok live=1 free=0 retired=0 undo=1 redo=0")

    def test_handles_issued_after_a_save_stay_dead_after_the_load(self):
        self.check(
            "create a => ok e0.1", "save f", "create b => ok e1.1", "create c => ok e2.1", "destroy e0.1", "create d => ok e0.2", "load f",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[] links=[]", "show e1.1 => error: no entity `e1.1`",
            "stats => ok live=1 free=2 retired=0 undo=0 redo=0", "create e => ok e1.2", "destroy e0.1", "create f => ok e0.3", "create g => ok e2.2",
            "save g", "load g", "find g => ok e2.2",
        )


class Structure(Scene):
    def test_many_children_and_deep_chains_are_kept(self):
        commands, children = ["create top => ok e0.1"], []
        for i in range(1, 70):
            commands.append(f"create n{i} in {'e0.1' if i % 2 else f'e{i - 1}.1'} => ok e{i}.1")
        children = ",".join(f"e{i}.1" for i in range(1, 70, 2))
        self.check(
            *commands, f"show e0.1 => ok e0.1 name=top parent=root children=[{children}] tags=[] props=[] links=[]", "destroy e0.1 => ok 70",
            "tree => ok 0", "undo", f"show e0.1 => ok e0.1 name=top parent=root children=[{children}] tags=[] props=[] links=[]",
        )

    def test_destroy_takes_all_descendants_and_undo_restores_order(self):
        before = "\n  e0.1 a\n  e1.1 b\n    e3.1 d\n      e6.1 g\n    e4.1 e\n    e5.1 f\n  e2.1 c"
        self.check(
            "create a", "create b", "create c", "create d in e1.1", "create e in e1.1", "create f in e1.1", "create g in e3.1", "tag e3.1 t",
            "link e0.1 to e4.1", f"tree => ok 7{before}", "destroy e1.1 => ok 5", "tree => ok 2\n  e0.1 a\n  e2.1 c", "tagged t => ok",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[] links=[to=dead]", "find g => error: no name `g`",
            "undo", f"tree => ok 7{before}", "tagged t => ok e3.1", "find g => ok e6.1",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[] links=[to=e4.1]", "redo", "tree => ok 2\n  e0.1 a\n  e2.1 c",
        )

    def test_move_before_a_sibling(self):
        self.check(
            "create a", "create b", "create c", "create d", "move e0.1 root before e3.1", "tree => ok 4\n  e1.1 b\n  e2.1 c\n  e0.1 a\n  e3.1 d",
            "move e3.1 root before e1.1", "tree => ok 4\n  e3.1 d\n  e1.1 b\n  e2.1 c\n  e0.1 a", "move e3.1 root",
            "tree => ok 4\n  e1.1 b\n  e2.1 c\n  e0.1 a\n  e3.1 d", "move e2.1 e0.1", "move e3.1 e0.1 before e2.1",
            "tree => ok 4\n  e1.1 b\n  e0.1 a\n    e3.1 d\n    e2.1 c", "undo", "undo", "tree => ok 4\n  e1.1 b\n  e2.1 c\n  e0.1 a\n  e3.1 d",
        )

    def test_failed_move_changes_nothing(self):
        tree = "tree => ok 4\n  e0.1 a\n    e1.1 b\n      e2.1 c\n  e3.1 d"
        self.check(
            "create a", "create b in e0.1", "create c in e1.1", "create d", "move e3.1 e0.1 before e2.1 => error: `e2.1` is not another child of the new parent",
            tree, "move e0.1 e2.1 => error: cycle", "move e0.1 e0.1 before e3.1 => error: cycle", tree,
            "move e3.1 root before e3.1 => error: `e3.1` is not another child of the new parent", tree, "undo",
            "tree => ok 3\n  e0.1 a\n    e1.1 b\n      e2.1 c", "stats => ok live=3 free=1 retired=0 undo=3 redo=1",
        )

    def test_prune_with_tagged_descendants(self):
        self.check(
            "create a", "create b in e0.1", "create c in e1.1", "create d", "create e in e3.1", *(f"tag e{i}.1 t" for i in (0, 1, 2, 4)),
            "prune t => ok 4", "tree => ok 1\n  e3.1 d", "tagged t => ok", "prune t => ok 0", "undo", "tagged t => ok e0.1 e1.1 e2.1 e4.1",
            "tree => ok 5\n  e0.1 a\n    e1.1 b\n      e2.1 c\n  e3.1 d\n    e4.1 e",
        )

    def test_sprout_adds_one_child_to_each_tagged_entity(self):
        self.check(
            "create a", "create b", "create c in e0.1", "tag e0.1 t", "tag e2.1 t", "tag e2.1 u", "destroy e1.1", "sprout t kid => ok 2",
            "tagged t => ok e0.1 e1.2 e2.1 e3.1", "tagged u => ok e2.1 e3.1", "tree => ok 4\n  e0.1 a\n    e2.1 c\n      e3.1 kid.2\n    e1.2 kid.0",
            "undo", "tagged t => ok e0.1 e2.1", "sprout none kid => ok 0",
        )

    def test_failed_sprout_changes_nothing(self):
        long = "x" * 31
        self.check(
            "create a", "create b", "create kid.1", "tag e0.1 t", "tag e1.1 t", "sprout t kid => error: name `kid.1` is taken",
            f"sprout t {long} => error: name `{long}.0` is too long", "tree => ok 3\n  e0.1 a\n  e1.1 b\n  e2.1 kid.1", "tagged t => ok e0.1 e1.1",
            "stats => ok live=3 free=0 retired=0 undo=5 redo=0", "create c => ok e3.1",
        )


class Clone(Scene):
    def test_copies_are_complete_and_links_go_to_copies(self):
        self.check(
            "create a", "create z", "create b in e0.1", "create c in e2.1", "create d in e0.1", "link e2.1 later e4.1", "link e3.1 up e0.1",
            "link e4.1 out e1.1", "set e2.1 n -9223372036854775808", "tag e2.1 t", "clone e0.1 k => ok e5.1",
            "tree => ok 9\n  e0.1 a\n    e2.1 b\n      e3.1 c\n    e4.1 d\n  e5.1 k\n    e6.1 k.b\n      e7.1 k.c\n    e8.1 k.d\n  e1.1 z",
            "show e6.1 => ok e6.1 name=k.b parent=e5.1 children=[e7.1] tags=[t] props=[n=-9223372036854775808] links=[later=e8.1]",
            "show e7.1 => ok e7.1 name=k.c parent=e6.1 children=[] tags=[] props=[] links=[up=e5.1]",
            "show e8.1 => ok e8.1 name=k.d parent=e5.1 children=[] tags=[] props=[] links=[out=e1.1]",
            "show e2.1 => ok e2.1 name=b parent=e0.1 children=[e3.1] tags=[t] props=[n=-9223372036854775808] links=[later=e4.1]",
            "tagged t => ok e2.1 e6.1", "undo", "tagged t => ok e2.1", "find k => error: no name `k`",
        )

    def test_handles_go_depth_first_into_empty_slots(self):
        self.check(
            "create x", "create y", "create a", "create b in e2.1", "create c in e3.1", "create d in e2.1", "destroy e0.1", "destroy e1.1",
            "clone e2.1 k => ok e0.2", "tree => ok 8\n  e2.1 a\n    e3.1 b\n      e4.1 c\n    e5.1 d\n  e0.2 k\n    e1.2 k.b\n      e6.1 k.c\n    e7.1 k.d",
        )

    def test_large_subtree(self):
        commands = ["create a"]
        for i in range(1, 60):
            commands += [f"create a-rather-long-name-{i} in e{i // 2 if i % 3 else i - 1}.1", f"tag e{i}.1 tag-number-{i}"]
        commands += [f"link e{i}.1 next e{i * 7 % 60}.1" for i in range(60)]
        answers = self.run_all(*commands, "clone e0.1 k", "tree", *(f"show e{i}.1" for i in range(60)), *(f"show e{i}.1" for i in range(60, 120)))
        self.assertEqual(answers[len(commands)], "ok e60.1")
        tree = [line.split() for line in answers[len(commands) + 1].split("\n")[1:]]
        copy_of = {a[0]: b[0] for a, b in zip(tree[:60], tree[60:])}
        self.assertEqual([b[1] for b in tree[60:]], ["k"] + ["k." + a[1] for a in tree[1:60]])
        shown = {answer.split()[1]: answer.split()[2:] for answer in answers[len(commands) + 2 :]}
        for original, copy in copy_of.items():
            expected = " ".join(shown[original])
            for old in sorted(copy_of, key=len, reverse=True):
                expected = expected.replace(old, "<" + copy_of[old][1:] + ">")
            expected = expected.replace("<", "e").replace(">", "").replace("name=a-", "name=k.a-").replace("name=a ", "name=k ")
            self.assertEqual(" ".join(shown[copy]), expected)

    def test_failed_clone_changes_nothing(self):
        self.check(
            "create a", "create b in e0.1", "create c in e0.1", "create k.c", "clone e0.1 k => error: name `k.c` is taken", "clone e0.1 b => error: name `b` is taken",
            f"clone e0.1 {'x' * 31} => error: name `{'x' * 31}.b` is too long", "tree => ok 4\n  e0.1 a\n    e1.1 b\n    e2.1 c\n  e3.1 k.c",
            "stats => ok live=4 free=0 retired=0 undo=4 redo=0", "create n => ok e4.1",
        )


class History(Scene):
    def test_names_swapped_in_a_transaction(self):
        self.check(
            "create a", "create b", "begin", "rename e0.1 t", "rename e1.1 a", "rename e0.1 b", "commit", "find a => ok e1.1", "undo", "find a => ok e0.1",
            "find b => ok e1.1", "find t => error: no name `t`", "redo", "find a => ok e1.1", "find b => ok e0.1",
            "begin", "destroy e0.1", "create b => ok e0.2", "commit", "undo", "find b => ok e0.1", "redo", "find b => ok e0.2",
        )

    def test_tags_after_undo(self):
        self.check(
            "create a", "create b", "tag e0.1 t", "begin", "untag e0.1 t", "tag e1.1 t", "tag e1.1 u", "commit", "undo", "tagged t => ok e0.1", "tagged u => ok",
            "redo", "tagged t => ok e1.1", "tagged u => ok e1.1", "prune t => ok 1",
        )

    def test_nested_commit_keeps_the_outer_state_for_undo(self):
        self.check(
            "create a", "set e0.1 n 1", "begin", "set e0.1 n 2", "begin", "set e0.1 n 3", "begin", "set e0.1 n 4", "rollback",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=3] links=[]", "commit", "set e0.1 n 5", "commit",
            "stats => ok live=1 free=0 retired=0 undo=3 redo=0", "undo", "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=1] links=[]",
            "redo", "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=5] links=[]",
            "begin", "set e0.1 n 6", "begin", "set e0.1 n 7", "commit", "rollback", "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=5] links=[]",
        )

    def test_steps_without_effect_are_not_recorded(self):
        self.check(
            "create a", "tag e0.1 t", "set e0.1 n 1", "undo", "tag e0.1 t", "untag e0.1 u", "unset e0.1 n", "unlink e0.1 l", "rename e0.1 a", "move e0.1 root",
            "prune none => ok 0", "begin", "commit", "begin", "create b => ok e1.1", "destroy e1.1", "set e0.1 n 4", "unset e0.1 n", "commit",
            "begin", "create c => ok e1.2", "rollback", "stats => ok live=1 free=1 retired=0 undo=2 redo=1", "redo",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[t] props=[n=1] links=[]", "redo => error: nothing to redo",
        )

    def test_failed_commands_leave_nothing_for_later_steps(self):
        self.check(
            "create a", "create b", "set e1.1 n 1", "set e1.1 n 2", "undo", "undo", "rename e1.1 a => error: name `a` is taken", "redo", "redo", "set e0.1 m 1", "undo",
            "show e1.1 => ok e1.1 name=b parent=root children=[] tags=[] props=[n=2] links=[]", "rename e1.1 b", "set e1.1 n 3", "set e0.1 m 1", "undo",
            "show e1.1 => ok e1.1 name=b parent=root children=[] tags=[] props=[n=3] links=[]",
        )

    def test_eight_steps_are_kept(self):
        self.check(
            "create a", *(f"set e0.1 n {i}" for i in range(1, 12)), "stats => ok live=1 free=0 retired=0 undo=8 redo=0", *["undo"] * 8,
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=3] links=[]", "undo => error: nothing to undo", *["redo"] * 8,
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[n=11] links=[]", "redo => error: nothing to redo",
            "undo", "set e0.1 n 0", "redo => error: nothing to redo",
        )

    def test_errors_of_transactions(self):
        self.check(
            "commit => error: not in a transaction", "rollback => error: not in a transaction", "begin", "undo => error: in a transaction",
            "redo => error: in a transaction", "load none => error: in a transaction", "create a => ok e0.1", "create a => error: name `a` is taken",
            "create b in e0.1 => ok e1.1", "move e0.1 e1.1 => error: cycle", "commit", "undo", "tree => ok 0", "redo", "tree => ok 2\n  e0.1 a\n    e1.1 b",
        )

    def test_bad_commands(self):
        bad = ["", " create a", "create", "create A", "create a  ", f"create {'x' * 33}", "create x at root", "set e0.1 n 01", "set e9.1 n -0", "set e0.1 n -01", "set e0.1 n +1", "set e0.1 n 9223372036854775808", "set e0.1 n", "fly", "tag e9.1 T", "move e0.1 root after e0.1"]
        self.check(
            "create a", *(f"{c} => error: bad command" for c in bad[1:]), "set e0.1 n -9223372036854775808", "set e0.1 m 0",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[m=0,n=-9223372036854775808] links=[]",
            "link e0.1 k e7.1 => error: no entity `e7.1`", "link e8.1 k e7.1 => error: no entity `e8.1`", "create a in e7.1 => error: no entity `e7.1`", "clone e7.1 a => error: no entity `e7.1`",
        )


class Files(Scene):
    def test_file_survives_load_and_save_byte_for_byte(self):
        self.write("f", FILE)
        self.check(
            "load f", "tree => ok 3\n  e1.1 table\n  e0.3 lamp\n    e3.2 cord", "show e0.3 => ok e0.3 name=lamp parent=root children=[e3.2] tags=[big,red] props=[x=-4,y=10] links=[bulb=e1.1,old=dead]",
            "tagged red => ok e0.3", "stats => ok live=3 free=0 retired=1 undo=0 redo=0", "save g", "create n => ok e4.1", "destroy e0.3 => ok 2", "create m => ok e0.4", "save h",
        )
        done = self.program("scene", stdin="load f\nsave g\n")
        self.assertEqual(done.stdout, "ok\nok\n", done)
        self.assertEqual(self.read("g"), FILE)
        self.assertEqual(self.read("h").split("\n")[1:3], ["issued 4 1 15 2 1", "root e1.1 e4.1 e0.4"])

    def test_load_forgets_steps_and_old_indexes(self):
        self.write("f", FILE)
        self.check(
            "create old", "tag e0.1 t", "tag e0.1 red", "undo", "load f", "undo => error: nothing to undo", "redo => error: nothing to redo", "find old => error: no name `old`",
            "tagged t => ok", "tagged red => ok e0.3", "show e0.1 => error: no entity `e0.1`", "prune t => ok 0",
        )

    def test_damaged_files_change_nothing(self):
        def changed(old, new):
            self.assertEqual(FILE.count(old), 1, old)
            return FILE.replace(old, new)

        bad = [
            "", "\n", FILE[:-1], FILE + "\n", FILE + "end 3\n", FILE[: FILE.index("end")], changed("scene 1", "scene 2"), changed("end 3", "end 4"),
            changed("end 3\n", "end 3 \n"), changed("big red", "red big"), changed("big red", "red red"), changed("big red", "big Red"), changed("x=-4", "x=-04"),
            changed("x=-4 y=10", "y=10 x=-4"), changed("x=-4 y=10", "x=-4 x=10"), changed("x=-4", "x"), changed("x=-4", "x=-0"), changed("y=10", "y=9223372036854775808"),
            changed("old=e2.7", "old=e4.1"), changed("old=e2.7", "old=e2.16"), changed("bulb=e1.1", "bulb=e1.2"), changed("issued 3", "issued 2"), changed("15 2", "16 2"), changed("15 2", "15"),
            changed("e1.1 table", "e1.1 lamp"), changed("entity e1.1 table", "entity e3.1 table"), changed("root e1.1 e0.3", "root e1.1 e0.3 e3.2"), changed("root e1.1 e0.3", "root e1.1 e1.1 e0.3"),
            changed("root e1.1 e0.3", "root e0.3"), changed("root e1.1 e0.3", "root e1.1"), changed("children e3.2", "children"), changed("children e3.2", "children e3.1"),
            FILE.replace("children\nend", "children e0.3\nend"), FILE.replace("children\nend", "children e0.3\nend").replace("root e1.1 e0.3", "root e1.1"), FILE.replace("children\nend", "children e3.2\nend"),
            changed("props x=-4 y=10\nlinks bulb=e1.1 old=e2.7\n", "links bulb=e1.1 old=e2.7\nprops x=-4 y=10\n"), FILE.replace("\n", "\r\n"), FILE.replace("tags\nprops\n", "tags \nprops\n", 1),
        ]
        commands = ["create a", "set e0.1 n 1"]
        for i, text in enumerate(bad):
            self.write(f"bad{i}", text)
            commands.append(f"load bad{i} => error: `bad{i}` is damaged")
        self.check(
            *commands, "load none => error: can't read `none`", "tree => ok 1\n  e0.1 a", "stats => ok live=1 free=0 retired=0 undo=2 redo=0", "undo",
            "show e0.1 => ok e0.1 name=a parent=root children=[] tags=[] props=[] links=[]", "create b => ok e1.1",
        )
