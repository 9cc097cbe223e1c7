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
