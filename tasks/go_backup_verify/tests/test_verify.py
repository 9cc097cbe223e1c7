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
