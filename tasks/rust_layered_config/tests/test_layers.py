import lab


class Base(lab.Case):
    def write_all(self, files):
        for name, lines in files.items():
            self.write(name, lines if isinstance(lines, (str, bytes)) else "\n".join(lines) + "\n")

    def conf(self, *arguments, status=0):
        done = self.program("{build}/debug/layerconf", *arguments)
        self.assertEqual(done.status, status, done)
        return done.stdout if status == 0 else done.stderr

    def dump(self, files, *arguments):
        """Dumps files, the lowest layer first. Files whose names begin with `_` or lie in folders are only included."""
        self.write_all(files)
        names = [name for name in files if not name.startswith("_") and "/" not in name]
        lines = self.conf("dump", *arguments, *names).splitlines()
        return dict(line.split(" = ", 1) for line in lines)

    def fails(self, files, error, *arguments):
        """Checks the place and kind of the error, and the message if `error` has one."""
        self.write_all(files)
        names = [name for name in files if not name.startswith("_") and "/" not in name]
        message = self.conf("dump", *arguments, *names, status=1)
        expected = error + ": " if error.count(":") == 3 else error + "\n"
        self.assertTrue(message.startswith(expected), message)


class Version1(Base):
    def test_values_and_output(self):
        lines = [
            "# Comment",
            "name = web server  # comment",
            "include = 1",
            "unset = -0_5",
            "[limits.memory]",
            "super = 'a$b${x}'",
            "include.var = true",
            "units = [kb, \"m\\u{42}\\n\",  # comment",
            "  'g\"b', [1, +2],",
            "]",
        ]
        self.assertEqual(
            self.dump({"a.conf": "\r\n".join(lines)}),
            {
                "name": '"web server"',
                "include": "1",
                "unset": "-5",
                "limits.memory.super": '"a$b${x}"',
                "limits.memory.include.var": "true",
                "limits.memory.units": '["kb", "mB\\n", "g\\"b", [1, 2]]',
            },
        )
        self.assertEqual(self.conf("get", "name", "a.conf"), "web server\n")
        self.assertIn("unknown key `nam`", self.conf("get", "nam", "a.conf", status=1))

    def test_places_of_errors(self):
        for lines, error in (
            (["a = 1", "é = 2"], "a.conf:2:1: syntax"),
            (["a = 'é' x"], "a.conf:1:9: syntax"),
            (["a = # comment"], "a.conf:1:5: syntax"),
            (["a = [1,", " 2"], "a.conf:3:1: syntax"),
            (['a = "é\\q"'], "a.conf:1:7: escape"),
            (["a = 1", "[b]", "c = 1", " c = 2"], "a.conf:4:2: duplicate"),
            (["a.b = 1", "a = 2"], "a.conf:2:1: conflict"),
            (["unset.a = 1", "unset", "b = 1"], "a.conf:2:6: syntax"),
        ):
            self.fails({"a.conf": lines}, error)


class Layers(Base):
    def test_later_layers_override(self):
        files = {"a.conf": ["a = 1", "b = 2"], "b.conf": ["b = x", "c = 3"], "c.conf": ["c = [4]"]}
        self.assertEqual(self.dump(files), {"a": "1", "b": '"x"', "c": "[4]"})

    def test_set_if_there_is_no_value(self):
        files = {"a.conf": ["a = 1", "u = 1"], "b.conf": ["a ?= 2", "b ?= 3", "unset u", "u ?= 4"], "c.conf": ["b?=5"]}
        self.assertEqual(self.dump(files), {"a": "1", "b": "3", "u": "4"})

    def test_append(self):
        files = {
            "a.conf": ["a = [1]", "b += x"],
            "b.conf": ["a += 2", "a += [3, [4]]", "b += [y]", "l = [5, 6]", "a += ${l}"],
            "c.conf": ["l = [7]", "n += [[8]]"],
        }
        expected = {"a": "[1, 2, 3, [4], 7]", "b": '["x", "y"]', "l": "[7]", "n": "[[8]]"}
        self.assertEqual(self.dump(files), expected)

    def test_append_to_other_values(self):
        self.fails({"a.conf": ["a = 1"], "b.conf": ["  a += [2]"]}, "b.conf:1:8: type")

    def test_unset(self):
        files = {
            "a.conf": ["[s]", "a = 1", "a2 = 2", "b.c = 3", "b.d.e = 4", "l = [1]"],
            "b.conf": ["[s]", "unset a # comment", "unset b", "unset nothing", "b = 5", "unset  l", "l += 2"],
        }
        self.assertEqual(self.dump(files), {"s.a2": "2", "s.b": "5", "s.l": "[2]"})
        self.fails({"a.conf": ["unset a = 5"]}, "a.conf:1:9: syntax")

    def test_duplicates_within_a_file(self):
        self.fails({"a.conf": ["a = 1", "b = 1", "a ?= 2"]}, "a.conf:3:1: duplicate")
        self.fails({"a.conf": ["a ?= 1", "unset a", "a = 2"]}, "a.conf:3:1: duplicate")
        self.assertEqual(self.dump({"a.conf": ["a += 1", "a = [2]", "a += 3"]}), {"a": "[2, 3]"})

    def test_conflicts_concern_values_at_this_point(self):
        self.fails({"a.conf": ["a.b = 1"], "b.conf": ["[a]", "  b.c += 2"]}, "b.conf:2:3: conflict")
        self.fails({"a.conf": ["a.b = 1"], "b.conf": ["a ?= 2"]}, "b.conf:1:1: conflict")
        files = {"a.conf": ["a.b = 1", "c = 1"], "b.conf": ["unset a.b", "a = 2", "c ?= 3"]}
        self.assertEqual(self.dump(files), {"a": "2", "c": "1"})

    def test_explain(self):
        files = {
            "a.conf": ["l = [0]"],
            "_b.conf": ["[x]", "l:list<int>+=1", "l ?= [5]"],
            "b.conf": ["unset l", 'include "_b.conf"', "[x]", "l   +=   2", "l=[]"],
        }
        self.write_all(files)
        self.assertEqual(self.conf("explain", "x.l", "a.conf", "b.conf"), "b.conf:5:3 =\nb.conf:4:10 +=\n_b.conf:2:14 +=\n")
        self.assertIn("unknown key", self.conf("explain", "l", "a.conf", "b.conf", status=1))


class Includes(Base):
    def test_includes_take_effect_in_place(self):
        files = {
            "a.conf": ["a = 1", 'include "_b.conf" # comment', "[s]", "a = 2", "c ?= 3"],
            "_b.conf": ["a = 5", "s.c = 6", "[t]", "d = 7"],
        }
        self.assertEqual(self.dump(files), {"a": "5", "s.a": "2", "s.c": "6", "t.d": "7"})

    def test_included_keys_go_below_the_section(self):
        files = {
            "a.conf": ["[s.t]", "include 'x/_b.conf'", "e = 1", 'include\t"x/_c.conf"'],
            "x/_b.conf": ["a = 1", "[u]", "b = ${.a}", "c = ${s.t.a}", "include '_c.conf'", "unset d", "a = ${.c}"],
            "x/_c.conf": ["d = 1", "[v]", "f = ${.f2:-no}"],
        }
        self.assertEqual(
            self.dump(files),
            {
                "s.t.a": "1",
                "s.t.u.b": "1",
                "s.t.u.c": "1",
                "s.t.u.a": "1",
                "s.t.u.v.f": '"no"',
                "s.t.e": "1",
                "s.t.d": "1",
                "s.t.v.f": '"no"',
            },
        )

    def test_file_names_are_relative_and_normalized(self):
        files = {
            "a.conf": ['include "./conf/sub/../sub/a.conf"'],
            "conf/sub/a.conf": ["include '../b.conf'", "include \"$x.conf\""],
            "conf/sub/$x.conf": ["x = 1"],
            "conf/b.conf": ["b = 1", "b = 2"],
        }
        self.fails(files, "conf/b.conf:2:1: duplicate")
        self.write("conf/b.conf", "b = 1\n")
        self.assertEqual(self.conf("dump", "./conf/../a.conf"), "b = 1\nx = 1\n")
        self.write("conf/sub/a.conf", "include '../../x/nothing.conf'")
        self.assertTrue(self.conf("dump", "./a.conf", status=1).startswith("conf/sub/a.conf:1:9: include: "))

    def test_names_of_files_above_the_working_folder(self):
        self.write("deep/a.conf", "include './x/../../b.conf'")
        self.write("b.conf", "b = 1\nb = 2\n")
        done = self.program("sh", "-c", "cd deep && exec {build}/debug/layerconf dump a.conf")
        self.assertEqual((done.status, done.stdout), (1, ""), done)
        self.assertTrue(done.stderr.startswith("../b.conf:2:1: duplicate"), done)

    def test_each_inclusion_has_its_own_duplicates(self):
        files = {"a.conf": ["a = 1", "include '_b.conf'", "include '_b.conf'", "[s]", "include '_b.conf'"], "_b.conf": ["a = 2", "l += 1"]}
        self.assertEqual(self.dump(files), {"a": "2", "l": "[1, 1]", "s.a": "2", "s.l": "[1]"})

    def test_optional_and_missing_files(self):
        self.assertEqual(self.dump({"a.conf": ["include? '_no.conf'", "a = 1"]}), {"a": "1"})
        self.fails({"a.conf": ["a = 1", "  include  '_no.conf'"]}, "a.conf:2:12: include")
        self.fails({"a.conf": ["include? '_b.conf'"], "_b.conf": ["include '_no.conf'"]}, "_b.conf:1:9: include")
        self.fails({"a.conf": ["include? '_b.conf'"], "_b.conf": b"\xff\xfe"}, "a.conf:1:10: include")

    def test_include_cycles(self):
        files = {
            "a.conf": ["include 'x/b.conf'"],
            "x/b.conf": ["[s]", "include? \"../x/c.conf\""],
            "x/c.conf": ["a = 1", "include './b.conf'", "nonsense"],
        }
        self.fails(files, "x/c.conf:2:9: cycle: x/b.conf -> x/c.conf -> x/b.conf")
        self.write("x/c.conf", "include '../a.conf'\n")
        message = self.conf("dump", "./x/../a.conf", status=1)
        self.assertEqual(message, "x/c.conf:1:9: cycle: a.conf -> x/b.conf -> x/c.conf -> a.conf\n")


class Interpolation(Base):
    def test_references_lead_to_final_values(self):
        files = {
            "a.conf": ["host = a", "[web]", "port = 80", "url = http://${host}:${.port}/$$x", 'q = "é\\n${web.url}"'],
            "b.conf": ["host = b.${web.port}", "[web]", "port = 90"],
        }
        dumped = self.dump(files)
        self.assertEqual(dumped["web.url"], '"http://b.90:90/$x"')
        self.assertEqual(dumped["web.q"], '"é\\nhttp://b.90:90/$x"')

    def test_bare_text_gets_its_type_after_insertion(self):
        lines = ["n = 0_5", "a = 1${n}", "b = tr${u:-ue}", "c = '5'", "d = ${c}", "e = ${c}${u:-}", 'f = "${n}"', "g = -${n} ", "h = ${l}", "l = [${n}, ${c}]"]
        self.assertEqual(
            self.dump({"a.conf": lines}),
            {"n": "5", "a": "15", "b": "true", "c": '"5"', "d": '"5"', "e": "5", "f": '"5"', "g": "-5", "h": '[5, "5"]', "l": '[5, "5"]'},
        )

    def test_defaults(self):
        lines = [
            "a = ${x:-5}  # comment",
            "b = [${x:-a, [b] # c}, ${x:-${y:-${l}}}, p${x:- ${a} }q]",
            'c = "${x:-\\"a\\u{7d}\'$${a}}"',
            "d = ${x:-}",
            "e = ${l:-${nothing}}",
            "f = ${x:-${c2:-'}",
            "l = [1]",
        ]
        self.fails({"a.conf": lines}, "a.conf:6:16: syntax")
        lines[5] = "f = ${x:-${l}}"
        self.assertEqual(
            self.dump({"a.conf": lines}),
            {"a": "5", "b": '["a, [b] # c", [1], "p 5 q"]', "c": '"\\"a}\'${a}"', "d": '""', "e": "[1]", "f": "[1]", "l": "[1]"},
        )

    def test_variables(self):
        files = {"a.conf": ["a = ${var:n}", 'b = "${var:n}"', "c = ${var:no:-x}", "d = ${var:-y}", "e = <${var:e}>", "s.var = 7", "f = ${s.var}"]}
        expected = {"a": "7", "b": '"7"', "c": '"x"', "d": '"y"', "e": '"<x=1>"', "s.var": "7", "f": "7"}
        self.assertEqual(self.dump(files, "-D", "n=6", "-D", "e=x=1", "-D", "n=7"), expected)
        self.assertEqual(self.conf("get", "-D", "n=1", "-D", "e=", "b", "a.conf"), "1\n")
        self.fails(files, "a.conf:1:5: unknown", "-D", "e=1")

    def test_super(self):
        files = {
            "a.conf": ["p = a", "l = [1]", "d = ${super:-first}"],
            "b.conf": ['p = "${super}:${q}"', "q = 1", "l = [0, ${super}, ${super}]"],
            "c.conf": ['p = "x:${super}"', "q = 2", "l += ${super}", "n = 3"],
            "d.conf": ["n = ${super}", "unset d", "d = ${super:-again}"],
        }
        expected = {"p": '"x:a:2"', "q": "2", "l": "[0, [1], [1], 0, [1], [1]]", "d": '"again"', "n": "3"}
        self.assertEqual(self.dump(files), expected)

    def test_unknown_references(self):
        self.fails({"a.conf": ["a = 1", "[s]", "b = x${.a}"]}, "a.conf:3:6: unknown")
        self.fails({"a.conf": ["a = ['é', ${s}]", "s.b = 1"]}, "a.conf:1:11: unknown")
        self.fails({"a.conf": ["a = 1"], "b.conf": ["unset a", "a = ${super}"]}, "b.conf:2:5: unknown")

    def test_lists_have_no_text(self):
        self.fails({"a.conf": ["l = [1]", 'a = "${l}"']}, "a.conf:2:6: type")
        self.fails({"a.conf": ["l = [1]", "a = x ${n:-${l}}"]}, "a.conf:2:12: type")

    def test_syntax_of_interpolations(self):
        for line, column in (("a = x$y", 7), ("a = $", 6), ("a = ${ b}", 7), ("a = ${b:c}", 9), ('a = "${b"', 9), ("a = ${b.}", 9), ('a = "${b:-"x"}"', 11), ("a = ${b:-x", 11)):
            self.fails({"a.conf": [line]}, f"a.conf:1:{column}: syntax")

    def test_cycles(self):
        self.fails({"a.conf": ["b = 1", "a = ${b}"], "b.conf": ["b = x${c:-1}", "c = ${var:x:-${b}}"]}, "b.conf:2:14: cycle: b -> c -> b")
        self.fails({"a.conf": ["a = ${a:-1}"]}, "a.conf:1:5: cycle: a -> a")
        self.fails({"a.conf": ["a = <${b}>", "b = 1"], "b.conf": ["a = ${super}"], "c.conf": ["b = ${a}"]}, "c.conf:1:5: cycle: a -> b -> a")
        self.assertEqual(self.dump({"a.conf": ["a = ${b:-${a}}", "b = 1"]})["a"], "1")


class Types(Base):
    def test_conversions(self):
        lines = [
            "a: string = 1_000",
            "b :string= true",
            "c: int = '-5'",
            "d: bool = 'true'",
            "e: enum(1|x-y) = 01",
            "f: list<list<int(-5..0x)>> = []",
        ]
        self.fails({"a.conf": lines}, "a.conf:6:23: syntax")
        lines[5] = "f: list<list<int(-5..+1_0)>> = [['10', -5]]"
        expected = {"a": '"1000"', "b": '"true"', "c": "-5", "d": "true", "e": '"1"', "f": "[[10, -5]]"}
        self.assertEqual(self.dump({"a.conf": lines}), expected)

    def test_values_of_other_types(self):
        for line, column in (
            ("a: int(1..5) = 6", 16),
            ("a: int = x", 10),
            ("a: int = 9223372036854775808", 10),
            ("a: bool = 1", 11),
            ("a: enum(x|y)  = z", 17),
            ("a: list<int> = 5", 16),
            ("a: string = [x]", 13),
            ("a: list<int> = [1, x]", 16),
        ):
            self.fails({"a.conf": [line]}, f"a.conf:1:{column}: type")
        self.fails({"a.conf": ["a: int = 5"], "b.conf": ["a = ${b}", "b = x"]}, "b.conf:1:5: type")
        self.fails({"a.conf": ["a: list<int>", "a += 1", "a += x", "a += 2"]}, "a.conf:4:6: type")

    def test_types_hold_for_final_values_of_all_layers(self):
        files = {
            "a.conf": ["port = '80'", "base = 5", "n = x", "copy = ${port}", "text = ${e}", "e = 07"],
            "b.conf": ["port: int", "base: int(1..9)", "n: int = ${base}", "base = '7'", "sum = [${base}]", "e: enum(7)"],
            "c.conf": ["base ?= x", "port += 1", "unset port", "port = '90'", "port: int"],
        }
        expected = {"port": "90", "base": "7", "n": "7", "copy": "90", "sum": "[7]", "e": '"7"', "text": '"7"'}
        self.assertEqual(self.dump(files), expected)

    def test_redeclarations(self):
        self.fails({"a.conf": ["a: int(1..5) = 1"], "b.conf": ["a:  int(1..6)"]}, "b.conf:1:5: redeclared")
        self.assertEqual(self.dump({"a.conf": ["a: int(1..5) = 1", "a: int(+1..05)"]}), {"a": "1"})

    def test_missing_values(self):
        self.fails({"a.conf": ["[s]", "z = ${no}", "  b: int"], "b.conf": ["s.b: int"]}, "a.conf:3:3: missing")
        self.fails({"a.conf": ["b = 1"], "b.conf": ["b: int", "unset b"], "c.conf": ["a = ${b}"]}, "c.conf:1:5: unknown")
