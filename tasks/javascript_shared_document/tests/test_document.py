import json

import lab

EXAMPLE = """\
anna "The quick fox jumps."
ben "The fox jumps over the dog."
anna "The quick fox jumps over the dog."
ben "The quick fox jumps over the dog."
server "The quick fox jumps over the dog."
server "The fox jumps over the dog."
"""


class Base(lab.Case):
    def play(self, *commands):
        """Plays a script. Returns the last text that was shown of each, by name."""
        done = self.program("node", "bin/play.js", stdin="".join(f"{command}\n" for command in commands))
        self.assertEqual(done.status, 0, done)
        texts = {}
        for line in done.stdout.splitlines():
            name, _, text = line.partition(" ")
            texts[name] = json.loads(text) if text.startswith('"') else text
        return texts

    def ends(self, names, text, *commands):
        """Plays a script and checks that all copies have this text after all messages were delivered."""
        names = names.split()
        start = commands[0] if commands[0].startswith("start") else 'start ""'
        rest = commands[1:] if commands[0].startswith("start") else commands
        shows = [f"show {name}" for name in (*names, "server")]
        texts = self.play(start, *(f"join {name}" for name in names), *rest, "sync", *shows)
        self.assertEqual(texts, dict.fromkeys((*names, "server"), text))


class Scripts(Base):
    def test_example_is_unchanged(self):
        done = self.program("node", "bin/play.js", "examples/two_writers.txt")
        self.assertEqual((done.status, done.stdout), (0, EXAMPLE), done)

    def test_bad_position_is_reported(self):
        done = self.program("node", "bin/play.js", stdin='start "abc"\njoin a\nerase a 2 2\n')
        self.assertEqual(done.status, 1)
        self.assertEqual(done.stderr, "play: line 3: position 2 and count 2 don't fit a text of 3 characters\n")


class Concurrent(Base):
    def test_replacement_stands_before_text_inserted_at_the_end_of_the_selection(self):
        self.ends("anna ben", "ab[new]YZf", 'start "abcdef"', 'replace ben 2 3 "[new]"', 'type anna 5 "YZ"')

    def test_insert_at_the_same_position_is_ordered_by_code_units_of_names(self):
        self.ends("amy Zoe", "-ZZaa-", 'start "--"', 'type amy 1 "aa"', 'type Zoe 1 "ZZ"')

    def test_insert_at_the_same_position_is_ordered_by_names_for_buffered_changes(self):
        self.ends(
            "b10 b9", "-x1x2yy-",
            'start "--"', 'type b10 1 "x1"', "erase b10 0 1", 'type b10 2 "x2"', 'type b9 1 "yy"', 'type b9 0 "-"',
        )

    def test_history_entry_serves_several_writers_at_the_end(self):
        self.ends("a b c", "Aone!?", 'start "one"', 'type a 0 "A"', 'type b 3 "!"', 'type c 3 "?"')


class Characters(Base):
    def test_buffered_text_outside_of_the_basic_plane_isnt_split(self):
        self.ends(
            "a b", "<\U0001f600\U0001f64f>!",
            'start "<>"', 'type a 2 "!"', 'type a 1 "\U0001f600\U0001f680\U0001f64f"', "erase a 2 1",
        )

    def test_typing_after_such_text_joins_the_step(self):
        self.ends("a b", "<>", 'start "<>"', 'type a 1 "\U0001f600"', 'type a 2 "b"', 'type a 3 "\U0001f64f"', "undo a")


class Undo(Base):
    def test_typing_in_a_row_is_one_step(self):
        self.ends("a b", "ab", 'start "ab"', 'type a 1 "x"', 'type a 2 "yz"', "undo a")

    def test_change_of_another_client_begins_a_new_step(self):
        self.ends("a b", "xab!", 'start "ab"', 'type a 0 "x"', "sync", 'type b 3 "!"', "sync", 'type a 1 "y"', "undo a")

    def test_undo_keeps_text_of_others_inside_of_removed_text(self):
        self.ends("a b", "(12)", 'start "()"', 'type a 1 "abc"', "sync", 'type b 2 "1"', 'type b 4 "2"', "sync", "undo a")

    def test_step_without_effect_is_skipped(self):
        self.ends("a b", "()", 'start "()"', 'type a 1 "x"', 'type a 1 "yy"', "sync", "erase b 1 2", "sync", "undo a")

    def test_undo_of_a_replacement_while_another_types_behind_it(self):
        self.ends("anna ben", "abcdeYf", 'start "abcdef"', 'replace ben 2 3 "x"', "sync", "undo ben", 'type anna 3 "Y"')

    def test_change_during_a_buffered_change_adapts_steps(self):
        self.ends(
            "a b", "0123HEY456789",
            'start "0123456789"', 'type a 2 "xx"', "erase a 0 2", 'type a 0 "Q"', 'type b 4 "HEY"', "push b", "pull a",
            "undo a", "undo a", "undo a",
        )

    def test_change_adapts_steps_to_redo_beside_steps_to_undo(self):
        self.ends(
            "a b", "..AA-BBB~",
            'start "-~"', 'type a 0 "AA"', 'type a 3 "BBB"', "undo a", "sync", 'type b 0 ".."', "sync", "redo a",
        )

    def test_changes_inside_undone_and_kept_text_adapt_redo(self):
        self.ends(
            "a b", "A.A-BB~",
            'start "-~"', 'type a 0 "AA"', 'type a 3 "BB"', "undo a", "sync", 'type b 1 "."', "sync", "redo a",
        )

    def test_restored_text_is_ordered_by_names(self):
        self.ends("amy Zoe", "<ZZabc>", 'start "<abc>"', "erase amy 1 3", "sync", 'type Zoe 1 "ZZ"', "sync", "undo amy")

    def test_text_at_the_end_doesnt_disturb_the_change_that_adapts_a_step(self):
        self.ends("a b", "x.yz", 'start "xyz!"', "erase a 3 1", "sync", 'type b 1 "."', "sync")

    def test_new_change_clears_redo(self):
        self.ends("a b", "cd", 'start "d"', 'type a 0 "ab"', "undo a", 'type a 0 "c"', "redo a")


class Reconnect(Base):
    def test_change_of_another_with_the_same_number_isnt_an_acknowledgment(self):
        self.ends("a b", "bb-aa", 'start "-"', "cut a", 'type a 1 "aa"', 'type b 0 "bb"', "sync", "reconnect a")

    def test_lost_acknowledgment_doesnt_duplicate_text(self):
        self.ends(
            "a b", "bb-aa!",
            'start "-"', 'type a 1 "aa"', "push a", "cut a", 'type a 3 "!"', 'type b 0 "bb"', "push b", "reconnect a",
        )

    def test_submission_that_was_lost_is_sent_again(self):
        self.ends("a b", "-aab", 'start "-"', 'type a 1 "aa"', "cut a", 'type b 1 "b"', "push b", "reconnect a")

    def test_change_that_the_server_has_before_the_hello_comes_once(self):
        self.ends("a b", "-!?", 'start "-"', "cut a", 'type b 1 "!"', "push b", "reconnect a", 'type b 2 "?"', "push b", "pull b", "push b")

    def test_typing_before_the_catch_up_arrives(self):
        self.ends(
            "a b", "xyb1",
            'start "1"', "cut a", 'type b 0 "b"', "sync", "reconnect a", 'type a 0 "x"', "push a", "push a", 'type a 1 "y"',
        )


class LongScripts(Base):
    """Scripts with many changes of four clients, which end with `sync`."""

    NAMES = ("amy", "Zoe", "b9", "b10")

    def converge(self, group):
        for number, case in enumerate(json.loads(lab.data("scripts.json"))[group]):
            with self.subTest(script=number):
                texts = self.play(*case["script"], *(f"show {name}" for name in (*self.NAMES, "server")))
                self.assertEqual(texts, dict.fromkeys((*self.NAMES, "server"), case["text"]))

    def test_typing_and_erasing(self):
        self.converge("plain")

    def test_replacing(self):
        self.converge("replace")

    def test_characters_outside_of_the_basic_plane(self):
        self.converge("wide")

    def test_undo_and_redo(self):
        self.converge("undo")

    def test_broken_connections(self):
        self.converge("line")

    def test_undo_of_everything_that_was_typed_restores_the_first_text(self):
        self.converge("undo_all")


class Marks(Base):
    """Compares `marks` of all copies."""

    def marks(self, names, wanted, *commands):
        names = names.split()
        start = commands[0] if commands[0].startswith("start") else 'start ""'
        rest = commands[1:] if commands[0].startswith("start") else commands
        script = [start, *(f"join {name}" for name in names), *rest, "sync", *(f"marks {name}" for name in (*names, "server"))]
        done = self.program("node", "bin/play.js", stdin="".join(f"{command}\n" for command in script))
        self.assertEqual(done.status, 0, done)
        shown = done.stdout.splitlines()
        text = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
        self.assertEqual(shown, [f"{name} {text}" for name in (*names, "server")])


class Formatting(Marks):
    def test_names_are_in_order_and_pieces_are_long(self):
        self.marks(
            "a b", [["ab", {}], ["cd", {"bold": True, "link": "/x"}], ["e", {}]],
            'start "abcde"', 'format a 2 2 link "/x"', "format a 3 1 bold true", "format a 2 1 bold true",
        )

    def test_empty_text(self):
        self.marks("a", [], 'start "ab"', "format a 0 2 bold true", "erase a 0 2")

    def test_names_of_all_kinds(self):
        self.marks("a b", [["ab", {"constructor": "x"}]], 'start "ab"', 'format a 0 2 constructor "x"', 'format b 0 2 constructor "y"')

    def test_bad_range(self):
        done = self.program("node", "bin/play.js", stdin='start "abc"\njoin a\nformat a 2 2 bold null\n')
        self.assertEqual((done.status, done.stderr), (1, "play: line 3: position 2 and count 2 don't fit a text of 3 characters\n"))

    def test_smaller_name_counts_for_each_attribute(self):
        self.marks(
            "amy Zoe", [["a", {"color": "red"}], ["bc", {"bold": True, "color": "blue"}]],
            'start "abc"', 'format amy 0 2 color "red"', "format amy 1 1 bold true", 'format Zoe 1 2 color "blue"', "format Zoe 2 1 bold true",
        )

    def test_removal_and_setting_at_the_same_time(self):
        self.marks(
            "a b", [["xy", {}]],
            'start "xy"', "format b 0 2 bold true", "sync", "format a 0 2 bold null", 'format b 0 2 bold "very"',
        )

    def test_text_inserted_into_formatted_text_at_the_same_time(self):
        self.marks(
            "a b", [["a", {"bold": True}], ["--", {}], ["b", {"bold": True}]],
            'start "ab"', "format a 0 2 bold true", 'type b 1 "--"',
        )

    def test_characters_outside_of_the_basic_plane(self):
        self.marks(
            "a b", [["\U0001f600", {}], ["\U0001f680", {"bold": True}], ["x\U0001f64f", {}]],
            'start "\U0001f600\U0001f680\U0001f64f"', "format a 1 1 bold true", 'type b 2 "x"',
        )

    def test_formats_in_a_buffer_are_composed(self):
        self.marks(
            "a b", [["<", {}], ["ab", {"bold": True}], ["c", {}], ["d", {"i": True}], [">", {}]],
            'start "<>"', 'type a 1 "."', 'type a 2 "abcd"', "format a 2 3 bold true", "format a 4 1 bold null", "format a 5 1 i true", "erase a 1 1",
        )

    def test_buffered_removal_reaches_the_server(self):
        self.marks(
            "a b", [["xyz", {}]],
            'start "xyz"', "format a 0 3 bold true", "sync", 'type a 0 "q"', "format a 0 4 bold null", "erase a 0 1",
        )


class NewText(Marks):
    def test_typed_text_follows_the_character_in_front(self):
        self.marks(
            "a b", [["..", {}], ["xyzx!", {"bold": True}], [".?", {}]],
            'start "xyz."', "format a 0 3 bold true", "sync", 'type a 0 ".."', 'type b 3 "x!"', "sync", 'type a 8 "?"',
        )

    def test_replacement_follows_the_first_character(self):
        self.marks(
            "a b", [["a", {"i": True}], ["NEW", {"bold": True, "link": "/x"}], ["d", {}]],
            'start "abcd"', "format a 0 1 i true", "format a 1 1 bold true", 'format a 1 1 link "/x"', 'replace a 1 2 "NEW"',
        )

    def test_links_go_on_only_inside(self):
        self.marks(
            "a b", [["x+y", {"bold": True, "link": "/1"}], ["+", {"bold": True}], ["z", {"bold": True, "link": "/2"}], ["+", {"bold": True}]],
            'start "xyz"', "format a 0 3 bold true", 'format a 0 2 link "/1"', 'format a 2 1 link "/2"',
            'type a 3 "+"', 'type a 2 "+"', 'type a 1 "+"',
        )


class UndoFormats(Marks):
    def test_only_what_was_changed_is_given_back(self):
        self.marks(
            "a b", [["a", {"c": "1"}], ["b", {"c": "2"}], ["c", {}], ["d", {"c": "3"}]],
            'start "abcd"', 'format a 0 1 c "1"', 'format a 1 1 c "2"', 'format a 3 1 c "3"', 'format a 0 4 c "3"', "undo a",
        )

    def test_format_without_an_effect_is_no_step(self):
        self.marks(
            "a b", [["b", {}]],
            'start "b"', 'type a 0 "x"', "format a 0 1 bold null", 'type a 1 "y"', "undo a", "redo a", "undo a", "format a 0 1 bold null",
        )

    def test_format_without_an_effect_keeps_redo(self):
        self.marks("a b", [["xb", {}]], 'start "b"', 'type a 0 "x"', "undo a", "format a 0 1 bold null", "redo a")

    def test_restored_text_has_its_attributes(self):
        self.marks(
            "a b", [["a", {}], ["bc", {"bold": True}], ["d", {}], ["e", {"bold": True}]],
            'start "abcde"', "format b 1 2 bold true", "format b 4 1 bold true", "sync", "erase a 0 5", "sync", "undo a",
        )

    def test_value_that_another_has_set_since_stays(self):
        self.marks(
            "amy Zoe", [["a", {}], ["b", {"c": "zoe"}], ["c", {}]],
            'start "abc"', 'format amy 0 3 c "amy"', "sync", 'format Zoe 1 1 c "zoe"', "sync", "undo amy",
        )
        self.marks(
            "amy Zoe", [["a", {}], ["b", {"c": "amy"}], ["c", {}]],
            'start "abc"', 'format Zoe 0 3 c "zoe"', "sync", 'format amy 1 1 c "amy"', "sync", "undo Zoe",
        )

    def test_value_of_another_at_the_same_time_leaves_the_steps(self):
        # Zoe's value counts, and the character is no longer a part of amy's step.
        self.marks(
            "Zoe amy", [["ab", {}], ["c", {"c": "zoe"}]],
            'start "abc"', 'format amy 0 3 c "amy"', 'format Zoe 2 1 c "zoe"', "sync", "undo amy",
        )

    def test_value_that_lost_at_the_same_time_leaves_the_steps_alone(self):
        self.marks(
            "a b", [["abc", {}]],
            'start "abc"', 'format a 0 3 c "a"', 'format b 2 1 c "b"', "sync", "undo a",
        )

    def test_step_that_others_have_overwritten_is_skipped(self):
        self.marks(
            "a b", [["xy", {"bold": "b"}]],
            'start "xy"', 'type a 0 "q"', "format a 1 2 bold true", "sync", 'format b 1 2 bold "b"', "sync", "undo a",
        )

    def test_other_attributes_of_the_step_stay(self):
        self.marks(
            "a b", [["x", {"bold": "b", "i": True}], ["y", {"i": True}]],
            'start "xy"', "format a 0 2 i true", 'replace a 0 2 "xy"', "undo a", "format a 0 2 bold true", "sync", 'format b 0 1 bold "b"', "sync", "undo a",
        )

    def test_redo_leaves_out_what_others_have_set(self):
        self.marks(
            "a b", [["x", {"bold": "b"}], ["y", {"bold": True}]],
            'start "xy"', "format a 0 2 bold true", "undo a", "sync", 'format b 0 1 bold "b"', "sync", "redo a",
        )

    def test_undo_of_a_format_around_text_of_others(self):
        self.marks(
            "a b", [["x", {}], ["--", {"bold": True}], ["y", {}]],
            'start "xy"', "format a 0 2 bold true", "sync", 'type b 1 "--"', "sync", "undo a",
        )


class LongFormats(Marks):
    def test_long_scripts(self):
        names = ("amy", "Zoe", "b9", "b10")
        for number, case in enumerate(json.loads(lab.data("formats.json"))):
            with self.subTest(script=number):
                script = [*case["script"], *(f"marks {name}" for name in (*names, "server"))]
                done = self.program("node", "bin/play.js", stdin="".join(f"{command}\n" for command in script))
                self.assertEqual(done.status, 0, done)
                shown = [line.partition(" ") for line in done.stdout.splitlines()]
                self.assertEqual([(name, json.loads(marks)) for name, _, marks in shown], [(name, case["marks"]) for name in (*names, "server")])
