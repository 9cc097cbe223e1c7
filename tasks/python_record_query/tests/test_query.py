import json

import lab

GONE = object()


class Base(lab.Case):
    def query(self, text, *records):
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        done = self.program("python3", "rq.py", "query", text, stdin="".join(line + "\n" for line in lines))
        self.assertEqual(done.status, 0, done)
        return done.stdout.splitlines()

    def rows(self, text, *records):
        return [json.loads(line) for line in self.query(text, *records)]

    def values(self, record, expected):
        """Checks the values of expressions for a record, as JSON texts."""
        items = ", ".join(f"{expr} as c{place}" for place, expr in enumerate(expected))
        (line,) = self.query(f"select {items}", record)
        found = json.loads(line, parse_int=str, parse_float=str)
        for place, (expr, value) in enumerate(expected.items()):
            with self.subTest(expr=expr):
                self.assertIs(f"c{place}" in found, value is not GONE, found.get(f"c{place}"))
                if value is not GONE:
                    self.assertEqual(found[f"c{place}"], value)

    def invalid(self, expected):
        started = [(text, self.process("python3", "rq.py", "query", text)) for text in expected]
        for text, process in started:
            position = expected[text]
            with self.subTest(query=text):
                done = process.wait()
                self.assertEqual((done.status, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done)
                prefix = "rq.py: error: query:"
                self.assertTrue(done.stderr.startswith(prefix), done)
                line, column = done.stderr.removeprefix(prefix).split(":")[:2]
                self.assertEqual(f"{line}:{column}", position)


class Expressions(Base):
    def test_precedence_and_nesting(self):
        self.values({"a": 2, "t": True, "f": False}, {
            "1 + 2 * 3": "7", "10 - 2 - 3": "5", "16 / 4 / 2": "2", "-a * 3 + 1": "-5", "2 - -a": "4", "- - a": "2",
            "17 % 5 * 2": "4", "(1 + 2) * 3": "9",
            "t or f and f": True, "(t or f) and f": False, "not f and f": False, "not (f and f)": True,
            "not t or t": True, "not a = 3": True, "not not t": True, "not 'b' in ('a', 'b')": False,
            "a + 1 = 3 and 4 > 3": True, "'x' || 'y' = 'xy'": True, "'a' || 'b' like 'a' || '_'": True,
            "a between 1 and 2 and f": False, "a + 1 between a and 2 + 1": True, "not a between 3 and 4": True,
        })
        deep = 50
        self.values({"a": 1}, {
            "(" * deep + "a" + ")" * deep: "1", "round(" * deep + "a" + ")" * deep: "1",
            "true in (" * deep + "true" + ")" * deep: True,
        })

    def test_three_valued_logic(self):
        self.values({"t": True, "f": False, "n": None, "one": 1}, {
            "t and m": GONE, "m and t": GONE, "f and m": False, "m and f": False, "m and m": GONE,
            "t or m": True, "m or t": True, "f or m": GONE, "m or f": GONE, "not m": GONE,
            "n and f": False, "n or t": True, "not n": GONE, "one and t": GONE, "one or t": True, "t and 'x'": GONE,
            "not one": GONE, "one or one": GONE, "f and one": False,
        })

    def test_comparisons(self):
        self.values({"n": None, "t": True, "one": 1, "l": [1, {"a": True, "b": None}], "k": [1.0, {"b": None, "a": True}]}, {
            "one = 1.0": True, "one = 1e0": True, "t = 1": False, "t != 1": True, "one = '1'": False, "n = null": True,
            "n != null": False, "n = 0": False, "n != 0": True, "m = null": GONE, "null != m": GONE, "m = m": GONE,
            "m != m": GONE, "l = k": True, "l != k": False, "l = l[0]": False, "l[1] = k[1]": True, "k[1].a = l[0]": False,
        })
        rows = self.rows("select l = k as x", {"l": [True], "k": [1]}, {"l": [0, {}], "k": [False, {}]}, {"l": [1, 2], "k": [2, 1]})
        self.assertEqual(rows, [{"x": False}] * 3)
        self.values({"n": None, "t": True, "l": [1]}, {
            "2 < 10": True, "'2' < '10'": False, "'Z' < 'a'": True, "'\U0001f600' > '\uffee'": True, "1 < 1.0": False,
            "1 <= 1.0": True, "n < 1": GONE, "n <= n": GONE, "t > false": GONE, "l < l": GONE, "1 < '2'": GONE, "m >= 1": GONE,
        })

    def test_in_and_between(self):
        self.values({"n": None, "l": [1, "x", None, [2]], "e": [], "t": True}, {
            "1 in (2, 1)": True, "1 in (2, m)": GONE, "1 in (m, 1)": True, "m in (1)": GONE, "1 not in (2, m)": GONE,
            "1 not in (2, 3)": True, "n in (null)": True, "n in (1)": False, "t in (1, 0)": False, "1.0 in l": True,
            "n in l": True, "2 in l": False, "l[3] in l": True, "m in l": GONE, "m in e": GONE, "1 in e": False,
            "1 not in e": True, "1 in t": GONE, "1 not in m": GONE, "l in (1, l)": True, "1 in (l)": False,
        })
        self.values({"n": None}, {
            "2 between 2 and 3": True, "3 between 4 and m": False, "3 between m and 2": False, "3 between m and 4": GONE,
            "3 not between 4 and m": True, "3 not between 2 and m": GONE, "'b' between 'a' and 'c'": True,
            "n between 1 and 2": GONE, "3 between 4 and 'x'": False, "3 between 2 and n": GONE,
        })

    def test_like(self):
        self.values({"t": "a.b", "lines": "one\ntwo", "end": "one\n", "s": "50%_\\", "e": "", "u": "\U0001f600é"}, {
            "t like 'a.b'": True, "t like 'a_b'": True, "t like 'axb'": False, "'axb' like t": False, "t like 'A%'": False,
            "t like '%'": True, "t like '.'": False, "t like 'a'": False, "lines like 'one%two'": True,
            "lines like 'one_two'": True, "end like 'one'": False, "lines like '%two'": True,
            "s like '50\\\\%\\\\_\\\\\\\\'": True, "'50xy' like '50\\\\%\\\\_'": False, "s like '%\\\\'": True,
            "t like 'a\\\\.b'": True, "e like ''": True, "e like '%%'": True, "e like '_'": False, "u like '__'": True,
            "t not like 'b%'": True, "1 like '1'": GONE, "t like null": GONE, "m not like '%'": GONE, "'[a]' like '[a]'": True,
        })

    def test_is(self):
        self.values({"n": None, "t": True, "one": 1, "s": "", "l": [], "o": {}}, {
            "m is missing": True, "n is missing": False, "n is null": True, "m is null": False, "m is not null": True,
            "t is true": True, "one is true": False, "n is false": False, "t is not false": True, "t is boolean": True,
            "t is number": False, "one is number": True, "s is text": True, "l is list": True, "o is object": True,
            "o is not list": True, "(one < s) is missing": True, "(one < s) is not true": True, "o.x[0].y is missing": True,
        })

    def test_paths(self):
        self.values({"a": {"b": [10, 20, {"odd name": 5}], "select": 1, "": 2}, "odd name": {"by": 3}, "count": 7, "0": 8, "A": 9}, {
            "a.b[0]": "10", "a.b[-1].`odd name`": "5", "a.b[-3]": "10", "a.b[3]": GONE, "a.b[-4]": GONE, 'a["b"][1]': "20",
            "a.select": "1", "a . `select`": "1", 'a[""]': "2", "`odd name`.by": "3", "count": "7", "a.b.c": GONE,
            "a[0]": GONE, "a.b['0']": GONE, "`0`": "8", "A": "9", "a.B": GONE, "count.x": GONE, "a.b [ - 1 ] . x": GONE,
        })


class Numbers(Base):
    def test_exact_arithmetic(self):
        square = str(123456789012345678901234567890123456789**2)
        record = '{"a": 0.1, "b": 12345678901234567890123456789012345678.9, "c": 1e-40, "z": -0.0}'
        self.values(record, {
            "a + 0.2": "0.3", "b": "12345678901234567890123456789012345678.9", "b + c - b": "0." + "0" * 39 + "1",
            "b * b": f"{square[:-2]}.{square[-2:]}",
            "b - 0.9 = 12345678901234567890123456789012345678": True, "z": "0", "-z": "0", "1.50": "1.5", "25e-1": "2.5",
            "1E3": "1000", "12e+2": "1200", "b > 12345678901234567890123456789012345678.8": True, "9007199254740993": "9007199254740993",
        })

    def test_rounding_and_remainder(self):
        self.values({"n": None, "t": True}, {
            "1 / 3": "0.333333333333", "2 / 3": "0.666666666667", "-2 / 3": "-0.666666666667", "1 / 8": "0.125",
            "1 / 2000000000000": "0", "3 / 2000000000000": "0.000000000002", "5 / 2000000000000": "0.000000000002",
            "-3 / 2000000000000": "-0.000000000002", "-1 / 2000000000000": "0", "100000000000000000000000000001 / 1": "100000000000000000000000000001",
            "7 % 3": "1", "-7 % 3": "-1", "7 % -3": "1", "7.5 % 2": "1.5", "-0.3 % 0.1": "0", "1e30 % 7": str(10**30 % 7),
            "1 / 0": GONE, "1 % 0": GONE, "0 / 0.0": GONE, "n + 1": GONE, "t + 1": GONE, "'1' + 1": GONE, "-'1'": GONE,
            "-m": GONE, "-t": GONE, "m * 0": GONE, "'a' || 1": GONE, "'a' || null": GONE, "m || ''": GONE,
        })
        self.values({"n": None, "t": True}, {
            "round(2.5)": "3", "round(-2.5)": "-3", "round(0.5)": "1", "round(-0.4)": "0", "round(1.005, 2)": "1.01",
            "round(2.675, 2)": "2.68", "round(-1.45, 1)": "-1.5", "round(7, 12)": "7", "round(1.23, 1.0)": "1.2",
            "round(1, 13)": GONE, "round(1, -1)": GONE, "round(1, 0.5)": GONE, "round(1, t)": GONE, "round(t)": GONE,
            "round('1')": GONE, "round(1, m)": GONE, "round(n)": GONE,
        })

    def test_functions(self):
        self.values({"n": None, "t": True, "s": "ÄB\U0001f600", "l": [1, [2, 3]], "o": {"a": 1}}, {
            "lower(s)": "äb\U0001f600", "length(s)": "3", "length(l)": "2", "length(o)": "1", "length(n)": GONE, "length(12)": GONE,
            "lower(1)": GONE, "lower(n)": GONE, "coalesce(m, n, false, 1)": False, "coalesce(m, n)": GONE, "coalesce(0)": "0",
            "if(t, 1, 2)": "1", "if(1, 1, 2)": "2", "if(m, 1, 2)": "2", "if(t, m, 2)": GONE, "if(n, 1, n)": None,
            "number('12.50')": "12.5", "number('-1e2')": "-100", "number(' 1')": GONE, "number('01')": GONE, "number('1\\n')": GONE,
            "number('.5')": GONE, "number('+1')": GONE, "number('\u0663')": GONE, "number(t)": GONE, "number(3)": "3",
            "number('NaN')": GONE, "number('1_0')": GONE, "number('')": GONE,
        })


class Texts(Base):
    def test_tokens(self):
        self.values({"a": 5, "Größe": 6, "_x1": 7}, {
            "'it\\'s'": "it's", '"a\\"b"': 'a"b', "'\"'": '"', "'\\u00e9\\n\\t\\\\'": "é\n\t\\", "'# no comment'": "# no comment",
            "'line\nend'": "line\nend", "a # comment, with 'quote\n + 1": "6", "a+1": "6", "a-1": "4", "a--1": "6", "a-0.5": "4.5",
            "Größe": "6", "_x1": "7", "TRUE And Not False": True, "a IN (5)": True, "a BETWEEN 1 AND 5": True, "a Is Not NULL": True,
        })

    def test_column_names(self):
        text = "SELECT a , (a)  ,a  +  1 ,\n\t- a # c\n, b.`x y` as y, `a`, count, length( b ) as `le n`"
        (line,) = self.query(text, {"a": 1, "b": {"x y": 2}, "count": 3})
        names = {"a": 1, "(a)": 1, "a  +  1": 2, "- a": -1, "y": 2, "`a`": 1, "count": 3, "le n": 1}
        self.assertEqual(line, json.dumps(names))

    def test_output_follows_the_query_and_keeps_records(self):
        record = '{"b": 1.50, "a": {"y": null, "x": [1e2, "ü"]}}'
        self.assertEqual(self.query("select *", record), ['{"b": 1.5, "a": {"y": null, "x": [100, "ü"]}}'])
        self.assertEqual(self.query("select m, a, b as c, 1 as d", record), ['{"a": {"y": null, "x": [100, "ü"]}, "c": 1.5, "d": 1}'])
        self.assertEqual(self.query("select m", record), ["{}"])


class Rows(Base):
    def test_where_keeps_only_true(self):
        records = [{"id": 1, "x": True}, {"id": 2, "x": 1}, {"id": 3, "x": None}, {"id": 4}, {"id": 5, "x": "true"}, {"id": 6, "x": False}]
        self.assertEqual(self.rows("select id where x", *records), [{"id": 1}])
        self.assertEqual(self.rows("select id where not x", *records), [{"id": 6}])
        self.assertEqual(self.rows("select id where x != true", *records), [{"id": 2}, {"id": 3}, {"id": 5}, {"id": 6}])

    mixed = [
        '{"i": 1, "v": {"b": 1}}', '{"i": 2, "v": [2]}', '{"i": 3, "v": "10"}', '{"i": 4, "v": 10}', '{"i": 5, "v": true}',
        '{"i": 6, "v": null}', '{"i": 7}', '{"i": 8, "v": false}', '{"i": 9, "v": "9"}', '{"i": 10, "v": 9.5}', '{"i": 11, "v": []}',
        '{"i": 12, "v": [1, 5]}', '{"i": 13, "v": {"a": 2, "c": 0}}', '{"i": 14, "v": {"c": 0, "a": 1}}', '{"i": 15, "v": [2, null]}',
        '{"i": 16, "v": {"a": 2}}', '{"i": 17, "v": [true]}', '{"i": 18, "v": "Z"}', '{"i": 19, "v": "\\uff5e"}', '{"i": 20, "v": "\U0001f600"}',
    ]
    order = [7, 6, 8, 5, 10, 4, 3, 9, 18, 19, 20, 11, 17, 12, 2, 15, 14, 16, 13, 1]

    def test_order_of_kinds(self):
        self.assertEqual([row["i"] for row in self.rows("select i order by v", *self.mixed)], self.order)
        self.assertEqual([row["i"] for row in self.rows("select i order by v desc", *self.mixed)], self.order[::-1])

    def test_equal_rows_keep_their_order_and_limit(self):
        records = [{"i": i, "a": a, "b": b} for i, (a, b) in enumerate([(1, 2), (2, 1), (1.0, 1), (2, 1), (1, 2), (2, 2)])]
        for keys, expected in {
            "a": [0, 2, 4, 1, 3, 5], "a desc": [1, 3, 5, 0, 2, 4], "b desc, a asc": [0, 4, 5, 2, 1, 3],
            "a desc, b desc": [5, 1, 3, 0, 4, 2], "1 desc": [0, 1, 2, 3, 4, 5],
        }.items():
            with self.subTest(keys=keys):
                self.assertEqual([row["i"] for row in self.rows(f"select i order by {keys}", *records)], expected)

    def test_order_by_alias(self):
        records = [{"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 3, "b": 1}]
        self.assertEqual(self.rows("select a, -a as b order by b", *records), [{"a": 3, "b": -3}, {"a": 2, "b": -2}, {"a": 1, "b": -1}])
        self.assertEqual([row["a"] for row in self.rows("select a, -a as b order by b + 0", *records)], [3, 2, 1])
        self.assertEqual([row["a"] for row in self.rows("select a, -a as b order by b + 0 desc", *records)], [1, 2, 3])
        grouped = self.rows("select count(*) as b group by b > 1 order by b desc", *records)
        self.assertEqual(grouped, [{"b": 2}, {"b": 1}])
        records = [{"a": 3}, {"a": 1}, {"a": 2}]
        self.assertEqual(self.rows("select a order by a limit 2", *records), [{"a": 1}, {"a": 2}])
        self.assertEqual(self.rows("select a limit 0", *records), [])
        self.assertEqual(len(self.rows("select a limit 9", *records)), 3)


class Groups(Base):
    def test_groups_of_equal_values(self):
        records = ['{"k": 1}', '{"k": true}', '{}', '{"k": 1.0}', '{"k": null}', '{"k": "1"}', '{"k": [1]}', '{"k": [true]}', '{"x": 0}', '{"k": [1.00]}']
        found = self.query("select k, count(*) as n group by k", *records)
        expected = [
            '{"k": 1, "n": 2}', '{"k": true, "n": 1}', '{"n": 2}', '{"k": null, "n": 1}', '{"k": "1", "n": 1}',
            '{"k": [1], "n": 2}', '{"k": [true], "n": 1}',
        ]
        self.assertEqual(found, expected)

    def test_same_expressions(self):
        records = [{"a": {"b": "X"}, "n": 1}, {"a": {"b": "x"}, "n": 2}, {"a": {"b": "y"}, "n": 3}]
        text = """select lower( a["b"] ) || "!" as k, 'n' as lit, if(n + 1 > 2 AND not true, 1, 0) as z, sum(n) as s
            group by lower(a.b), (n + 1) > (2) and (not true)"""
        rows = self.rows(text, *records)
        self.assertEqual(rows, [{"k": "x!", "lit": "n", "z": 0, "s": 3}, {"k": "y!", "lit": "n", "z": 0, "s": 3}])

    def test_aggregates_skip_missing_and_null_and_may_filter(self):
        records = [{"v": 2}, {"v": None}, {}, {"v": "10"}, {"v": 0.5}, {"v": False}, {"v": 2.0}]
        (row,) = self.rows(
            "select count(*) as a, count(v) as b, sum(v) as c, avg(v) as d, min(v) as e, max(v) as f, collect(v) as g", *records
        )
        self.assertEqual(row, {"a": 7, "b": 5, "c": 4.5, "d": 1.5, "e": False, "f": "10", "g": [2, "10", 0.5, False, 2]})
        self.assertIs(row["e"], False)
        records = ['{"v": 1, "p": true}', '{"v": 1.0, "p": 1}', '{"v": true, "p": true}', '{"v": 3}', '{"v": "x", "p": false}', '{"v": 3, "p": true}']
        found = self.query(
            "select count(distinct v) as a, sum(distinct v) as b, collect(distinct v) as c, count(*) filter (where p) as d,"
            " sum(v) filter (where not p) as e, collect(distinct v) filter (where p is missing or p) as f, avg(distinct v) as g", *records
        )
        self.assertEqual(found, ['{"a": 4, "b": 4, "c": [1, true, 3, "x"], "d": 3, "f": [1, true, 3], "g": 2}'])

    def test_aggregates_are_exact_and_keep_the_first_of_equal_values(self):
        records = ['{"v": 0.1, "o": {"a": 1, "b": 2}}', '{"v": 0.2, "o": {"b": 2, "a": 1}}', '{"v": 1e20, "o": {"b": 1, "a": 3}}', '{"v": -1e20}']
        found = self.query("select sum(v) as s, avg(v) / 3 as q, min(o) as o, avg(distinct v) + avg(v) as t", *records)
        self.assertEqual(found, ['{"s": 0.3, "q": 0.025, "o": {"a": 1, "b": 2}, "t": 0.15}'])
        found = self.query("select max(o) as x", '{"o": {"a": 1, "b": 2}}', '{"o": {"b": 2, "a": 1.0}}')
        self.assertEqual(found, ['{"x": {"a": 1, "b": 2}}'])

    def test_groups_without_records(self):
        every = "select count(*) as n, sum(a) as s, min(a) as m, collect(a) as c, 1 as one"
        self.assertEqual(self.query(every), ['{"n": 0, "c": [], "one": 1}'])
        self.assertEqual(self.query(every + " where a > 5", {"a": 1}), ['{"n": 0, "c": [], "one": 1}'])
        self.assertEqual(self.query("select count(*) group by a"), [])
        self.assertEqual(self.query("select 1 as one having true"), ['{"one": 1}'])
        self.assertEqual(self.query("select 1 as one having count(*) > 0"), [])
        self.assertEqual(self.query("select 1 as one order by count(a)", {"a": 1}, {"a": 2}), ['{"one": 1}'])

    def test_having_and_order_of_groups(self):
        records = [{"k": k, "v": v} for k, v in [("b", 1), ("a", 2), ("c", None), ("a", 1), ("b", 5), ("d", 3)]]
        self.assertEqual([row["k"] for row in self.rows("select k group by k", *records)], ["b", "a", "c", "d"])
        rows = self.rows("select k, sum(v) as s group by k having sum(v) >= 3 or k = 'c' order by count(*) desc, s", *records)
        self.assertEqual(rows, [{"k": "a", "s": 3}, {"k": "b", "s": 6}, {"k": "c"}, {"k": "d", "s": 3}])
        rows = self.rows("select k group by k having not sum(v) > 3", *records)
        self.assertEqual([row["k"] for row in rows], ["a", "d"])


class Errors(Base):
    def test_unexpected_tokens(self):
        self.invalid({
            "select": "1:7", "select , a": "1:8", "select a = b = c": "1:14", "select a not = b": "1:14",
            "select a as where b": "1:13", "select lower(distinct a)": "1:14", "select lower(a) filter (where b)": "1:17",
            "select a in (1) + 1": "1:17", "select a in ()": "1:14",
            "select a.0": "1:10", "select a[1.0]": "1:10", "select 1.x": "1:9", "select a between 1 or 2": "1:20", "select a = not b": "1:12",
            "select count(distinct)": "1:22", "select missing": "1:8",
        })

    def test_bad_tokens_and_the_first_error(self):
        self.invalid({
            "select a + @": "1:12", "select 'abc": "1:8", 'select "a\'': "1:8", "select 'a\\qb'": "1:10",
            "select 'ok', '\\u12g4'": "1:15", "select 1e": "1:8", "select 1e+ + 2": "1:8", "select a; ": "1:9", "select a | b": "1:10",
        })
        self.invalid({
            "select a b @": "1:10", "select a where ) 'open": "1:16", "select nope(a), b +": "1:20",
        })

    def test_lines_and_columns_and_the_end(self):
        self.invalid({
            "select a\nwhere b = \n  # c\n\t@": "4:2", "select 'é\U0001f600', )": "1:14", "select 'a\nb' )": "2:4",
            "select a,\r\n  'x": "2:3",
        })
        self.invalid({
            "": "1:1", "  \n # only": "1:1", "select a +  \n\n # c": "1:11", "select a where\n": "1:15",
            "select count(*) filter (where a": "1:32", "select a,\n b as": "2:6", "select 'x\ny' ||  ": "2:6",
        })

    def test_errors_in_valid_syntax(self):
        self.invalid({
            "select foo(a)": "1:8", "select COUNT(a)": "1:8", "select round(a, 1, 2)": "1:8", "select count()": "1:8",
            "select count(*) group by max(a)": "1:26", "select sum(1 + max(a))": "1:16", "select sum(a) filter (where count(*) > 1)": "1:29",
            "select *  having true": "1:8", "select * order by count(*)": "1:8", "select a, a": "1:11",
            "select (a + 1) as x, (b) as x": "1:22", "select a order by lower(b), max(a) + bar(1)": "1:8",
        })

    def test_paths_in_grouped_queries_and_leftmost_error(self):
        self.invalid({
            "select a.b, count(*) group by a": "1:8", "select count(*), 1 + (b) group by a": "1:23",
            "select a group by a order by a, -b": "1:34", "select sum(a) + a": "1:17",
            "select a + 1 + b group by a + 1, b order by b + a": "1:49", "select a + (1 + 2) group by a + 1 + 2": "1:8",
            "select count(*) as n group by a order by n, m": "1:45", "select sum(b) as a group by c order by a + 1": "1:40",
        })
        self.invalid({
            "select a, a, nope(b)": "1:11", "select count(*), b,\n foo(1) where sum(a) > 1": "1:18",
        })


class Command(Base):
    def test_errors_print_nothing_else(self):
        done = self.program("python3", "rq.py", "query", "select foo(1)", "none.jsonl")
        self.assertEqual(done.status, 2)
        self.assertTrue(done.stderr.startswith("rq.py: error: query:1:8: "), done)
        done = self.program("python3", "rq.py", "query", "select a limit 1", "examples/orders.jsonl", "none.jsonl")
        self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "rq.py: error: none.jsonl: No such file or directory\n"))
        for limit in ("", " limit 0", " limit 1"):
            done = self.program("python3", "rq.py", "query", "select a" + limit, stdin='{"a": 1}\n\n[1]\n')
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "rq.py: error: -:3: the line is no JSON object\n"))

    def test_filter_is_unchanged(self):
        arguments = ["--where", "customer.name=Ada", "--select", "id,total,paid", "examples/orders.jsonl", "-"]
        more = '{"customer": {"name": "Ada"}, "total": 1e-3}\n'
        done = self.program("python3", "rq.py", "filter", *arguments, stdin=more)
        self.assertEqual(done.stdout, '{"id": 1, "total": 120.5}\n{"id": 4, "total": 1000, "paid": false}\n{"total": 0.001}\n')
