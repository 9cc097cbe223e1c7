import hashlib
import json
import re
import zlib

import lab

FAKE = "python3 fake.py"


def sha(text):
    return hashlib.sha256(text.encode("latin-1")).hexdigest()


def entry(path, *texts, **changed):
    ids = [sha(text) for text in texts]
    return {
        "path": path,
        "size": sum(map(len, texts)),
        "digest": hashlib.sha256(b"".join(map(bytes.fromhex, ids))).hexdigest(),
        "chunks": [{"id": id_, "size": len(text)} for id_, text in zip(ids, texts)],
        **changed,
    }


class Case(lab.Case):
    def vault(self, *texts, **backups):
        """Writes a vault with chunks and backups."""
        for text in texts:
            self.store(sha(text), text)
        self.backups = [{"id": name, "files": files} for name, files in backups.items()]
        self.write("v/catalog.json", json.dumps({"version": 1, "backups": self.backups}))

    def store(self, id_, text):
        self.write(f"v/chunks/{id_[:2]}/{id_[2:]}", b"VC1\n" + zlib.compress(text.encode("latin-1")))

    def verify(self, *arguments, status=0, **more):
        done = self.program("verify", "-vault", "v", *arguments, **more)
        self.assertEqual(done.status, status, done)
        return done

    def report(self, *arguments, **more):
        return self.verify(*arguments, **more).stdout.splitlines()


class Vault(Case):
    def test_list_is_unchanged(self):
        self.vault("x", b1=[entry("a b", "x"), entry("c")])
        self.assertEqual(self.report("-list"), ["b1\t1\ta b", "b1\t0\tc"])
        self.assertEqual(self.program("verify", "-list").status, 2)

    def test_files_that_are_fine(self):
        self.vault("one", "two\n\n", "", "\x00\xff\r\n* x\n", b1=[entry("a", "one", "two\n\n"), entry("empty")], b2=[], b3=[entry("dir/b", "\x00\xff\r\n* x\n", "", "one")])
        self.assertEqual(self.report(), [
            "backup b1: 2 files", "  ok       a", "  ok       empty",
            "backup b2: 0 files",
            "backup b3: 1 files", "  ok       dir/b",
            "files 3, ok 3, damaged 0, chunks 4, sessions 1",
        ])

    def test_reasons_of_damaged_files(self):
        texts = ["one", "two", "rot", "short"]
        self.vault(*texts, b1=[
            entry("missing", "one", "none", "two"),
            entry("packed", "broken"),
            entry("rotten", "rot"),
            entry("sizes", "two", "short"),
            entry("total", "one", "two", size=7),
            entry("digest", "one", "two", digest=sha("x")),
            entry("both", "one", size=4, digest="x"),
            entry("good", "two", "one"),
        ])
        self.write(f"v/chunks/{sha('broken')[:2]}/{sha('broken')[2:]}", b"VC1\njunk")
        self.store(sha("rot"), "ro!")
        self.store(sha("short"), "shor")
        self.assertEqual(self.report(status=1)[1:], [
            "  damaged  missing: chunk 2 of 3: not found",
            "  damaged  packed: chunk 1 of 1: damaged",
            "  damaged  rotten: chunk 1 of 1: wrong content",
            "  damaged  sizes: chunk 2 of 2: wrong size",
            "  damaged  total: size is 6 instead of 7",
            "  damaged  digest: wrong digest",
            "  damaged  both: size is 3 instead of 4",
            "  ok       good",
            "files 8, ok 1, damaged 7, chunks 6, sessions 1",
        ])

    def test_a_chunk_may_have_different_sizes_in_the_catalog(self):
        wrong = entry("b", "one", chunks=[{"id": sha("one"), "size": 4}], size=4)
        self.vault("one", b1=[wrong, entry("a", "one")])
        self.assertEqual(self.report(status=1)[1:], ["  damaged  b: chunk 1 of 1: wrong size", "  ok       a", "files 2, ok 1, damaged 1, chunks 1, sessions 1"])

    def test_chosen_backups_come_in_the_order_of_the_catalog(self):
        self.vault("one", b1=[entry("a", "one")], b2=[entry("b", "none")], b3=[entry("c", "one")])
        self.assertEqual(self.report("-backup", "b3", "-backup", "b1", "-backup", "b3"), ["backup b1: 1 files", "  ok       a", "backup b3: 1 files", "  ok       c", "files 2, ok 2, damaged 0, chunks 1, sessions 1"])

    def test_wrong_usage(self):
        self.vault("one", b1=[entry("a", "one")])
        for arguments in (["-backup", "b9"], ["-list", "-backup", "b1"], ["-list", "-tool", "x"], ["more"], ["-nonsense"]):
            self.assertEqual(self.verify(*arguments, status=2).stdout, "", arguments)
        self.write("v/catalog.json", "{}")
        self.assertEqual(self.verify(status=2).stdout, "")

    def test_the_tool_is_not_started_without_need(self):
        self.vault(b1=[entry("a")], b2=[entry("b", "x")])
        self.assertEqual(self.report("-tool", "no-such-tool", "-backup", "b1", "-receipts", "r"), ["backup b1: 1 files", "  ok       a", "files 1, ok 1, damaged 0, chunks 0, sessions 0"])
        self.assertEqual(self.read("r"), "")
        self.assertEqual(self.verify("-tool", "no-such-tool", status=3).stdout, "")

    def test_a_bad_day_of_vaultd(self):
        texts = [f"text {i}\n" * 3000 for i in range(7)]
        self.vault(*texts, b1=[entry("a", *texts)])
        done = self.verify(env={"VAULTD_DRILL": "busy=2,limit=3,notice=4"})
        self.assertEqual(done.stdout.splitlines()[-1], "files 1, ok 1, damaged 0, chunks 7, sessions 4")
        self.assertIn("notice: the store is under maintenance (4)\n", done.stderr)


class Fake(Case):
    def script(self, *sessions, **backups):
        """Writes a catalog and what the fake tool does in each session. Chunks are the letters of the texts."""
        self.write("fake.py", lab.data("fake_server.txt"))
        self.write("script.json", json.dumps({"chunks": {sha(c): c for c in "abcdefgh"}, "sessions": sessions}))
        self.vault(**backups)

    def log(self):
        """Returns what the tool got: names of chunks instead of ids."""
        names = {sha(c): c for c in "abcdefgh"}
        lines = [re.sub(r"[0-9a-f]{64}|[0-9a-f]{32}", lambda m: names.get(m[0], "R"), line) for line in self.read("log").splitlines()]
        return [line for line in lines if line != "HELLO verify"]

    def fails(self, *sessions, text="ab"):
        self.script(*sessions, b1=[entry("x", *text)])
        self.write("r", "old")
        done = self.verify("-tool", FAKE, "-receipts", "r", status=3)
        self.assertEqual(done.stdout, "", sessions)
        self.assertNotEqual(done.stderr, "", sessions)
        self.assertEqual(self.read("r"), "old")
        self.write("log", "")

    def last(self, *arguments, **more):
        return self.report("-tool", FAKE, *arguments, **more)[-1]


class Requests(Fake):
    def test_the_order_of_requests(self):
        self.script(b1=[entry("x", *"abab"), entry("y", *"ca")], b2=[entry("z", *"bd")])
        self.assertEqual(self.last(), "files 3, ok 3, damaged 0, chunks 4, sessions 1")
        self.assertEqual(self.log(), ["start -vault v", "1 GET a", "2 GET b", "3 GET c", "4 GET d", "5 CLOSE R"])

    def test_nothing_is_asked_for_after_the_first_bad_chunk_of_a_file(self):
        self.script({"gets": ["ok", "not_found"]}, b1=[entry("x", *"abcd"), entry("y", *"ba")])
        self.assertEqual(self.last("-tool", FAKE + " -q  -z", status=1), "files 2, ok 0, damaged 2, chunks 2, sessions 1")
        self.assertEqual(self.log(), ["start -q -z -vault v", "1 GET a", "2 GET b", "3 CLOSE R"])

    def test_a_busy_store(self):
        self.script({"gets": ["busy"] * 4 + ["ok"] + ["busy"] * 5}, b1=[entry("x", *"abc"), entry("y", *"c")])
        self.assertEqual(self.report("-tool", FAKE, status=1)[1:], ["  damaged  x: chunk 2 of 3: unavailable", "  ok       y", "files 2, ok 1, damaged 1, chunks 3, sessions 1"])
        self.assertEqual(self.log()[-2:], ["11 GET c", "12 CLOSE R"])

    def test_wrong_transmissions(self):
        self.script({"gets": ["crc", "crc", "ok", "crc", "busy", "crc", "crc"]}, b1=[entry("x", *"ab"), entry("y", *"c")])
        self.assertEqual(self.report("-tool", FAKE, "-receipts", "r", status=1)[1:], ["  damaged  x: chunk 2 of 2: unavailable", "  ok       y", "files 2, ok 1, damaged 1, chunks 3, sessions 1"])
        self.assertEqual([line.split()[1] for line in self.read("r").splitlines()], ["1", "2", "3", "4", "6", "7", "8"])

    def test_limits_of_sessions(self):
        self.script({"gets": ["ok", "limit"]}, {"gets": ["ok", "ok", "limit"]}, b1=[entry("x", *"abcd")])
        self.assertEqual(self.last(), "files 1, ok 1, damaged 0, chunks 4, sessions 3")
        self.assertEqual(self.log(), ["start -vault v", "1 GET a", "2 GET b", "3 CLOSE R", "start -vault v", "1 GET b", "2 GET c", "3 GET d", "4 CLOSE R", "start -vault v", "1 GET d", "2 CLOSE R"])

    def test_notices_and_messages(self):
        self.script({"start": "notice", "gets": ["notice"], "chatter": True}, b1=[entry("x", *"a")])
        done = self.verify("-tool", FAKE)
        for text in ("hello", "one", "two  words ", "three"):
            self.assertIn(f"notice: {text}\n", done.stderr)
        self.assertGreaterEqual(len(done.stderr), 40000 * len("chatter\n"))


class Crashes(Fake):
    def test_the_chunk_is_asked_for_again_in_a_new_session(self):
        for how in ("crash", "crash-line", "crash-data", "crash-receipt"):
            self.write("log", "")
            self.script({"gets": ["ok", how]}, b1=[entry("x", *"abc")])
            self.assertEqual(self.last("-receipts", "r"), "files 1, ok 1, damaged 0, chunks 3, sessions 2", how)
            self.assertEqual(self.log(), ["start -vault v", "1 GET a", "2 GET b", "start -vault v", "1 GET b", "2 GET c", "3 CLOSE R"], how)
            self.assertEqual([line.split()[1] for line in self.read("r").splitlines()], ["1", "1", "2"], how)

    def test_a_crash_between_requests(self):
        self.script({"gets": ["crash-after"]}, b1=[entry("x", *"ab")])
        self.assertEqual(self.last(), "files 1, ok 1, damaged 0, chunks 2, sessions 2")

    def test_a_crash_before_the_session(self):
        self.script({"start": "crash"}, {"start": "crash-hello"}, b1=[entry("x", *"a")])
        self.assertEqual(self.last(), "files 1, ok 1, damaged 0, chunks 1, sessions 3")

    def test_a_chunk_is_unavailable_after_three_crashes(self):
        self.script({"gets": ["ok", "crash-data"]}, {"gets": ["busy", "crash"]}, {"start": "crash"}, b1=[entry("x", *"abc"), entry("y", *"c")])
        self.assertEqual(self.report("-tool", FAKE, status=1)[1:], ["  damaged  x: chunk 2 of 3: unavailable", "  ok       y", "files 2, ok 1, damaged 1, chunks 3, sessions 4"])
        self.assertEqual(self.log()[-3:], ["start -vault v", "1 GET c", "2 CLOSE R"])

    def test_counts_of_a_chunk_are_not_reset_by_a_new_session(self):
        self.script({"gets": ["busy", "busy", "busy", "crash"]}, {"gets": ["busy", "crc", "crc", "busy"]}, b1=[entry("x", *"a")])
        self.assertEqual(self.report("-tool", FAKE, status=1)[1], "  damaged  x: chunk 1 of 1: unavailable")
        self.assertEqual(self.log()[-2:], ["4 GET a", "5 CLOSE R"])


class ProtocolErrors(Fake):
    def test_wrong_responses(self):
        for how in ("receipt", "number", "code", "huge", "end"):
            self.fails({"gets": ["ok", how]})

    def test_a_wrong_greeting(self):
        self.fails({"start": "token"})

    def test_a_limit_at_the_first_request(self):
        self.fails({"gets": ["ok", "limit"]}, {"gets": ["limit"]})

    def test_wrong_ends_of_sessions(self):
        for how in ("crash", "count", "status"):
            self.fails({"close": how})
            self.fails({"gets": ["ok", "limit"], "close": how})


class Receipts(Fake):
    def test_receipts_of_all_sessions(self):
        self.script({"gets": ["ok", "crc", "limit"]}, {"gets": ["not_found"]}, b1=[entry("x", *"ab"), entry("y", *"c")])
        self.write("r", "old\n" * 100)
        self.verify("-tool", FAKE, "-receipts", "r", status=1)
        expected = []
        for session, gets in enumerate(([(1, "a"), (2, "b")], [(2, "c")])):
            token = receipt = hashlib.md5(b"%d" % session).hexdigest()
            for number, name in gets:
                receipt = hashlib.sha256(f"{receipt} {number} {sha(name)} 1 {zlib.crc32(name.encode()):08x}".encode()).hexdigest()
                expected.append(f"{token} {number} {sha(name)} {receipt}\n")
        self.assertEqual(self.read("r"), "".join(expected))

    def test_a_file_that_cannot_be_written(self):
        self.script(b1=[entry("x", *"ab")])
        self.assertEqual(self.verify("-tool", FAKE, "-receipts", "no/such/folder", status=2).stdout, "")


class Copies(Fake):
    """A tool with mirrors `A` and `B`, all of them fake."""

    def mirrors(self, tool, a=(), b=(), chunks="abcdefgh", **backups):
        self.script(*tool, **backups)
        for name, sessions in (("A", a), ("B", b)):
            self.write(f"script{name}.json", json.dumps({"chunks": {sha(c): c for c in chunks}, "sessions": list(sessions)}))

    def asked(self, name):
        names = {sha(c): c for c in "abcdefgh"}
        if not self.exists(f"log{name}"):
            return []
        lines = [re.sub(r"[0-9a-f]{64}|[0-9a-f]{32}", lambda m: names.get(m[0], "R"), line) for line in self.read(f"log{name}").splitlines()]
        return [line for line in lines if line != "HELLO verify"]

    def both(self, *arguments, **more):
        return self.report("-tool", FAKE, "-mirror", FAKE + " --A", "-mirror", FAKE + "  --B", *arguments, **more)


class Mirrors(Copies):
    def test_mirrors_are_not_started_without_need(self):
        self.mirrors([], b1=[entry("x", *"ab")])
        self.assertEqual(self.both()[-1], "files 1, ok 1, mended 0, damaged 0, chunks 2, sessions 1")
        self.assertEqual((self.asked("A"), self.asked("B")), ([], []))
        self.assertEqual(self.report("-tool", FAKE, "-mirror", "no-such-program")[-1], "files 1, ok 1, mended 0, damaged 0, chunks 2, sessions 1")
        self.assertEqual(self.verify("-mirror", "", status=2).stdout, "")

    def test_chunks_are_taken_from_the_first_mirror_that_has_them(self):
        self.mirrors([{"gets": ["ok", "not_found", "damaged"]}], [{"gets": ["ok", "not_found"]}], b1=[entry("x", *"abc"), entry("y", *"bcb"), entry("z", "a")])
        self.assertEqual(self.both(status=4), [
            "backup b1: 3 files", "  mended   x: 2 of 3 chunks", "  mended   y: 3 of 3 chunks", "  ok       z",
            "files 3, ok 1, mended 2, damaged 0, chunks 3, sessions 3",
        ])
        self.assertEqual(self.asked("A"), ["start --A", "1 GET b", "2 GET c", "3 CLOSE R"])
        self.assertEqual(self.asked("B"), ["start --B", "1 GET c", "2 CLOSE R"])

    def test_the_reason_is_the_one_of_the_tool(self):
        self.mirrors([{"gets": ["damaged"]}], [{"gets": ["not_found"]}], [{"gets": ["busy"] * 5}], b1=[entry("x", *"ab"), entry("y", *"a"), entry("z", *"c")])
        self.assertEqual(self.both(status=1)[1:], [
            "  damaged  x: chunk 1 of 2: damaged", "  damaged  y: chunk 1 of 1: damaged", "  ok       z",
            "files 3, ok 1, mended 0, damaged 2, chunks 2, sessions 3",
        ])
        self.assertEqual(self.asked("A"), ["start --A", "1 GET a", "2 CLOSE R"])
        self.assertEqual(self.asked("B")[-1], "6 CLOSE R")

    def test_counts_are_those_of_each_program(self):
        self.mirrors([{"gets": ["busy", "crc", "crash"]}, {"gets": ["crash"]}, {"gets": ["crash"]}],
                     [{"gets": ["busy", "crash"]}, {"gets": ["crc", "limit"]}, {"gets": ["busy", "busy", "crc", "ok"]}], b1=[entry("x", "a")])
        self.assertEqual(self.both(status=4)[1:], ["  mended   x: 1 of 1 chunks", "files 1, ok 0, mended 1, damaged 0, chunks 1, sessions 6"])
        self.assertEqual(self.asked("B"), [])

    def test_content_is_checked_for_each_place(self):
        wrong = entry("w", "a", chunks=[{"id": sha("a"), "size": 2}], size=2)
        self.mirrors([], b1=[wrong, entry("x", "a"), wrong])
        self.assertEqual(self.both(status=1)[1:], [
            "  damaged  w: chunk 1 of 1: wrong size", "  ok       x", "  damaged  w: chunk 1 of 1: wrong size",
            "files 3, ok 1, mended 0, damaged 2, chunks 1, sessions 3",
        ])
        self.assertEqual(self.asked("A"), ["start --A", "1 GET a", "2 CLOSE R"])

    def test_mended_files_can_be_damaged_as_a_whole(self):
        self.mirrors([{"gets": ["not_found"]}], b1=[entry("x", *"ab", digest=sha("x")), entry("y", "a")])
        self.assertEqual(self.both(status=1)[1:], ["  damaged  x: wrong digest", "  mended   y: 1 of 1 chunks", "files 2, ok 0, mended 1, damaged 1, chunks 2, sessions 2"])

    def test_a_mirror_that_breaks_the_protocol_fails_alone(self):
        for how in ("receipt", "number", "code", "huge", "end"):
            for log in ("log", "logA", "logB"):
                self.write(log, "")
            self.mirrors([{"gets": ["not_found", "damaged", "not_found", "not_found"]}], [{"gets": ["ok", how]}], b1=[entry("x", *"ab"), entry("y", *"ca"), entry("z", "d")])
            self.assertEqual(self.both(status=4)[1:], [
                "  mended   x: 2 of 2 chunks", "  mended   y: 2 of 2 chunks", "  mended   z: 1 of 1 chunks",
                "files 3, ok 0, mended 3, damaged 0, chunks 4, sessions 3",
            ], how)
            self.assertEqual(self.asked("A"), ["start --A", "1 GET a", "2 GET b"], how)
            self.assertEqual(self.asked("B"), ["start --B", "1 GET b", "2 GET c", "3 GET d", "4 CLOSE R"], how)

    def test_a_mirror_that_cannot_be_started_or_closed(self):
        for how in ("crash", "count", "status"):
            for log in ("log", "logA", "logB"):
                self.write(log, "")
            self.mirrors([{"gets": ["not_found"]}], [{"close": how}], b1=[entry("x", "a")])
            done = self.verify("-tool", FAKE, "-mirror", "no-such-program", "-mirror", FAKE + " --A", "-receipts", "r", status=4)
            self.assertEqual(done.stdout.splitlines()[-1], "files 1, ok 0, mended 1, damaged 0, chunks 1, sessions 2", how)
            self.assertNotEqual(done.stderr, "")
            self.assertEqual(len(self.read("r").splitlines()), 1)

    def test_the_tool_still_may_not_break_the_protocol(self):
        self.mirrors([{"gets": ["not_found", "code"]}], b1=[entry("x", *"ab")])
        self.assertEqual(self.verify("-tool", FAKE, "-mirror", FAKE + " --A", status=3).stdout, "")
        self.assertEqual(self.asked("A"), ["start --A", "1 GET a"])
        self.write("log", "")
        self.write("logA", "")
        self.mirrors([{"gets": ["not_found"], "close": "status"}], b1=[entry("x", *"ab")])
        self.assertEqual(self.verify("-tool", FAKE, "-mirror", FAKE + " --A", status=3).stdout, "")
        self.assertEqual(self.asked("A"), ["start --A", "1 GET a"])

    def test_receipts_of_all_programs_in_the_order_of_time(self):
        self.mirrors([{"gets": ["ok", "not_found", "ok"]}], [{"gets": ["crc", "code"]}], b1=[entry("x", *"abc")])
        self.both("-receipts", "r", status=4)
        lines = [line.split() for line in self.read("r").splitlines()]
        tokens = {hashlib.md5(f"0{name}".encode()).hexdigest(): name for name in ("", "A", "B")}
        self.assertEqual([(tokens[token], int(number), id_) for token, number, id_, _ in lines], [("", 1, sha("a")), ("A", 1, sha("b")), ("B", 1, sha("b")), ("", 3, sha("c"))])


class State(Copies):
    def state(self, run, *entries):
        """The text of a state file; entries are chunk, run and size."""
        lines = sorted(f"{sha(c)} {size} {at}\n" for c, at, size in ((e if len(e) == 3 else (*e, 1)) for e in entries))
        return f"vault-state 1 {run}\n" + "".join(lines)

    def run_state(self, *arguments, **more):
        self.write("log", "")
        last = self.report("-tool", FAKE, "-state", "s/state", *arguments, **more)[-1]
        return last, [line.split()[2] for line in self.log() if " GET " in line]

    def test_chunks_are_remembered(self):
        self.write("s/x", "")
        self.script({"gets": ["ok", "not_found"]}, b1=[entry("x", *"ab"), entry("y", *"c")])
        self.assertEqual(self.run_state(status=1), ("files 2, ok 1, damaged 1, chunks 3, sessions 1, known 0", ["a", "b", "c"]))
        self.assertEqual(self.read("s/state"), self.state(1, ("a", 1), ("c", 1)))
        self.script({"gets": ["not_found"]}, b1=[entry("x", *"ab"), entry("y", *"c")])
        self.assertEqual(self.run_state(status=1), ("files 2, ok 1, damaged 1, chunks 1, sessions 1, known 2", ["b"]))
        self.assertEqual(self.read("s/state"), self.state(2, ("a", 1), ("c", 1)))
        self.script(b1=[entry("x", *"ab"), entry("y", *"c")])
        self.assertEqual(self.run_state(), ("files 2, ok 2, damaged 0, chunks 1, sessions 1, known 2", ["b"]))
        self.assertEqual(self.run_state("-backup", "b1"), ("files 2, ok 2, damaged 0, chunks 0, sessions 0, known 3", []))
        self.assertEqual(self.read("s/state"), self.state(4, ("a", 1), ("b", 3), ("c", 1)))
        self.assertEqual(self.program("ls", "-A", "s").stdout, "state\nx\n")

    def test_chunks_are_known_for_some_runs(self):
        self.script(b1=[entry("x", *"abcd")])
        old = self.state(20, ("a", 15), ("b", 16), ("c", 18), ("d", 19))
        self.write("s/state", old)
        self.assertEqual(self.run_state()[1], ["a"])
        self.assertEqual(self.read("s/state"), self.state(21, ("a", 21), ("b", 16), ("c", 18), ("d", 19)))
        self.write("s/state", old)
        self.assertEqual(self.run_state("-recheck", "3"), ("files 1, ok 1, damaged 0, chunks 2, sessions 1, known 2", ["a", "b"]))
        self.write("s/state", old)
        self.assertEqual(self.run_state("-recheck", "1")[1], ["a", "b", "c", "d"])

    def test_sizes_count_in_each_place(self):
        wrong = entry("w", "a", chunks=[{"id": sha("a"), "size": 2}], size=2)
        self.script({"gets": ["ok"]}, b1=[entry("x", "a"), wrong, entry("y", "a")])
        self.write("s/state", self.state(3, ("a", 3)))
        self.assertEqual(self.run_state(status=1), ("files 3, ok 2, damaged 1, chunks 1, sessions 1, known 1", ["a"]))
        self.assertEqual(self.read("s/state"), self.state(4, ("a", 4)))
        self.script({"gets": ["not_found"]}, b1=[entry("x", "a"), wrong, entry("y", "a")])
        self.assertEqual(self.run_state(status=1), ("files 3, ok 1, damaged 2, chunks 1, sessions 1, known 1", ["a"]))
        self.assertEqual(self.read("s/state"), self.state(5))
        self.write("s/state", self.state(6, ("a", 6, 2)))
        self.script({"gets": ["ok"]}, b1=[wrong, entry("x", "a")])
        self.assertEqual(self.run_state()[0], "files 2, ok 2, damaged 0, chunks 1, sessions 1, known 1")
        self.assertEqual(self.read("s/state"), self.state(7, ("a", 7)))
        self.script({"gets": ["ok"]}, b1=[wrong])
        self.assertEqual(self.run_state(status=1)[0], "files 1, ok 0, damaged 1, chunks 1, sessions 1, known 0")
        self.assertEqual(self.read("s/state"), self.state(8, ("a", 8)))

    def test_chunks_of_other_backups_stay_and_those_of_none_go(self):
        self.script(b1=[entry("x", "a")], b2=[entry("y", "b")])
        self.write("s/state", self.state(9, ("b", 1), ("c", 9), ("a", 2)))
        self.assertEqual(self.run_state("-backup", "b1")[0], "files 1, ok 1, damaged 0, chunks 1, sessions 1, known 0")
        self.assertEqual(self.read("s/state"), self.state(10, ("a", 10), ("b", 1)))

    def test_mended_chunks_are_not_remembered(self):
        self.mirrors([{"gets": ["not_found"]}], b1=[entry("x", *"ab")])
        self.write("s/state", self.state(9, ("a", 1)))
        self.assertEqual(self.both("-state", "s/state", status=4)[-1], "files 1, ok 0, mended 1, damaged 0, chunks 2, sessions 2, known 0")
        self.assertEqual(self.read("s/state"), self.state(10, ("b", 10)))

    def test_malformed_states(self):
        self.script(b1=[entry("x", "a")])
        good = self.state(3, ("a", 3), ("b", 1))
        one, two = good.splitlines()[1:]
        for text in ("", "vault-state 1 3", "vault-state 2 3\n", "vault-state 1 03\n", good + "\n", good[:-1], good.replace(f"{sha('a')} 1 3", f"{sha('a')} 1 4"),
                     f"vault-state 1 3\n{two}\n{one}\n", f"vault-state 1 3\n{one}\n{one}\n", good.replace(" 1\n", " 0\n"), good.replace("\n", "\r\n"), good.upper()):
            self.write("s/state", text)
            self.write("r", "old")
            done = self.verify("-tool", "no-such-tool", "-state", "s/state", "-receipts", "r", status=2)
            self.assertEqual((done.stdout, self.read("s/state"), self.read("r")), ("", text, "old"), text)
        self.verify("-state", "v", status=2)

    def test_usage(self):
        self.script(b1=[entry("x", "a")])
        for arguments in (["-recheck", "2"], ["-state", "s", "-recheck", "0"], ["-state", "s", "-recheck", "x"], ["-state", "s", "-list"], ["-list", "-mirror", "x"]):
            self.assertEqual(self.verify(*arguments, status=2).stdout, "", arguments)

    def test_the_state_is_not_touched_after_trouble(self):
        self.script({"gets": ["code"]}, b1=[entry("x", "a")])
        self.write("s/state", self.state(3))
        self.verify("-tool", FAKE, "-state", "s/state", status=3)
        self.script(b1=[entry("x", "a")])
        self.verify("-tool", FAKE, "-state", "s/state", "-receipts", "no/such/folder", status=2)
        self.assertEqual(self.read("s/state"), self.state(3))
        self.assertEqual(self.verify("-tool", FAKE, "-state", "no/such/folder", status=2).stdout, "")
