import json
import struct
import zlib

import lab


def record(kind, key="", value=b""):
    body = struct.pack(">BHI", kind, len(key.encode()), len(value)) + key.encode() + value
    return struct.pack(">I", zlib.crc32(body)) + body


def put(key, value):
    return record(1, key, value.encode())


def delete(key):
    return record(2, key)


def commit(count):
    return record(3, "", struct.pack(">I", count))


def one(*operations):
    return b"".join(operations) + commit(len(operations))


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def parsed(data):
    """Returns the records in a file, which must be good."""
    found = []
    while data:
        kind, key_length, value_length = struct.unpack_from(">BHI", data, 4)
        end = 11 + key_length + value_length
        assert data[:4] == struct.pack(">I", zlib.crc32(data[4:end])), data
        found.append((kind, data[11 : 11 + key_length].decode(), data[11 + key_length : end].decode("latin-1")))
        data = data[end:]
    return found


class Base(lab.Case):
    def store(self, *segments, following=50, leftovers=()):
        """Writes a store of `(number, content)`."""
        self.write("db/MANIFEST", json.dumps({"next": following, "segments": [number for number, _ in segments]}))
        for number, content in [*segments, *leftovers]:
            self.write(f"db/seg-{number}.log", content)

    def kv(self, *commands, status=0, crash=None, segment_bytes=None):
        size = ["--segment-bytes", str(segment_bytes)] if segment_bytes else []
        text = "".join(command + "\n" for command in commands)
        done = self.program("python3", "kv.py", "db", *size, stdin=text, env={"KV_CRASH": crash} if crash else None)
        self.assertEqual(done.status, status, done)
        return done.stdout.splitlines() if status != 2 else (done.stdout, done.stderr)

    def refused(self, message):
        self.assertEqual(self.kv("keys", status=2), ("", f"error: {message}\n"))

    def values(self):
        process = self.process("python3", "kv.py", "db")
        process.send("keys")
        found = {}
        for key in process.line().split()[1:]:
            process.send(f"get {key}")
            found[key] = process.line().removeprefix("value ")
        self.assertEqual(process.wait().status, 0)
        return found

    def files(self):
        done = self.program("sh", "-c", "cd db && for f in *; do echo $f; sha256sum $f; done")
        return done.stdout

    def names(self):
        return sorted(self.files().split()[::3])

    def backup(self):
        done = self.program("python3", "kv.py", "db", "--backup", "backup.jsonl")
        self.assertEqual(done.status, 0, done)
        lines = [json.loads(line) for line in self.read("backup.jsonl").splitlines()]
        self.assertEqual(lines, sorted(lines, key=lambda line: line["key"]))
        return {line["key"]: line["value"] for line in lines}


class Recovery(Base):
    def check_cut(self, tail):
        start = one(put("a", "1"), put("b", "2"))
        self.store((1, start + tail))
        self.assertEqual(self.kv("keys", "put c 3", "get a"), ["keys a b", "ok", "value 1"])
        self.assertEqual(self.read_bytes("db/seg-1.log"), start + one(put("c", "3")))
        self.assertEqual(self.values(), {"a": "1", "b": "2", "c": "3"})

    def test_writes_after_a_torn_record_stay(self):
        for length in (3, 11, 20):
            self.check_cut(one(put("x", "lost value"))[:length])

    def test_writes_after_a_flipped_bit_in_the_last_transaction_stay(self):
        self.check_cut(flipped(one(put("x", "lost")), 12))

    def test_writes_after_zeros_stay(self):
        self.check_cut(bytes(4096))

    def test_operations_of_a_torn_batch_stay_absent(self):
        self.check_cut(put("x", "1") + delete("a"))
        self.check_cut(put("x", "1") + delete("a") + commit(2)[:-1])

    def test_torn_batch_before_a_roll_stays_absent(self):
        self.store((1, one(put("a", "1")) + put("x", "1") + delete("a")))
        self.kv("put b 2", "put c 3", segment_bytes=10)
        self.assertEqual(self.values(), {"a": "1", "b": "2", "c": "3"})

    def test_commit_with_a_wrong_number_is_bad(self):
        self.check_cut(put("x", "1") + delete("a") + commit(1) + one(put("y", "2")))

    def test_everything_after_the_first_bad_record_is_cut_off(self):
        self.check_cut(flipped(one(put("x", "1")), 3) + one(put("y", "2")))

    def test_acknowledged_writes_survive_a_killed_process(self):
        process = self.process("python3", "kv.py", "db", "--segment-bytes", "60")
        for number in range(9):
            process.send(f"put k{number % 4} {number}")
            self.assertEqual(process.line(), "ok")
        process.send("batch")
        process.send("put k1 lost")
        process.kill()
        process.wait()
        self.assertEqual(self.values(), {"k0": "8", "k1": "5", "k2": "6", "k3": "7"})

    def test_segments_are_read_in_the_order_of_the_manifest(self):
        old, new = one(put("a", "old"), put("b", "1")), one(put("a", "new"), delete("b"))
        self.store((12, old), (3, new), (9, one(put("c", "1"))))
        self.assertEqual(self.values(), {"a": "new", "c": "1"})


class Damage(Base):
    good = one(put("a", "1")) + one(put("b", "2"))

    def test_flipped_bit_in_a_sealed_segment(self):
        second = one(put("a", "2"))
        sealed = self.good + second + one(put("c", "3"))
        for place in range(len(self.good), len(self.good) + len(second), 7):
            self.store((1, one(put("a", "0"))), (4, flipped(sealed, place)), (2, b""))
            self.refused(f"corrupt segment 4 at byte {len(self.good)}")

    def test_sealed_segment_that_is_cut_off(self):
        for tail in (put("c", "3"), commit(1)[:-2], put("c", "3") + commit(2)):
            self.store((1, self.good + tail), (2, one(put("d", "4"))))
            self.refused(f"corrupt segment 1 at byte {len(self.good)}")

    def test_failed_opening_changes_nothing(self):
        self.store((4, self.good[:-1]), (2, self.good + b"torn"), leftovers=[(3, self.good)])
        self.write("db/MANIFEST.tmp", "{")
        before = self.files()
        self.refused(f"corrupt segment 4 at byte {len(one(put('a', '1')))}")
        self.assertEqual(self.files(), before)

    def test_missing_segment(self):
        self.store((4, self.good), (2, self.good))
        self.write("db/MANIFEST", json.dumps({"next": 9, "segments": [4, 7, 2]}))
        self.refused("missing segment 7")

    def test_compaction_finds_damage(self):
        self.store((5, one(put("a", "0"))), (4, self.good), (6, one(put("z", "1"))))
        process = self.process("python3", "kv.py", "db")
        process.send("get z")
        self.assertEqual(process.line(), "value 1")
        self.write("db/seg-4.log", flipped(self.good, len(self.good) - 1))
        before = self.files()
        for run in ("5 4", "4 4"):
            process.send(f"compact {run}")
            answer = f"error: corrupt segment 4 at byte {len(one(put('a', '1')))}"
            self.assertEqual(process.line(), answer)
        self.assertEqual(self.files(), before)


class Compaction(Base):
    def filled(self):
        self.store(
            (7, one(put("a", "1"), put("b", "1"), put("c", "1"))),
            (3, one(delete("a"), put("b", "2"), put("d", "1"))),
            (9, one(put("c", "2")) + one(delete("d"), put("e", "1"))),
            (5, one(delete("e"), put("c", "3"), put("f", "1"))),
            following=20,
        )
        self.expected = {"b": "2", "c": "3", "f": "1"}

    def check(self, run):
        self.filled()
        answers = self.kv(f"compact {run}", "keys", "get b", "get c", "get f", "get a", "get e", "segments")
        self.assertEqual(answers[:-1], ["ok 20", "keys b c f", "value 2", "value 3", "value 1", "none", "none"])
        self.assertEqual(self.values(), self.expected)
        return answers[-1]

    def test_run_at_the_old_end(self):
        self.assertEqual(self.check("7 3"), "segments 20 9 5")

    def test_run_in_the_middle(self):
        self.assertEqual(self.check("3 9"), "segments 7 20 5")

    def test_run_of_one_segment(self):
        self.assertEqual(self.check("3 3"), "segments 7 20 9 5")

    def test_content_of_the_new_segment(self):
        self.check("7 9")
        self.assertEqual(self.names(), ["MANIFEST", "seg-20.log", "seg-5.log"])
        found = parsed(self.read_bytes("db/seg-20.log"))
        self.assertEqual(sorted(found[:-1]), [(1, "b", "2"), (1, "c", "2"), (1, "e", "1")])
        self.assertEqual(found[-1], (3, "", "\0\0\0\x03"))

    def test_deletes_stay_in_a_run_behind_the_oldest_segment(self):
        self.check("3 9")
        found = parsed(self.read_bytes("db/seg-20.log"))
        expected = [(1, "b", "2"), (1, "c", "2"), (1, "e", "1"), (2, "a", ""), (2, "d", "")]
        self.assertEqual(sorted(found[:-1]), expected)
        self.assertEqual(self.kv("compact 7 20", "compact 21 21"), ["ok 21", "ok 22"])
        self.assertEqual(self.values(), self.expected)


class Crashes(Base):
    def grown(self):
        """Writes a store whose compaction of 1 and 2 is interrupted."""
        self.store(
            (1, one(put("a", "1"), put("b", "1"))), (2, one(put("c", "1"))), (3, one(put("d", "1"))), following=4
        )

    def check(self, point, command, segment_bytes=None):
        self.grown()
        self.kv(command, status=70, crash=point, segment_bytes=segment_bytes)
        self.assertEqual(self.values(), {"a": "1", "b": "1", "c": "1", "d": "1"})
        # Each of these transactions begins a segment.
        self.kv("delete a", "put b 2", "put e 1", segment_bytes=1)
        expected = {"b": "2", "c": "1", "d": "1", "e": "1"}
        self.assertEqual(self.values(), expected)
        self.assertEqual(self.backup(), expected)
        segments = self.kv("segments")[0].split()[1:]
        self.assertEqual(self.names(), sorted(["MANIFEST", *(f"seg-{number}.log" for number in segments)]))

    def test_crash_in_a_compaction(self):
        for point in ("compact:written", "manifest:written", "compact:published"):
            with self.subTest(point=point):
                self.check(point, "compact 1 2")

    def test_crash_in_a_roll(self):
        for point in ("roll:created", "manifest:written"):
            with self.subTest(point=point):
                self.check(point, "put x 1", segment_bytes=1)

    def test_leftovers_are_removed_and_never_used(self):
        self.store((2, one(put("a", "1"))), following=3, leftovers=[(3, one(put("a", "0"), put("z", "0"))), (10, b"x")])
        self.write("db/MANIFEST.tmp", '{"next": 4')
        self.write("db/notes.txt", "mine")
        self.kv("put b 1", segment_bytes=1)
        self.assertEqual(self.names(), ["MANIFEST", "notes.txt", "seg-2.log", "seg-3.log"])
        self.assertEqual(self.values(), {"a": "1", "b": "1"})


class Backups(Base):
    def test_backup_follows_the_manifest(self):
        self.store(
            (12, one(put("a", "old"), put("b", "1"))), (3, one(put("a", "new"), delete("b"), put("ü", "x y"))),
            (9, one(put("c", "1"))), leftovers=[(40, one(put("a", "leftover")))],
        )
        self.assertEqual(self.backup(), {"a": "new", "c": "1", "ü": "x y"})

    def test_backup_leaves_out_what_opening_cuts_off(self):
        active = one(put("a", "1")) + put("x", "1") + delete("a")
        self.store((1, active), leftovers=[(2, one(put("z", "1")))])
        self.write("db/MANIFEST.tmp", "")
        before = self.files()
        self.assertEqual(self.backup(), {"a": "1"})
        self.assertEqual(self.files(), before)
        self.assertEqual(self.values(), {"a": "1"})

    def test_backup_of_a_damaged_store_fails(self):
        self.store((1, one(put("a", "1")) + b"?"), (2, one(put("b", "1"))))
        self.write("backup.jsonl", "older")
        done = self.program("python3", "kv.py", "db", "--backup", "backup.jsonl")
        self.assertEqual((done.status, done.stderr), (2, f"error: corrupt segment 1 at byte {len(one(put('a', '1')))}\n"))
        self.assertEqual(self.read("backup.jsonl"), "older")


    def held(self, *commands, segment_bytes=None):
        """Executes commands while a backup has read the manifest only. Returns the ended backup."""
        process = self.process("python3", "kv.py", "db", "--backup", "backup.jsonl", env={"KV_HOLD": "backup:listed"})
        self.assertEqual(process.line(), "holding backup:listed")
        self.assertNotIn("error", " ".join(self.kv(*commands, segment_bytes=segment_bytes)))
        process.send("")
        return process.wait()

    def test_backup_during_a_compaction(self):
        self.store((7, one(put("a", "1"), put("b", "1"))), (3, one(delete("a"))), (9, one(put("c", "1"))), (5, one(put("d", "1"))))
        done = self.held("compact 3 9")
        self.assertEqual(done.status, 0, done)
        self.assertEqual({line["key"] for line in map(json.loads, self.read("backup.jsonl").splitlines())}, {"b", "c", "d"})

    def test_backup_while_its_active_segment_is_compacted(self):
        self.store((7, one(put("a", "1"), put("b", "1"))), (3, one(put("c", "1")) + put("x", "torn")))
        done = self.held("put a 2", "compact 7 3", "delete b", segment_bytes=1)
        self.assertEqual(done.status, 0, done)
        values = {line["key"]: line["value"] for line in map(json.loads, self.read("backup.jsonl").splitlines())}
        self.assertIn(values, [{"a": "2", "b": "1", "c": "1"}, {"a": "2", "c": "1"}])

    def test_backup_of_a_store_that_lacks_a_segment_fails(self):
        self.store((7, one(put("a", "1"))), (3, one(put("b", "1"))))
        self.write("db/MANIFEST", json.dumps({"next": 50, "segments": [7, 4, 3]}))
        done = self.program("python3", "kv.py", "db", "--backup", "backup.jsonl")
        self.assertEqual((done.status, done.stderr), (2, "error: missing segment 4\n"))
        self.assertFalse(self.exists("backup.jsonl"))


class Reads(Base):
    def opened(self):
        self.store((4, one(put("a", "first")) + one(put("b", "1"), put("c", "2"))), (2, one(put("d", "3"))))
        process = self.process("python3", "kv.py", "db")
        process.send("get a")
        self.assertEqual(process.line(), "value first")
        return process

    def test_damage_of_a_value_is_noticed(self):
        process = self.opened()
        start = len(one(put("a", "first")))
        content = self.read_bytes("db/seg-4.log")
        second = start + len(put("b", "1"))
        for place in (second, second + 4, second + 6, second + 11, second + 12):
            self.write("db/seg-4.log", flipped(content, place))
            process.send("get c")
            self.assertEqual(process.line(), f"error: corrupt record in segment 4 at byte {second}")
            process.send("get b")
            self.assertEqual(process.line(), "value 1")
        self.write("db/seg-4.log", content[:-20])
        process.send("get c")
        self.assertEqual(process.line(), f"error: corrupt record in segment 4 at byte {second}")
        self.write("db/seg-2.log", flipped(self.read_bytes("db/seg-2.log"), 12))
        process.send("get d")
        self.assertEqual(process.line(), "error: corrupt record in segment 2 at byte 0")

    def test_file_that_is_gone(self):
        process = self.opened()
        self.program("rm", "db/seg-4.log")
        for command in ("get a", "get d"):
            process.send(command)
        self.assertEqual([process.line(), process.line()], ["error: missing segment 4", "value 3"])

    def test_written_values_can_be_read_in_all_places(self):
        commands = ["put a 1", "put \u00fc x y", "batch", "put c ", "delete a", "put d 4", "end"]
        answers = self.kv(*commands, "get \u00fc", "get c", "get d", "compact 1 2", "get \u00fc", "get a", "put e 5", "get e", segment_bytes=10)
        self.assertEqual(answers[3:], ["value x y", "value ", "value 4", "ok 4", "value x y", "none", "ok", "value 5"])


class Snapshots(Base):
    def test_snapshot_keeps_its_content(self):
        commands = ["put a 1", "put b 1", "snapshot", "put a 2", "delete b", "put c 3", "snapshot", "delete a", "list 1", "read 1 a", "read 1 b", "read 1 c"]
        commands += ["list 2", "read 2 a", "read 2 b", "read 2 c", "keys", "get a", "release 1", "list 2", "read 2 a", "snapshot", "list 3"]
        answers = self.kv(*commands)
        self.assertEqual(answers[:8], ["ok", "ok", "ok 1", "ok", "ok", "ok", "ok 2", "ok"])
        expected = ["keys a b", "value 1", "value 1", "none", "keys a c", "value 2", "none", "value 3", "keys c", "none"]
        self.assertEqual(answers[8:], [*expected, "ok", "keys a c", "value 2", "ok 3", "keys c"])

    def test_numbers_that_are_no_open_snapshot(self):
        commands = ["put a 1", "snapshot", "snapshot", "release 1", "read 1 a", "list 3", "release x", "release 02", "read  a", "list", "release 1", "list 2"]
        answers = self.kv(*commands)[3:]
        missing = [f"error: there is no snapshot {text}" for text in ("1", "3", "x", "02", "", "", "1")]
        self.assertEqual(answers, ["ok", *missing, "keys a"])
        self.assertEqual(self.kv("list 1", "snapshot"), ["error: there is no snapshot 1", "ok 1"])

    def filled(self):
        self.store(
            (7, one(put("a", "1"), put("b", "1"), put("c", "1"))), (3, one(delete("a"), put("b", "2"))), (9, one(put("d", "1"))), following=20
        )

    def test_compaction_with_snapshots(self):
        self.filled()
        process = self.process("python3", "kv.py", "db", "--segment-bytes", "10")
        steps = [
            ("snapshot", "ok 1"), ("put b 3", "ok"), ("delete c", "ok"), ("snapshot", "ok 2"), ("compact 7 9", "ok 22"), ("snapshot", "ok 3"),
            ("read 1 b", "value 2"), ("list 1", "keys b c d"), ("read 2 b", "value 3"), ("read 2 d", "value 1"), ("read 3 d", "value 1"), ("get b", "value 3"),
        ]
        for command, answer in steps:
            process.send(command)
            self.assertEqual(process.line(), answer, command)
        everything = ["MANIFEST", "seg-20.log", "seg-21.log", "seg-22.log", "seg-3.log", "seg-7.log", "seg-9.log"]
        self.assertEqual(self.names(), everything)
        for command, answers in (
            ("release 1", everything), ("read 2 d", everything), ("release 3", everything),
            ("release 2", ["MANIFEST", "seg-20.log", "seg-21.log", "seg-22.log"]), ("compact 22 20", ["MANIFEST", "seg-21.log", "seg-23.log"]),
        ):
            process.send(command)
            self.assertNotIn("error", process.line())
            self.assertEqual(self.names(), answers, command)

    def test_later_snapshots_need_no_earlier_files(self):
        self.filled()
        process = self.process("python3", "kv.py", "db")
        steps = [("snapshot", "ok 1"), ("compact 7 3", "ok 20"), ("snapshot", "ok 2"), ("release 1", "ok")]
        for command, answer in steps:
            process.send(command)
            self.assertEqual(process.line(), answer, command)
        self.assertEqual(self.names(), ["MANIFEST", "seg-20.log", "seg-9.log"])
        process.send("read 2 b")
        self.assertEqual(process.line(), "value 2")

    def test_snapshot_over_several_compactions(self):
        self.filled()
        commands = ["snapshot", "compact 7 3", "put b 3", "put e 1", "snapshot", "segments", "compact 20 9", "read 1 b", "read 1 c", "read 2 b", "read 2 e"]
        commands += ["put f 1", "compact 23 21", "read 1 b", "read 1 d", "read 2 b", "list 2", "get b"]
        answers = self.kv(*commands, segment_bytes=10)
        expected = ["ok 1", "ok 20", "ok", "ok", "ok 2", "segments 20 9 21 22", "ok 23", "value 2", "value 1", "value 3", "value 1", "ok", "ok 25"]
        self.assertEqual(answers, [*expected, "value 2", "value 1", "value 3", "keys b c d e", "value 3"])

    def test_snapshot_files_go_when_the_program_ends(self):
        for last in ("quit", "get a"):
            self.filled()
            self.kv("snapshot", "compact 7 3", last)
            self.assertEqual(self.names(), ["MANIFEST", "seg-20.log", "seg-9.log"])
            self.program("rm", "-r", "db")

    def test_snapshot_files_after_a_crash(self):
        self.filled()
        self.kv("snapshot", "compact 7 3", "compact 20 20", status=70, crash="compact:published")
        self.filled()
        process = self.process("python3", "kv.py", "db")
        for command in ("snapshot", "compact 7 3"):
            process.send(command)
            process.line()
        process.kill()
        process.wait()
        self.assertIn("seg-7.log", self.names())
        self.assertEqual(self.backup(), {"b": "2", "c": "1", "d": "1"})
        self.assertEqual(self.values(), {"b": "2", "c": "1", "d": "1"})
        self.assertEqual(self.names(), ["MANIFEST", "seg-20.log", "seg-9.log"])

    def test_damage_in_a_snapshot(self):
        self.filled()
        process = self.process("python3", "kv.py", "db")
        process.send("snapshot")
        process.send("compact 7 3")
        self.assertEqual([process.line(), process.line()], ["ok 1", "ok 20"])
        content = self.read_bytes("db/seg-3.log")
        self.write("db/seg-3.log", flipped(content, len(delete("a")) + 12))
        for command, answer in (("read 1 b", f"error: corrupt record in segment 3 at byte {len(delete('a'))}"), ("get b", "value 2")):
            process.send(command)
            self.assertEqual(process.line(), answer)

    def test_snapshots_of_a_large_store(self):
        self.store((1, one(*(put(f"k{number}", str(number)) for number in range(150_000)))), (2, b""))
        rounds = 15_000
        lines = [line for number in range(1, rounds + 1) for line in ("snapshot", f"read {number} k7", f"release {number}")]
        answers = self.kv(*lines)
        self.assertEqual(answers[-3:], [f"ok {rounds}", "value 7", "ok"])
        self.assertEqual(len(answers), 3 * rounds)


class Conditions(Base):
    def batch(self, *lines):
        return self.kv("batch", *lines, "end")[0]

    def test_batch_whose_conditions_are_met(self):
        self.store((1, one(put("a", "1 2"), put("e", ""))))
        self.assertEqual(self.batch("expect a 1 2", "put a 3", "expect b", "put b 1", "expect e "), "ok")
        self.assertEqual(self.values(), {"a": "3", "b": "1", "e": ""})

    def test_conditions_look_at_the_store_before_the_batch(self):
        self.store((1, one(put("a", "1"))))
        self.assertEqual(self.batch("put a 2", "expect a 2"), "conflict a")
        self.assertEqual(self.batch("delete a", "expect a 1", "put b 1", "expect b"), "ok")
        self.assertEqual(self.values(), {"b": "1"})

    def test_first_condition_that_is_not_met(self):
        content = one(put("a", "1"), put("e", ""))
        self.store((1, content))
        for lines, key in (
            (("expect a 1", "expect c x", "expect a"), "c"), (("expect a", "expect c x"), "a"), (("put z 1", "expect e"), "e"), (("expect c ",), "c"), (("expect a 1 ",), "a"),
        ):
            self.assertEqual(self.batch(*lines), f"conflict {key}")
        self.assertEqual(self.read_bytes("db/seg-1.log"), content)

    def test_batch_of_conditions_only_writes_nothing(self):
        content = one(put("a", "1"))
        self.store((1, content))
        self.assertEqual(self.kv("batch", "expect a 1", "end", "segments", segment_bytes=1), ["ok", "segments 1"])
        self.assertEqual(self.read_bytes("db/seg-1.log"), content)

    def test_invalid_lines(self):
        self.store((1, one(put("a", "1"))))
        self.assertEqual(self.batch("expect", "put b 1"), "error: invalid operation `expect`")
        self.assertEqual(self.batch("expect a 2", "put b"), "error: invalid operation `put b`")
        self.assertEqual(self.kv("expect a 1", "keys"), ["error: unknown command `expect`", "keys a"])


class Unchanged(Base):
    def test_commands_and_files_of_a_new_store(self):
        commands = ["put a 1 2", "batch", "put b  x", "delete a", "put a", "end", "batch", "put b  x", "delete a", "end"]
        answers = self.kv(*commands, "delete a", "get a", "get b", "keys", "put c ", "get c", "compact 1 1")
        invalid = "error: invalid operation `put a`"
        expected = ["ok", invalid, "ok", "none", "none", "value  x", "keys b", "ok", "value ", "error: segment 1 is active"]
        self.assertEqual(answers, expected)
        content = one(put("a", "1 2")) + one(put("b", " x"), delete("a")) + one(put("c", ""))
        self.assertEqual(self.read_bytes("db/seg-1.log"), content)
        self.assertEqual(json.loads(self.read("db/MANIFEST")), {"next": 2, "segments": [1]})
