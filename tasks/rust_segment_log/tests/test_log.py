import struct
import zlib

import lab

LOWEST = -(1 << 63)
HIGHEST = (1 << 63) - 1


def uvarint(n, size=None):
    out = bytearray()
    while n >= 0x80 or (size and len(out) < size - 1):
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def svarint(n):
    return uvarint((n << 1 ^ n >> 63) & (1 << 64) - 1)


def wrapped(n):
    return (n - LOWEST) % (1 << 64) + LOWEST


def field(data):
    return svarint(-1) if data is None else svarint(len(data)) + data


def batch(base, records, flags=0, extension=b"", length_size=None, bad_crc=False):
    """Encodes (offset, time, key, value) tuples."""
    first, base_time = records[0][0], records[0][1]
    body = uvarint(first - base) + svarint(base_time) + bytes([flags]) + uvarint(len(records))
    for offset, time, key, value in records:
        own = uvarint(offset - first) + svarint(wrapped(time - base_time)) + field(key) + field(value) + extension
        body += uvarint(len(own)) + own
    crc = zlib.crc32(body) ^ (1 if bad_crc else 0)
    return uvarint(4 + len(body), length_size) + struct.pack("<I", crc) + body


def header(base):
    start = b"SEG1" + struct.pack("<Q", base)
    return start + struct.pack("<I", zlib.crc32(start))


def index(base, *entries):
    return b"IDX1" + struct.pack("<Q", base) + b"".join(struct.pack("<IIq", *entry) for entry in entries)


def simple(base, offset, time=None, size=3):
    return batch(base, [(offset, offset * 10 if time is None else time, b"k%d" % offset, b"v" * size)])


def shown(*records):
    def text(data):
        return "\\N" if data is None else data.decode()

    return "".join(f"{offset}\t{time}\t{text(key)}\t{text(value)}\n" for offset, time, key, value in records)


def name(base, extension="seg"):
    return f"log/{base:020}.{extension}"


class Base(lab.Case):
    def seglog(self, *arguments, stdin="", status=0):
        done = self.program("{build}/debug/seglog", *arguments, stdin=stdin)
        self.assertEqual(done.status, status, done)
        return done.stdout

    def cat(self, *arguments, status=0):
        return self.seglog("cat", "log", *arguments, status=status)

    def offsets(self, *arguments, status=0):
        return [int(line.split("\t")[0]) for line in self.cat(*arguments, status=status).splitlines()]

    def find(self, time):
        return self.seglog("find", "log", str(time)).split("\t")[0].strip()

    def append(self, text, *options, status=0):
        return self.seglog("append", "log", *options, stdin=text, status=status)

    def segment(self, base, *batches):
        """Writes a segment and returns the positions of its batches, and its end."""
        positions, content = [], header(base)
        for one in batches:
            positions.append(len(content))
            content += one
        self.write(name(base), content)
        return [*positions, len(content)]


class Records(Base):
    def test_appended_records_come_back(self):
        self.assertEqual(self.append("5\ta\tx\n7\t\\N\ty\n\n9\tb\t\\N\n"), "0 1\n2 2\n")
        self.assertEqual(self.cat(), "0\t5\ta\tx\n1\t7\t\\N\ty\n2\t9\tb\t\\N\n")
        self.assertEqual(self.cat("--from", "1", "--count", "1"), "1\t7\t\\N\ty\n")

    def test_append_writes_the_documented_bytes(self):
        self.append("5\ta\tx\n-7\t\\N\t\n\n9\tb\t\\N\n")
        expected = batch(0, [(0, 5, b"a", b"x"), (1, -7, None, b"")]) + batch(0, [(2, 9, b"b", None)])
        self.assertEqual(self.read_bytes(name(0)), header(0) + expected)
        self.assertEqual(self.read_bytes(name(0, "idx")), index(0))

    def test_extensions_of_records_are_ignored(self):
        records = [(0, 1, b"a", b"x"), (1, 2, b"b", b"y")]
        self.segment(0, batch(0, records, extension=b"\x02\x01\xff"), simple(0, 2))
        self.assertEqual(self.cat(), shown(*records, (2, 20, b"k2", b"vvv")))

    def test_extreme_times(self):
        self.append(f"{LOWEST}\ta\tx\n\n{HIGHEST}\tb\ty\n{LOWEST}\tc\tz\n")
        self.assertEqual(self.cat(), shown((0, LOWEST, b"a", b"x"), (1, HIGHEST, b"b", b"y"), (2, LOWEST, b"c", b"z")))
        self.assertEqual(self.find(HIGHEST), "1")

    def test_tenth_byte_of_an_integer_is_zero_or_one(self):
        one = batch(0, [(0, 1, b"a", b"x")], length_size=10)
        self.segment(0, one, simple(0, 1))
        self.assertEqual(self.offsets(), [0, 1])
        one = bytearray(batch(0, [(1, 1, b"a", b"x")], length_size=10))
        one[9] = 2
        self.segment(0, simple(0, 0), bytes(one), simple(0, 2))
        self.assertEqual(self.offsets(status=3), [0])

    def test_control_batches_are_hidden_and_take_offsets(self):
        self.segment(0, simple(0, 0), batch(0, [(1, 5, None, b""), (2, 6, None, b"")], flags=1), simple(0, 3))
        self.assertEqual(self.offsets(), [0, 3])
        self.assertIn(" batches=3 records=2 next=4 ", self.seglog("verify", "log"))

    def test_reserved_flags_are_ignored_and_find_skips_control_batches(self):
        self.segment(0, batch(0, [(0, 5, b"a", b"x")], flags=6), batch(0, [(1, 100, None, b"")], flags=7), simple(0, 2, 50))
        self.assertEqual(self.offsets(), [0, 2])
        self.assertEqual(self.find(6), "2")


class Repeats(Base):
    def test_a_repeated_batch_is_returned_once(self):
        one = batch(0, [(1, 10, b"a", b"x"), (2, 11, b"b", b"y")])
        self.segment(0, simple(0, 0), one, one, simple(0, 3))
        self.assertEqual(self.offsets(), [0, 1, 2, 3])

    def test_the_first_copy_counts_and_new_records_at_the_end_are_kept(self):
        first, again = (0, 10, b"a", b"first"), (0, 99, b"a", b"again")
        self.segment(0, batch(0, [first]), batch(0, [again, (1, 12, b"b", b"new")]))
        self.assertEqual(self.cat(), shown(first, (1, 12, b"b", b"new")))
        self.assertEqual(self.find(90), "none")

    def test_repeats_after_control_records_and_at_the_end(self):
        self.segment(0, simple(0, 0), batch(0, [(4, 1, None, b"")], flags=1), simple(0, 3), simple(0, 4), simple(0, 5))
        self.assertEqual(self.offsets(), [0, 5])
        self.segment(0, batch(0, [(n, n, b"k", b"v") for n in range(4)]), simple(0, 1))
        self.assertEqual(self.append("1\ta\tb\n"), "4 4\n")
        self.assertEqual(self.offsets(), [0, 1, 2, 3, 4])


class Overlap(Base):
    def setUp(self):
        self.segment(0, simple(0, 0), batch(0, [(n, 500 + n, b"old", b"") for n in range(1, 6)]))
        self.segment(3, batch(3, [(n, 600 + n, b"new", b"") for n in range(3, 5)]), simple(3, 7, 700))

    def test_the_next_segment_counts_from_its_base_offset_on(self):
        rows = [line.split("\t")[:3] for line in self.cat().splitlines()]
        self.assertEqual(
            rows,
            [["0", "0", "k0"], ["1", "501", "old"], ["2", "502", "old"], ["3", "603", "new"], ["4", "604", "new"], ["7", "700", "k7"]],
        )
        self.assertEqual(self.offsets("--from", "5"), [7])
        self.assertEqual(self.offsets("--from", "2"), [2, 3, 4, 7])

    def test_find_and_verify_skip_replaced_records(self):
        self.assertEqual(self.find(503), "3")
        self.assertEqual(self.find(502), "2")
        lines = self.seglog("verify", "log").splitlines()
        self.assertIn(" batches=2 records=3 next=6 ", lines[0])
        self.assertIn(" batches=2 records=3 next=8 ", lines[1])


class Tails(Base):
    def torn(self, tail):
        end = self.segment(0, simple(0, 0), simple(0, 1), tail)[2]
        self.assertEqual(self.offsets(), [0, 1])
        self.assertIn(f" batches=2 records=2 next=2 end={end} torn", self.seglog("verify", "log"))
        self.assertEqual(self.append("1\ta\tb\n"), "2 2\n")
        self.assertEqual(self.read_bytes(name(0)), header(0) + simple(0, 0) + simple(0, 1) + batch(0, [(2, 1, b"a", b"b")]))

    def test_batch_that_is_cut_off(self):
        self.torn(simple(0, 2)[:-1])
        self.torn(b"\x83")

    def test_wrong_checksum_at_the_very_end(self):
        self.torn(batch(0, [(2, 1, b"a", b"x")], bad_crc=True))

    def test_wrong_checksum_before_other_bytes_is_corruption_and_stops_writers(self):
        end = self.segment(0, simple(0, 0), batch(0, [(1, 1, b"a", b"x")], bad_crc=True), b"\x00\x00")[1]
        self.assertEqual(self.offsets(status=3), [0])
        self.assertIn(f" next=1 end={end} corrupt", self.seglog("verify", "log", status=3))
        before = self.read_bytes(name(0))
        self.append("1\ta\tb\n", status=3)
        self.assertEqual(self.read_bytes(name(0)), before)

    def test_older_segments_have_no_torn_tails(self):
        for tail in (simple(0, 2)[:-1], b"\x83", batch(0, [(2, 1, b"a", b"x")], bad_crc=True)):
            end = self.segment(0, simple(0, 0), simple(0, 1), tail)[2]
            self.segment(3, simple(3, 3))
            self.assertEqual(self.offsets(status=3), [0, 1])
            lines = self.seglog("verify", "log", status=3).splitlines()
            self.assertIn(f" end={end} corrupt", lines[0])
            self.assertIn(" batches=1 records=1 next=4 ", lines[1])

    def test_allocated_space_ends_the_data(self):
        self.segment(0, simple(0, 0), bytes(40))
        end = self.segment(1, simple(1, 1), bytes(40))[1]
        self.assertEqual(self.offsets(), [0, 1])
        self.assertIn(f" end={end} clean", self.seglog("verify", "log").splitlines()[1])
        self.assertEqual(self.append("1\ta\tb\n"), "2 2\n")
        self.assertEqual(self.read_bytes(name(1)), header(1) + simple(1, 1) + batch(1, [(2, 1, b"a", b"b")]))

    def test_newest_segment_without_a_whole_header(self):
        self.segment(0, simple(0, 0), simple(0, 1))
        self.write(name(2), header(2)[:9])
        self.assertEqual(self.offsets(), [0, 1])
        self.assertIn(" batches=0 records=0 next=2 end=0 torn", self.seglog("verify", "log"))
        self.assertEqual(self.append("1\ta\tb\n"), "2 2\n")
        self.assertEqual(self.read_bytes(name(2)), header(2) + batch(2, [(2, 1, b"a", b"b")]))
        self.write(name(0), header(0)[:9])
        self.segment(2, simple(2, 2))
        self.assertEqual(self.offsets(status=3), [])


class Writing(Base):
    def test_offsets_continue_after_control_batches_and_gaps(self):
        self.segment(0, simple(0, 0), batch(0, [(1, 5, None, b""), (2, 6, None, b"")], flags=1))
        self.assertEqual(self.append("1\ta\tb\n"), "3 3\n")
        self.segment(5, batch(5, [(5, 1, b"a", b"x"), (9, 1, b"b", b"y")]))
        self.assertIn(" next=10 ", self.seglog("verify", "log"))
        self.assertEqual(self.append("1\ta\tb\n"), "10 10\n")
        self.assertEqual(self.offsets(), [0, 3, 5, 9, 10])

    def test_a_new_segment_begins_at_the_limit(self):
        limit = str(16 + len(simple(0, 0)))
        self.segment(0, simple(0, 0), batch(0, [(1, 5, None, b"")], flags=1))
        self.assertEqual(self.append("1\ta\tb\n\n2\tc\td\n", "--segment-bytes", limit), "2 2\n3 3\n")
        self.assertEqual(self.read_bytes(name(2))[:16], header(2))
        self.assertEqual(self.offsets(), [0, 2, 3])

    def test_large_batches(self):
        records = [[(n, n, b"k%d" % n, b"v" * size)] for n, size in enumerate((3, 30000, 5, 9000, 20000, 7))]
        positions = self.segment(0, *(batch(0, one) for one in records))
        self.assertIn(f" batches=6 records=6 next=6 end={positions[-1]} clean", self.seglog("verify", "log"))
        before = self.read_bytes(name(0))
        self.assertEqual(self.append("1\ta\tb\n"), "6 6\n")
        self.assertEqual(self.read_bytes(name(0)), before + batch(0, [(6, 1, b"a", b"b")]))


class Indexes(Base):
    def test_reindex_writes_the_documented_entries(self):
        control = batch(0, [(2, 999, None, b"")], flags=1)
        batches = [simple(0, 0, -50), simple(0, 1, -20), control, simple(0, 1, -10), simple(0, 3, -90), simple(0, 4, -90)]
        at = self.segment(0, *batches)
        self.seglog("reindex", "log", "--index-every", "1")
        expected = index(0, (1, at[1], -50), (2, at[2], -20), (3, at[4], -10), (4, at[5], -10))
        self.assertEqual(self.read_bytes(name(0, "idx")), expected)
        at = self.segment(7, batch(7, [(7, 5, None, b"")], flags=1), simple(7, 8), simple(7, 9))
        self.seglog("reindex", "log", "--index-every", "1")
        self.assertEqual(self.read_bytes(name(7, "idx")), index(7, (1, at[1], LOWEST), (2, at[2], 80)))

    def test_entries_keep_their_distance_across_large_batches(self):
        at = self.segment(0, *(simple(0, n, size=size) for n, size in enumerate((9000, 10, 9000, 10, 10, 10))))
        self.seglog("reindex", "log")
        self.assertEqual(self.read_bytes(name(0, "idx")), index(0, (1, at[1], 0), (3, at[3], 20)))
        self.assertEqual(self.offsets("--from", "4"), [4, 5])

    def test_a_writer_continues_the_index_of_an_earlier_one(self):
        times = [70, 10, 90, 20, 30, 40]
        for time in times:
            self.append(f"{time}\tk\t{'v' * 50}\n", "--index-every", "100")
        at, end = [], 16
        for offset, time in enumerate(times):
            at.append(end)
            end += len(batch(0, [(offset, time, b"k", b"v" * 50)]))
        self.assertEqual(self.read_bytes(name(0, "idx")), index(0, (2, at[2], 70), (4, at[4], 90)))

    def test_find_with_a_time_that_equals_an_entry(self):
        at = self.segment(0, simple(0, 0, 5), simple(0, 1, 70), simple(0, 2, 60), simple(0, 3, 70), simple(0, 4, 80))
        self.write(name(0, "idx"), index(0, (2, at[2], 70), (4, at[4], 70)))
        self.assertEqual([self.find(time) for time in (6, 70, 71, 81)], ["1", "1", "4", "none"])

    def test_repeats_after_an_entry_stay_hidden(self):
        at = self.segment(0, simple(0, 0, 1), simple(0, 1, 2), simple(0, 2, 3), simple(0, 2, 9), simple(0, 3, 4))
        self.write(name(0, "idx"), index(0, (2, at[2], 2)))
        self.assertEqual(self.offsets("--from", "2"), [2, 3])
        self.assertEqual(self.find(4), "3")

    def test_readers_ignore_entries_without_their_batch(self):
        at = self.segment(0, *(simple(0, n) for n in range(5)))
        for wrong in ((3, at[3] + 2, 20), (3, at[5], 20), (3, at[5] + 900, 20), (3, at[4], 30), (3, 3, 20)):
            self.write(name(0, "idx"), index(0, (1, at[1], 0), wrong))
            self.assertEqual(self.offsets("--from", "3"), [3, 4], wrong)
            self.assertEqual(self.offsets("--from", "2"), [2, 3, 4], wrong)

    def test_entries_of_a_torn_tail_are_removed_before_appending(self):
        self.check_removal(simple(0, 3)[:-2])

    def test_entries_of_a_lost_tail_are_removed_before_appending(self):
        self.check_removal(b"")

    def check_removal(self, tail):
        at = self.segment(0, *(simple(0, n) for n in range(3)), tail)
        self.write(name(0, "idx"), index(0, (2, at[2], 10), (3, at[3], 20), (4, at[3] + 40, 30)))
        text = "".join(f"{time}\tk\t{'v' * size}\n\n" for time, size in ((7, 3), (5, 9), (80, 1)))
        self.append(text, "--index-every", "1")
        new = [batch(0, [(3, 7, b"k", b"vvv")]), batch(0, [(4, 5, b"k", b"v" * 9)])]
        four = at[3] + len(new[0])
        five = four + len(new[1])
        self.assertEqual(
            self.read_bytes(name(0, "idx")), index(0, (2, at[2], 10), (3, at[3], 20), (4, four, 20), (5, five, 20))
        )
        self.assertEqual(self.offsets("--from", "4"), [4, 5])

    def test_incomplete_entries_and_other_indexes_are_replaced(self):
        at = self.segment(0, simple(0, 0), simple(0, 1))
        self.write(name(0, "idx"), index(0, (1, at[1], 0)) + b"\x02\x00\x00")
        self.assertEqual(self.offsets("--from", "1"), [1])
        self.append("1\ta\tb\n", "--index-every", "1")
        self.assertEqual(self.read_bytes(name(0, "idx")), index(0, (1, at[1], 0), (2, at[2], 10)))
        at = self.segment(0, *(simple(0, n) for n in range(3)))
        self.write(name(0, "idx"), index(9, (2, at[2], 10)))
        self.assertEqual(self.offsets("--from", "1"), [1, 2])
        self.append("1\ta\tb\n", "--index-every", "1000")
        self.assertTrue(self.read_bytes(name(0, "idx")).startswith(index(0)))
