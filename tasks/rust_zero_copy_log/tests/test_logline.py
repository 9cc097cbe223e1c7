import json

import lab


class Program(lab.Case):
    def logline(self, data, *arguments):
        done = self.program("{build}/debug/logline", *arguments, stdin=data)
        self.assertEqual(done.status, 0, done)
        return done.stdout

    def golden(self, cases, *arguments):
        for data, expected in cases:
            self.assertEqual(self.logline(bytes.fromhex(data), *arguments), expected, data)

    def test_output_for_whole_logs_stays(self):
        self.golden(json.loads(lab.data("golden.json"))[::2])

    def test_output_for_chunks_of_one_byte_stays(self):
        self.golden(json.loads(lab.data("golden.json"))[1::6], "--chunk", "1")

    def test_output_for_larger_chunks_stays(self):
        cases = json.loads(lab.data("golden.json"))
        self.golden(cases[3::12], "--chunk", "3")
        self.golden(cases[5::12], "--chunk", "16")

    def test_wrong_usage_stays(self):
        for arguments in (("--chunk",), ("--chunk", "0"), ("--other",)):
            self.assertEqual(self.program("{build}/debug/logline", *arguments).status, 2)


class Base(lab.Case):
    def ask(self, operation, *arguments):
        words = [one.hex() if isinstance(one, bytes) else str(one) for one in arguments]
        done = self.program("{build}/debug/examples/driver", stdin=" ".join([operation, *words]) + "\n")
        self.assertEqual(done.status, 0, done)
        *lines, end = done.stdout.splitlines()
        self.assertEqual(end, "---")
        return lines

    def both(self, data, expected):
        """Checks `parse` and `records`."""
        self.assertEqual(self.ask("parse", data), expected)
        self.assertEqual(self.ask("records", data), expected)

    def streamed(self, chunks, expected):
        """Checks `push` and `feed`."""
        self.assertEqual(self.ask("push", *chunks), expected)
        self.assertEqual(self.ask("feed", 1000, *chunks), expected)


class Borrowing(Base):
    def test_texts_that_are_in_the_input_are_borrowed(self):
        self.both("é=ü  b=1=2 c=\"x y\"\td\n".encode(), ['1 é:b="ü":b b:b="1=2":b c:b="x y":b d:b'])

    def test_empty_texts_are_borrowed(self):
        self.both(b'a= b=""\nc=', ['1 a:b="":b b:b="":b', '2 c:b="":b'])

    def test_keys_with_upper_case_ascii_letters_are_owned(self):
        self.both("Abc=X É d_E\n".encode(), ['1 abc:o="X":b É:b d_e:o'])

    def test_strings_with_escapes_are_owned(self):
        data = b'a="\\n" b="x\\"y" c="x\\\\" d="\\tx" e="x\\r"'
        self.both(data, ['1 a:b="\\n":o b:b="x\\"y":o c:b="x\\\\":o d:b="\\tx":o e:b="x\\r":o'])

    def test_strings_over_several_lines(self):
        data = b'a="x\n\ty\n" b="x\\\n \t y" c="\\\n" d="\r\n" e="x\ry"\nf=1\n'
        error = "error line 6, column 7: control character U+000D"
        self.both(data, [error, '7 f:b="1":b'])
        self.both(data.replace(b"x\ry", b"x\r\ny"), ['1 a:b="x\\n\\ty\\n":b b:b="xy":o c:b="":o d:b="\\n":o e:b="x\\ny":o', '8 f:b="1":b'])

    def test_owned_records(self):
        data = b'a=1 b="x" C\n=\nd=""\n'
        self.assertEqual(self.ask("owned", data), ['1 a:o="1":o b:o="x":o c:o', '3 d:o="":o'])
        self.assertEqual(self.ask("get", data, "a", "c", "C", "d"), ['Some("1")', 'Some("true")', "None", "None"])


class Errors(Base):
    def test_control_characters(self):
        for text, code in (("\x7f", "007F"), ("\u0085", "0085"), ("\u009f", "009F"), ("\0", "0000"), ("\rx", "000D")):
            error = f"control character U+{code}"
            data = f"é{text}\na=é{text}\na=\"é{text}\nb\n".encode()
            self.both(data, [f"error line 1, column 2: {error}", f"error line 2, column 4: {error}", f"error line 3, column 5: {error}", "4 b:b"])

    def test_places_of_errors_in_strings(self):
        data = 'é="\r\nü\\q"\na="\\\n  \xe9"x\nb="x\n'.encode()
        self.both(
            data,
            [
                "error line 2, column 2: unknown escape `\\q`",
                "error line 4, column 5: expected a blank after the string, found `x`",
                "error line 5, column 3: unterminated string",
            ],
        )

    def test_invalid_utf8(self):
        data = b"# \xff\n\xc3\xa9\xff\na=\xe2\x82\nb=\"\\\xff\" c\nd=\xed\xa0\x80\n= \xff\ne=\xc3"
        expected = [f"error line {line}, column {column}: invalid UTF-8" for line, column in ((2, 2), (3, 3), (4, 5), (5, 3))]
        self.both(data, [*expected, "error line 6, column 1: expected a key, found `=`", "error line 7, column 3: invalid UTF-8"])

    def test_duplicate_keys(self):
        self.both(b'a=1 b A="x\ny" c\nd\n', ["error line 1, column 7: the key `a` comes twice", "error line 2, column 2: unexpected `\"` in a key", "3 d:b"])


class Streaming(Base):
    def test_records_within_a_chunk_are_borrowed(self):
        chunks = [b"# c\na=1\n b=\"x\ny\"\r\n", b"c=2 D\n\n", b"", b"e\nf"]
        expected = ['0: 2 a:b="1":b', '0: 3 b:b="x\\ny":b', '1: 5 c:b="2":b d:o', "3: 7 e:b", "end: 8 f:o"]
        self.streamed(chunks, expected)

    def test_records_across_chunks_are_owned(self):
        chunks = [b"a=1 b", b"=\"x\n", b"y\" c\nd=1\n e=", b"2\nf=3", b"\ng=4\n"]
        expected = ['2: 1 a:o="1":o b:o="x\\ny":o c:o', '2: 3 d:b="1":b', '3: 4 e:o="2":o', '4: 5 f:o="3":o', '4: 6 g:b="4":b']
        self.streamed(chunks, expected)

    def test_line_ends_characters_and_escapes_across_chunks(self):
        data = 'é="\\n\\\r\n  ü\r\n" b=1\r\nc=€\r\n'.encode()
        expected = ['1 é:o="\\nü\\n":o b:o="1":o', '4 c:o="€":o']
        for size in (1, 2, 3):
            chunks = [data[start : start + size] for start in range(0, len(data), size)]
            lines = self.ask("feed", 1000, *chunks)
            self.assertEqual([line.partition(": ")[2] for line in lines], expected)
        first = len(data) - len("c=€\r\n".encode())
        self.assertEqual([line.split(":")[0] for line in lines], [str((first - 1) // 3), str((len(data) - 1) // 3)])

    def test_errors_across_chunks(self):
        chunks = [b"a=\"x\n", b"\\q\" b\nc ", b"=1\nd=\x07", b"...", b"\xff\ne=\xe2\x82", b"\xac\nf=\"x", b"\\", b"\n"]
        expected = [
            "1: error line 2, column 1: unknown escape `\\q`",
            "2: error line 3, column 3: expected a key, found `=`",
            "4: error line 4, column 3: control character U+0007",
            '5: 5 e:o="€":o',
            "end: error line 6, column 3: unterminated string",
        ]
        self.streamed(chunks, expected)

    def test_items_that_were_not_taken_come_later(self):
        chunks = [b"a\nb\n=\nc", b"", b"1\nd\n", b"e\nf\n"]
        expected = ["0: 1 a:b", "1: 2 b:o", "2: error line 3, column 1: expected a key, found `=`", "3: 4 c1:o"]
        lines = self.ask("feed", 1, *chunks)
        self.assertEqual(lines, [*expected, "end: 5 d:o", "end: 6 e:o", "end: 7 f:o"])

    def test_feeds_that_are_dropped_at_once(self):
        lines = self.ask("feed", 0, b"a\nb=\"x", b"\n", b"y\"\n\n#", b" z\nc\n=")
        expected = ["1 a:o", '2 b:o="x\\ny":o', "6 c:o", "error line 7, column 1: expected a key, found `=`"]
        self.assertEqual(lines, [f"end: {line}" for line in expected])

    def test_parsing_goes_on_after_waiting_items(self):
        chunks = [b"a\nb\nc\n", b"d\n", b"e\nf"]
        lines = self.ask("feed", 2, *chunks)
        self.assertIn(lines.pop(3), ("1: 4 d:b", "1: 4 d:o"))
        self.assertEqual(lines, ["0: 1 a:b", "0: 2 b:b", "1: 3 c:o", "2: 5 e:b", "end: 6 f:o"])


class Cost(Base):
    def count(self, operation, *arguments):
        return [int(number) for number in self.ask(operation, *arguments)[0].split()]

    def test_allocations_do_not_depend_on_lengths(self):
        fields = b" ".join(b"key%d=%s" % (number, b'"%s"' % (b"x " * 50) if number % 2 else b"y" * 100) for number in range(30))
        items, count, peak = self.count("count", fields + b"\n", 50, 0)
        self.assertEqual(items, 50)
        self.assertLessEqual(count, 4 * 50)
        self.assertLessEqual(peak, 8 << 10)

    def test_skipped_lines_take_no_allocations(self):
        items, count, _ = self.count("count", b"# comment comment comment\n \t\r\n\n", 200, 0)
        self.assertEqual((items, count), (0, 0))

    def test_parsing_is_lazy(self):
        items, count, peak = self.count("first", b"a=1 b=2 c\n", 20000)
        self.assertEqual(items, 1)
        self.assertLessEqual(count, 4)
        self.assertLessEqual(peak, 8 << 10)

    def test_chunks_take_little_memory(self):
        line = b"a=" + b"x" * 300 + b' b="' + b"y " * 90 + b'"\n'
        items, count, peak = self.count("count", line, 400, 100 * len(line))
        self.assertEqual(items, 400)
        self.assertLessEqual(count, 4 * 400)
        self.assertLessEqual(peak, 8 << 10)
        items, _, peak = self.count("count", line, 400, 1000)
        self.assertEqual(items, 400)
        self.assertLessEqual(peak, 2 * len(line) + (8 << 10))

    def test_long_lines_in_chunks_of_one_byte(self):
        items, _, _ = self.count("count", b"a=" + b"x" * 100_000 + b"\n", 1, 1)
        self.assertEqual(items, 1)
