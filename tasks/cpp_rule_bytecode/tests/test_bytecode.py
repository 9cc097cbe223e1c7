import json

import lab

LISTINGS = json.loads(lab.data("listings.json"))

USAGE = "usage: rules run FILE [NAME=VALUE]...\n       rules compile [-O] FILE\n       rules exec FILE [NAME=VALUE]...\n"

VALID = """rules-bytecode 1
source a.rules
slots 2
constants 4
0 int 1
1 float 2.5
2 bool true
3 text "x\\"y"
code 12
0 1:1 const 2
1 1:2 jump_if_false 6
2 1:3 const 0
3 1:4 const 1
4 1:5 call max
5 1:6 jump 7
6 1:7 const 3
7 1:8 store 1
8 1:9 load 1
9 1:10 print
10 0:0 halt
11 1:11 print
"""


class Rules(lab.Case):
    def compiled(self, source, *options):
        self.write("a.rules", source)
        done = self.program("rules", "compile", *options, "a.rules")
        self.assertEqual((done.status, done.stderr), (0, ""), done)
        return done.stdout

    def check_listing(self, name):
        expected = LISTINGS[name]
        for kind, options in (("plain", ()), ("optimized", ("-O",))):
            self.assertEqual(self.compiled(expected["source"], *options), expected[kind], kind)

    def check_same(self, source, *inputs, stdout=None, stderr=None):
        """Runs a rule file in all three ways."""
        self.write("a.rules", source)
        expected = self.program("rules", "run", "a.rules", *inputs)
        if stdout is not None:
            self.assertEqual(expected.stdout, stdout, expected)
        if stderr is not None:
            self.assertEqual(expected.stderr, stderr, expected)
        for options in ((), ("-O",)):
            self.write("a.listing", self.compiled(source, *options))
            done = self.program("rules", "exec", "a.listing", *inputs)
            self.assertEqual((done.stdout, done.stderr, done.status), (expected.stdout, expected.stderr, expected.status), f"{source} {options}")

    def check_refused(self, *listings):
        for i, listing in enumerate(listings):
            self.write("bad", listing)
            done = self.program("rules", "exec", "bad")
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "`bad` is not valid bytecode\n"), f"{i}: {listing}")

    def changed(self, old, new):
        self.assertEqual(VALID.count(old), 1, old)
        return VALID.replace(old, new)


class Listings(Rules):
    def test_arithmetic_and_calls(self):
        self.check_listing("arithmetic")

    def test_failing_operations_are_not_folded(self):
        self.check_listing("failing")

    def test_logic(self):
        self.check_listing("logic")

    def test_choice(self):
        self.check_listing("choice")

    def test_branches_and_dead_slots(self):
        self.check_listing("branches")

    def test_slots_of_blocks(self):
        self.check_listing("slots")

    def test_endless_loops(self):
        self.check_listing("loops")
        self.check_listing("endless")

    def test_chains_of_jumps(self):
        self.check_listing("jumps")

    def test_constants_are_shared_bit_for_bit(self):
        self.check_listing("constants")

    def test_example(self):
        self.check_listing("discount")

    def test_empty_program(self):
        empty = "rules-bytecode 1\nsource a.rules\nslots 0\nconstants 0\ncode 1\n0 0:0 halt\n"
        self.assertEqual(self.compiled("# nothing\n"), empty)
        self.assertEqual(self.compiled("if (1 == 1) { } else { print 2; } while (false) { let x = 1; }", "-O"), empty)

    def test_source_is_the_path_as_given(self):
        self.write("my rules/a b.rules", "print $x;\n")
        done = self.program("rules", "compile", "-O", "./my rules/a b.rules")
        self.assertEqual(done.stdout, "rules-bytecode 1\nsource ./my rules/a b.rules\nslots 0\nconstants 0\ncode 3\n0 1:7 input x\n1 1:1 print\n2 0:0 halt\n", done)
        self.write("l", done.stdout)
        done = self.program("rules", "exec", "l")
        self.assertEqual((done.status, done.stdout, done.stderr), (1, "", "./my rules/a b.rules:1:7: no input `x`\n"), done)


class Running(Rules):
    def test_integer_errors_have_their_positions(self):
        big = "9223372036854775807"
        for expression, error in {
            f"{big} + 1": "27: overflow in +", f"-{big} - 2": "28: overflow in -", "3037000500 * 3037000500": "18: overflow in *", f"-(-{big} - 1)": "7: overflow in -",
            "-9223372036854775808 / -1": "28: overflow in /", "1 / (2 - 2)": "9: division by zero", "1 % 0": "9: division by zero", "abs(-9223372036854775808)": "7: overflow in abs",
            "int(1e19)": "7: overflow in int", "int(0.0 / 0)": "7: overflow in int", "1 + true": "9: + of int and bool", '"a" * 2': "11: * of text and int", "-true": "7: - of bool", "!0": "7: operand of ! is not a bool",
            "len(5)": "7: len of int", 'max(1, "a")': "7: max of int and text", "true < false": "12: < of bool and bool",
        }.items():
            self.check_same(f"print 1;\nprint {expression};\nprint 2;\n", stdout="1\n", stderr=f"a.rules:2:{error}\n")

    def test_integer_results(self):
        self.check_same(
            "print -7 / 2; print -7 % 2; print 7 % -2; print -9223372036854775808 % -1; print -9223372036854775808 + 0; print int(-2.9); print 9223372036854775807 - -0;",
            stdout="-3\n-1\n1\n0\n-9223372036854775808\n-2\n9223372036854775807\n",
        )

    def test_float_results(self):
        self.check_same(
            "let z = -0.0; print z; print 0.0; print z == 0; print 1 / z; print z * 0; print 0 * 1.5; print $x * 0; print 1 / 0.0 - 1 / 0.0; print 5.5 % 0; print -5.5 % 2; print 1e15; print 1e22; print min(0.0 / 0, 1); print 0.0 / 0 == 0.0 / 0; print 0.0 / 0 != 0.0 / 0;",
            "x=-3.0", stdout="-0.0\n0.0\ntrue\n-inf\n-0.0\n0.0\n-0.0\nnan\nnan\n-1.5\n1e+15\n1e+22\nnan\nfalse\ntrue\n",
        )

    def test_mixed_comparisons_are_exact(self):
        self.check_same(
            "print 9007199254740993 == 9007199254740992.0; print 9007199254740993 > 9007199254740992.0; print 9223372036854775807 < 9223372036854775808.0; print $i == $f; print 1 == true; print \"1\" == 1; print \"b\" > \"a\";",
            "i=9223372036854775807", "f=9223372036854775807.0", stdout="false\ntrue\ntrue\nfalse\nfalse\nfalse\ntrue\n",
        )

    def test_operands_that_are_not_evaluated(self):
        for a in ("true", "false"):
            self.check_same("print $a || $none; print $a && 1 / 0 > 0; print 5;", f"a={a}")
        self.check_same("print false && $none; print true || 1 / 0; print true ? 1 : $none; print false ? 1 / 0 : 2; if (false) { print 1 / 0; } while (false) { print $none; }", stdout="false\ntrue\n1\n2\n", stderr="")

    def test_conditions_and_operands_that_are_not_bools(self):
        for expression, error in {
            "true && 5": "12: operand of && is not a bool", "false || 5": "13: operand of || is not a bool", "1 && false": "9: operand of && is not a bool", "$x || true": "10: operand of || is not a bool",
            "true && $x": "12: operand of && is not a bool", "1 ? 2 : 3": "9: condition is not a bool", '"a" ? 2 : 3': "11: condition is not a bool", "false || (true && $x)": "22: operand of && is not a bool",
            "(true ? $x : 1) && true": "23: operand of && is not a bool",
        }.items():
            self.check_same(f"print 1;\nprint {expression};\n", "x=7", stdout="1\n", stderr=f"a.rules:2:{error}\n")
        self.check_same("print 1; if (1) { print 2; }", stdout="1\n", stderr="a.rules:1:10: condition is not a bool\n")
        self.check_same("print 1; while (\"\") { print 2; }", stdout="1\n", stderr="a.rules:1:10: condition is not a bool\n")

    def test_loops_and_shadowing(self):
        self.check_same(
            "let a = $n;\nlet sum = 0;\nwhile (a > 0) {\n  let b = a;\n  { let a = b * 2; let sum = a + 1; b = sum; }\n  let c = b % 3 == 0 ? \"x\" : \"y\";\n  print c + text(b);\n  sum = sum + b;\n  a = a - 1;\n}\nprint sum;\nlet late = a;\nprint late / (sum - 24) + 1 / a;\n",
            "n=4", stdout="x9\ny7\ny5\nx3\n24\n", stderr="a.rules:13:12: division by zero\n",
        )

    def test_texts(self):
        self.check_same('print "a\\"b\\\\n" + "\\t|" + "\\n" + $t; print "äöü€😀"; print len("€" + ""); print "x" + "" == "x";', "t=\"q\"", stdout='a"b\\n\t|\n"q"\näöü€😀\n3\ntrue\n')
        listing = self.compiled('print "a\\"b\\\\n" + "\\t|" + "\\n€";', "-O")
        self.assertIn('\n0 text "a\\"b\\\\n\\t|\\n€"\n', listing)

    def test_inputs(self):
        self.check_same("print $a; print $b; print $c; print $a == 1; print $_x1; print $d;", "a=1", "b=1.0", "c=true", "_x1=x=y", stdout="1\n1.0\ntrue\ntrue\nx=y\n", stderr="a.rules:1:64: no input `d`\n")

    def test_output_before_an_error_is_kept_in_optimized_code(self):
        self.check_same("let i = 0;\nwhile (true) { print i; i = i + 1; print 10 / (3 - i); }\n", stdout="0\n5\n1\n10\n2\n", stderr="a.rules:2:45: division by zero\n")


class Refusing(Rules):
    def test_valid_listing_by_hand_runs(self):
        self.write("l", VALID)
        done = self.program("rules", "exec", "l")
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "2.5\n", ""), done)
        self.write("l", self.changed("0 1:1 const 2", "0 1:1 load 0"))
        done = self.program("rules", "exec", "l")
        self.assertEqual((done.status, done.stdout, done.stderr), (1, "", "a.rules:1:2: condition is not a bool\n"), done)
        # Unused constants, slots and instructions.
        self.write("l", VALID[: VALID.index("slots")] + 'slots 65536\nconstants 2\n0 float nan\n1 text ""\ncode 5\n0 1:1 const 1\n1 1:1 print\n2 0:0 halt\n3 1:1 add\n4 1:1 jump 3\n')
        done = self.program("rules", "exec", "l")
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "\n", ""), done)

    def test_malformed_listings(self):
        self.check_refused(
            "", "rules-bytecode 1\n", VALID[:-1], VALID + "\n", VALID + "12 1:1 halt\n", VALID.replace("\n", "\r\n"), self.changed("bytecode 1", "bytecode 2"), self.changed("source a.rules\n", ""),
            self.changed("constants 4", "constants 3"), self.changed("constants 4", "constants 5"), self.changed("code 12", "code 11"), self.changed("code 12", "code 13"), self.changed("code 12", "code 012"), self.changed("code 12", "code 99999999999999999999"),
            self.changed("slots 2", "slots -1"), self.changed("slots 2", "slots 65537"), self.changed("slots 2", "slots"), self.changed("1 float", "2 float"), self.changed("3 1:4 const", "4 1:4 const"), self.changed("1:4 const", "1-4 const"), self.changed("1:4 const", "1:04 const"), self.changed("1:4 const", "const"),
        )

    def test_malformed_constants(self):
        self.check_refused(
            self.changed("int 1\n", "int 1.0\n"), self.changed("int 1\n", "int 9223372036854775808\n"), self.changed("int 1\n", "int 01\n"), self.changed("int 1\n", "int\n"), self.changed("int 1\n", "number 1\n"),
            self.changed("float 2.5", "float 2.50"), self.changed("float 2.5", "float 2"), self.changed("float 2.5", "float x"), self.changed("bool true", "bool yes"), self.changed('"x\\"y"', '"x\\"y'), self.changed('"x\\"y"', '"x"y"'), self.changed('"x\\"y"', '"x\\qy"'), self.changed('"x\\"y"', '"x\\"'), self.changed('"x\\"y"', '"'),
        )

    def test_wrong_instructions_and_arguments(self):
        self.check_refused(
            self.changed("1:4 const 1", "1:4 konst 1"), self.changed("1:4 const 1", "1:4 const"), self.changed("1:4 const 1", "1:4 const 1 1"), self.changed("1:4 const 1", "1:4 const 4"), self.changed("1:4 const 1", "1:4 const -1"),
            self.changed("call max", "call maximum"), self.changed("call max", "call"), self.changed("store 1", "store 2"), self.changed("load 1", "load x"), self.changed("jump 7", "jump 12"), self.changed("1:10 print", "1:10 print 1"), self.changed("halt", "halt "), self.changed("load 1", "input 1x"),
        )

    def test_code_that_misuses_the_stack(self):
        self.check_refused(
            self.changed("call max", "call min").replace("3 1:4 const 1", "3 1:4 not"), self.changed("6 1:7 const 3", "6 1:7 jump 7"), self.changed("5 1:6 jump 7", "5 1:6 jump 8"), self.changed("7 1:8 store 1", "7 1:8 halt"),
            self.changed("9 1:10 print", "9 1:10 check_and"), self.changed("10 0:0 halt", "10 0:0 jump 11"), self.changed("0 1:1 const 2", "0 1:1 print"), self.changed("0 1:1 const 2", "0 1:1 jump 1"),
            self.changed("10 0:0 halt", "10 0:0 const 0"), self.changed("10 0:0 halt", "10 0:0 jump 0").replace("9 1:10 print", "9 1:10 neg"), VALID[: VALID.index("code")] + "code 0\n", VALID[: VALID.index("code")] + "code 1\n0 1:1 const 0\n",
            VALID[: VALID.index("code")] + "code 5\n0 1:1 const 2\n1 1:1 and 3\n2 1:1 halt\n3 1:1 halt\n4 1:1 halt\n",
        )


class CommandLine(Rules):
    def test_usage(self):
        self.write("a.rules", "print 1;\n")
        for arguments in ([], ["compile"], ["compile", "-O"], ["compile", "a.rules", "-O"], ["compile", "a.rules", "x=1"], ["exec"], ["exec", "a.rules", "x"], ["run"], ["run", "a.rules", "x"], ["walk", "a.rules"]):
            done = self.program("rules", *arguments)
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", USAGE), arguments)

    def test_errors_of_files(self):
        self.write("a.rules", "print 1;\nprint (2;\n")
        for arguments in (["run", "a.rules"], ["compile", "a.rules"], ["compile", "-O", "a.rules"]):
            done = self.program("rules", *arguments)
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "a.rules:2:9: expected `)`\n"), arguments)
        for arguments in (["run", "none"], ["compile", "none"], ["exec", "none"]):
            done = self.program("rules", *arguments)
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "can't read `none`\n"), arguments)
        done = self.program("rules", "exec", "a.rules")
        self.assertEqual((done.status, done.stdout, done.stderr), (2, "", "`a.rules` is not valid bytecode\n"), done)

    def test_run_keeps_its_behavior(self):
        order = ["count=12", "price=999", "member=true"]
        done = self.program("rules", "run", "examples/discount.rules", *order)
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "net 11389\ntax 2164\n", ""), done)
        done = self.program("rules", "run", "examples/discount.rules", *order[:2])
        self.assertEqual((done.status, done.stdout, done.stderr), (1, "", "examples/discount.rules:3:32: no input `member`\n"), done)
