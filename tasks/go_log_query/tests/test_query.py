import gzip

import lab

TAB = "\t"


def line(second, **fields):
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}Z" + "".join(f" {k}={v}" for k, v in fields.items())


class Query(lab.Case):
    def log(self, *lines, name="api.log"):
        self.write(name, "".join(text + "\n" for text in lines))

    def query(self, *arguments, files=("api.log",), status=0, **more):
        done = self.program("logq", "query", *arguments, *files, **more)
        self.assertEqual(done.status, status, done)
        return done

    def records(self, *arguments, **more):
        return self.query(*arguments, **more).stdout.splitlines()

    def table(self, *arguments, **more):
        """Returns the cells, with the header."""
        return [text.split(TAB) for text in self.records(*arguments, **more)]

    def counts(self, done, read, matched, malformed=0, partial=0):
        text = f"logq: read {read}, matched {matched}, malformed {malformed}, partial {partial}"
        self.assertEqual(done.stderr.splitlines()[-1], text, done)


class Existing(Query):
    def test_cat_and_levels_are_unchanged(self):
        self.log("2026-03-01T11:00:00+01:00  level=info   m=\"a\"", "junk", "", line(1, level="warn", e=""))
        done = self.program("logq", "cat", "api.log")
        self.assertEqual(done.stdout, '2026-03-01T10:00:00Z level=info m=a\n2026-03-01T10:00:01Z level=warn e=""\n', done)
        self.assertEqual(done.stderr, "api.log:2: bad time\n")
        self.assertEqual(self.program("logq", "levels", "api.log").stdout, "info\t1\nwarn\t1\n")
        self.assertEqual(self.program("logq", "levels").status, 2)


class Generations(Query):
    def test_all_generations_are_read_oldest_first(self):
        for number in (1, 2, 9, 10, 11):
            self.log(line(60 - number, n=number), name=f"logs/api.log.{number}")
        self.log(line(60, n=0), name="logs/api.log")
        self.write("logs/api.log.30.gz", gzip.compress((line(1, n=30) + "\n").encode()))
        for other in ("api.log.01", "api.log.0", "api.log.bak", "api.log.1.old", "api.log2", "api.log.3.gz.tmp", "xapi.log", "api.log.", "api.log.4/x"):
            self.log(line(0, n="wrong"), name=f"logs/{other}")
        found = self.records(files=["./logs/api.log"])
        self.assertEqual([text.split("n=")[1] for text in found], ["30", "11", "10", "9", "2", "1", "0"])

    def test_a_compressed_copy_is_ignored_while_the_original_exists(self):
        self.log(line(2, n=1), name="api.log.1")
        self.write("api.log.1.gz", gzip.compress(line(1, n=2).encode())[:20])
        self.assertEqual(self.records(), [line(2, n=1)])

    def test_names_are_no_patterns_and_the_log_itself_may_be_missing(self):
        self.log(line(1, n=1), name="a[b]*.log.2")
        self.log(line(2, n=2), name="ab.log.3")
        self.assertEqual(self.records(files=["a[b]*.log"]), [line(1, n=1)])

    def test_a_line_goes_on_in_the_next_generation(self):
        text = line(5, msg='"in two parts"', n=1)
        self.write("api.log.3", line(1) + "\n" + text[:9])
        self.write("api.log.2.gz", gzip.compress(text[9:20].encode()))
        self.write("api.log.1", "")
        self.write("api.log", text[20:] + "\r\nbad\n" + line(6) + "\n")
        done = self.query()
        self.assertEqual(done.stdout.splitlines(), [line(1), text, line(6)])
        self.assertEqual(done.stderr.splitlines()[0], "api.log:2: bad time")

    def test_a_malformed_line_has_the_place_where_it_starts(self):
        self.write("d/api.log.2.gz", gzip.compress((line(1) + "\n" + line(2) + " a=1 =").encode()))
        self.write("d/api.log.1", "5\n" + line(3) + " a=1 a=2\n\n" + line(4) + ' a="x')
        self.write("d/api.log", 'y\n' + line(5) + " time=1\n")
        done = self.query(files=["./d/api.log"])
        self.assertEqual(
            done.stderr.splitlines()[:-1],
            [
                "./d/api.log.2.gz:2: bad field name",
                "./d/api.log.1:2: duplicate field",
                "./d/api.log.1:4: bad value",
                "./d/api.log:2: duplicate field",
            ],
        )
        self.counts(done, 1, 1, malformed=4)

    def test_the_last_line_without_its_end_is_partial(self):
        self.write("api.log", line(1) + "\n" + line(2))
        self.write("web.log.1", line(3) + "\n" + line(4)[:10])
        self.write("web.log", line(4)[10:] + "\n" + "junk")
        done = self.query(files=["api.log", "web.log"])
        self.assertEqual(done.stdout.splitlines(), [line(1), line(3), line(4)])
        self.counts(done, 3, 3, partial=2)

    def test_a_damaged_generation_is_left_and_the_next_ones_are_read(self):
        self.write("api.log.3", line(1) + "\n" + "begun")
        self.write("api.log.2.gz", b"this is no gzip data")
        self.log(line(2), name="api.log.1")
        # Stored without compression, so that the lines before the end of the data can be read.
        data = gzip.compress((line(3) + "\n" + line(4) + "\n").encode() + b"x" * 9000, compresslevel=0)
        self.write("web.log.1.gz", data[:-4000])
        self.log(line(5), name="web.log")
        done = self.query(files=["api.log", "none.log", "web.log"], status=1)
        self.assertEqual(done.stdout.splitlines(), [line(1), line(2), line(3), line(4), line(5)])
        self.counts(done, 5, 5)


class Lines(Query):
    def test_long_lines_are_malformed_and_reading_goes_on(self):
        limit = 1 << 20
        fits = line(2) + " a="
        fits += "x" * (limit - len(fits))
        self.write("api.log", line(1) + "\n" + fits + "\r\n" + fits + "y\n" + "z" * (3 * limit) + "\n" + line(3) + "\n")
        done = self.query("-where", "not has a")
        self.assertEqual(done.stdout.splitlines(), [line(1), line(3)])
        self.assertEqual(done.stderr.splitlines()[:2], ["api.log:3: line too long", "api.log:4: line too long"])
        self.counts(done, 3, 2, malformed=2)

    def test_reports_are_limited_for_all_logs_together(self):
        self.log(*["bad"] * 9, name="a.log")
        self.log("  ", *["bad"] * 3, name="b.log")
        done = self.query(files=["a.log", "b.log"])
        self.assertEqual(done.stderr.splitlines()[8:-1], ["a.log:9: bad time", "b.log:2: bad time"])
        self.counts(done, 0, 0, malformed=12)
        done = self.query("-max-malformed=0", files=["a.log", "b.log"])
        self.assertEqual(len(done.stderr.splitlines()), 1, done)

    def test_records_are_printed_while_the_input_is_open(self):
        process = self.process("logq", "query", "-where", "n > 1", "-")
        process.send(line(1, n=1) + "\n" + line(2, n=2))
        self.assertEqual(process.line(), line(2, n=2))
        process.send(line(3, n=3) + "\r")
        self.assertEqual(process.line(), line(3, n=3))
        done = process.wait()
        self.assertEqual((done.status, done.stdout), (0, ""), done)
        self.counts(done, 3, 2)

    def test_tail_takes_the_last_matching_records(self):
        self.log(*[line(i, n=i) for i in range(20)], name="api.log.1")
        self.log(*[line(i, n=i) for i in range(20, 31)])
        done = self.query("-tail", "3", "-where", "n < 22")
        self.assertEqual(done.stdout.splitlines(), [line(i, n=i) for i in (19, 20, 21)])
        self.counts(done, 31, 22)
        self.assertEqual(len(self.records("-tail", "99")), 31)
        self.assertEqual(self.table("-tail", "4", "-show", "count,min(n)"), [["count", "min(n)"], ["4", "27"]])


class Expressions(Query):
    def setUp(self):
        self.log(
            line(1, n=1, a="1.0", level="debug", b="x"),
            line(2, n=2, a="10", level="info", b='"x y"'),
            line(3, n=3, a="9", level="warn", b='""'),
            line(4, n=4, a="abc", level="error", b='"and"'),
            line(5, n=5, level="fatal", a="-0.50"),
            line(6, n=6),
        )

    def check(self, expression, *numbers):
        found = self.records("-where", expression)
        self.assertEqual([int(text.split("n=")[1].split()[0]) for text in found], list(numbers), expression)

    def test_numbers_are_compared_as_numbers_and_texts_by_bytes(self):
        self.check("a = 1", 1)
        self.check("a >= 9", 2, 3, 4)  # "abc" >= "9"
        self.check("a < 9", 1, 5)
        self.check('a in (1.00, "-0.5", abc)', 1, 4, 5)
        self.check("a > 1e3", 3, 4)
        self.check("a < abd", 1, 2, 3, 4, 5)

    def test_a_missing_field_makes_comparisons_false(self):
        self.check("a != 10", 1, 3, 4, 5)
        self.check("not a = 10", 1, 3, 4, 5, 6)
        self.check('b = ""', 3)
        self.check('not b ~ "x"', 3, 4, 5, 6)
        self.check("has b", 1, 2, 3, 4)
        self.check("not has level and has time", 6)

    def test_precedence(self):
        self.check("n=1 or n=2 and a=9", 1)
        self.check("(n=1 or n=2) and a=10", 2)
        self.check("not n=1 and n<3", 2)
        self.check("not (n=1 or not n<4)", 2, 3)
        self.check("not not n=1 or(n=2)", 1, 2)

    def test_levels_have_an_order(self):
        self.check("level >= warn", 3, 4)
        self.check("level < warn", 1, 2)
        self.check("level != warn", 1, 2, 4, 5)
        self.check("level = fatal", 5)
        self.check("level in (info, fatal)", 2, 5)

    def test_time_is_compared_as_an_instant(self):
        self.check("time < 2026-03-01T11:00:03+01:00", 1, 2)
        self.check("time = 2026-03-01T10:00:03.000Z or time>=2026-03-01T10:00:06Z", 3, 6)
        self.check("time >= 2026-03-01 and time < 2026-03-02 and n < 3", 1, 2)

    def test_patterns_and_quoted_values(self):
        self.check(r'b ~ "^x( y)?$"', 1, 2)
        self.check('b = "and"', 4)
        self.check(r'b = "x\x20y"', 2)
        self.check("a~^1", 1, 2)

    def test_wrong_expressions(self):
        for text in ("", "a", "a =", "= 1", "a = and", "not", "(a = 1", "a = 1)", "a = 1 b = 2", "a ! 1", "a in ()", "a in (1,)", "a in 1", 'a = "x', "a ~ (", 'a ~ "["',
                     "level > fatal", "time > yesterday", "time ~ 2026", "time in (2026-03-01)", '"a" = 1', "1a = 2", "in = 1", "a == 1", "has"):
            with self.subTest(expression=text):
                done = self.query("-where", text, status=2)
                self.assertEqual(done.stdout, "")
                self.assertNotEqual(done.stderr, "")


class Tables(Query):
    def test_aggregates_are_exact(self):
        self.log(line(1, v="0.1"), line(2, v="0.2"), line(3, v="007.50"), line(4, v="x"), line(5, v="-0.0"), line(6), line(7, v="1e3"))
        shown = self.table("-show", "count,sum(v),min(v),max(v),distinct(v),avg(v)")
        self.assertEqual(shown[1], ["7", "7.8", "0", "7.5", "6", "1.95"])

    def test_large_numbers_keep_their_digits(self):
        self.log(line(1, v="12345678901234567890.000000001"), line(2, v="0.000000002"), line(3, v="100"))
        self.assertEqual(self.table("-show", "sum(v),max(v),p0(v)")[1], ["12345678901234567990.000000003", "12345678901234567890.000000001", "0.000000002"])

    def test_averages_are_rounded_half_to_even(self):
        self.log(*[line(i, **{name: value}) for i, (name, value) in enumerate(
            [("a", "0.002"), ("a", "0.003"), ("b", "0.001"), ("b", "0.002"), ("c", "-0.002"), ("c", "-0.003"), ("d", "-0.0004"), ("e", "2"), ("e", "0"), ("e", "0"), ("f", "-0.0025000001")])])
        self.assertEqual(self.table("-show", ",".join(f"avg({n})" for n in "abcdef"))[1], ["0.002", "0.002", "-0.002", "0", "0.667", "-0.003"])

    def test_percentiles_by_nearest_rank(self):
        self.log(*[line(0, v=(i * 7) % 1000 + 1) for i in range(1000)])
        shown = self.table("-show", "p0(v),p50(v),p99(v),p99.9(v),p99.901(v),p0.1(v),p0.101(v),p29(v),p100(v),p7.0(v)")[1]
        self.assertEqual(shown, ["1", "500", "990", "999", "1000", "1", "2", "290", "1000", "70"])
        self.log(line(1, v=10), line(2, v=9), line(3, v="none"), line(4, v=100))
        self.assertEqual(self.table("-show", "p50(v),p33.333(v),p33.334(v),p67(v)")[1], ["10", "9", "10", "100"])

    def test_groups_and_their_order(self):
        self.log(line(1, s="b"), line(2, s='""'), line(3), line(4, s="-"), line(5, s='"a b"'), line(6, s="a"), line(7, s="b"), line(8, s="10"), line(9, s="9"))
        rows = self.table("-by", "s", "-show", "count")
        self.assertEqual(rows, [["s", "count"], ["-", "1"], ['""', "1"], ['"-"', "1"], ["10", "1"], ["9", "1"], ["a", "1"], ['"a b"', "1"], ["b", "2"]])

    def test_groups_of_several_fields_are_not_mixed_up(self):
        self.log(line(1, a="x", b=r'"y\tz"'), line(2, a=r'"x\ty"', b="z"), line(3, a="x"), line(4, b="x"), line(5, a=r'"x\x00"', b="y"), line(6, a="x", b=r'"\x00y"'))
        rows = self.table("-by", "a,b", "-show", "count")
        self.assertEqual(len(rows), 7, rows)
        self.assertEqual(rows[1:3], [["-", "x", "1"], ["x", "-", "1"]])

    def test_intervals_start_at_multiples_since_1970(self):
        self.log("2026-03-01T00:03:59.9Z", "2026-03-01T01:04:00+01:00", "2026-03-01T00:11:00Z", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z")
        rows = self.table("-every", "7m", "-show", "count")
        self.assertEqual(rows[:3], [["time", "count"], ["1969-12-31T23:53:00Z", "1"], ["1970-01-01T00:00:00Z", "1"]])
        starts = [60 * 7 * ((1772323200 + s) // 420) - 1772323200 for s in (239, 240, 660)]
        texts = sorted({f"2026-03-01T00:{s // 60:02}:00Z" if s >= 0 else f"2026-02-28T23:{60 + s // 60:02}:00Z" for s in starts})
        self.assertEqual([row[0] for row in rows[3:]], texts)

    def test_interval_and_fields_together(self):
        self.log(line(61, s="b", v=4), line(1, s="b", v=1), line(2, s="a", v=2), line(59, s="b", v=5), line(120))
        rows = self.table("-every=1m", "-by", "s", "-show", "count,sum(v)")
        self.assertEqual(rows[1:], [
            ["2026-03-01T10:00:00Z", "a", "1", "2"],
            ["2026-03-01T10:00:00Z", "b", "2", "6"],
            ["2026-03-01T10:01:00Z", "b", "1", "4"],
            ["2026-03-01T10:02:00Z", "-", "1", "-"],
        ])

    def test_order_and_limit(self):
        self.log(line(1, s="a", v=9), line(2, s="b", v=10), line(3, s="c"), line(4, s="d", v="-1"), line(5, s="e", v="10.0"))
        names = lambda *options: [row[0] for row in self.table("-by", "s", "-show", "count,max(v)", *options)[1:]]
        self.assertEqual(names("-order", "max(v)"), ["d", "a", "b", "e", "c"])
        self.assertEqual(names("-order", "-max(v)"), ["b", "e", "a", "d", "c"])
        self.assertEqual(names("-order=-max(v)", "-limit", "2"), ["b", "e"])
        self.assertEqual(names("-order=-count"), ["a", "b", "c", "d", "e"])

    def test_tables_without_records(self):
        self.log(line(1))
        show = "count,sum(v),avg(v),p50(v),distinct(v),min(v)"
        self.assertEqual(self.table("-show", show, "-where", "has v")[1:], [["0", "-", "-", "-", "0", "-"]])
        self.assertEqual(self.records("-show", "count", "-by", "v", "-where", "has v"), ["v\tcount"])
        self.assertEqual(self.records("-show", "count", "-every", "1m", "-by", "v,w", "-where", "has v"), ["time\tv\tw\tcount"])

    def test_wrong_usage(self):
        self.log(line(1))
        for options in (["-by", "a"], ["-order", "count"], ["-every", "1m"], ["-limit", "1"], ["-tail", "0"], ["-show", "count", "-limit", "0"], ["-max-malformed", "-1"],
                        ["-show", ""], ["-show", "count,count"], ["-show", "sum"], ["-show", "sum()"], ["-show", "sum(time)"], ["-show", "p101(v)"], ["-show", "p-1(v)"], ["-show", "p1.2345(v)"],
                        ["-show", "p(v)"], ["-show", "p100.001(v)"], ["-show", "median(v)"], ["-show", "count", "-by", "a,a"], ["-show", "count", "-by", "time"],
                        ["-show", "count", "-every", "1500ms"], ["-show", "count", "-every", "0s"], ["-show", "count", "-order", "sum(v)"], ["-show", "count", "-by", "a", "-order", "a"], ["-nonsense"]):
            with self.subTest(options=options):
                done = self.query(*options, status=2)
                self.assertEqual(done.stdout, "")
        self.assertEqual(self.program("logq", "query").status, 2)
