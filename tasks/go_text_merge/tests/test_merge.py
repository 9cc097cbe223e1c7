import random
import re
import unicodedata

import lab


def match(a, b):
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            longest[i][j] = longest[i + 1][j + 1] + 1 if a[i] == b[j] else max(longest[i + 1][j], longest[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def split(text):
    """Returns pairs of text and line end."""
    return [(line.rstrip("\n") if not line.endswith("\r\n") else line[:-2], "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else "")
            for line in re.findall(r"[^\n]*\n|[^\n]+", text)]


def key(line, ignore_space):
    return re.sub(r"[ \t]+", " ", line[0].rstrip(" \t")) if ignore_space else line[0]


class Model:
    """Merges texts as the rules say it."""

    def __init__(self, texts, style="merge", favor=None, ignore_space=False, labels=("ours", "base", "theirs")):
        self.style, self.favor, self.labels = style, favor, labels
        self.texts = [split(text) for text in texts]
        self.keys = [[key(line, ignore_space) for line in text] for text in self.texts]
        runs = [len(m[0]) for text in self.texts for line, _ in text for m in [re.match(r"(<+|\|+|=+|>+)(?= |$)", line)] if m]
        self.size = max([7] + [n + 1 for n in runs if n >= 7])
        self.end = next((text[0][1] for text in self.texts if text and text[0][1]), "\n")
        self.out, self.conflicts = [], 0
        self.merge()

    def result(self):
        return "".join(text + (end or (self.end if i + 1 < len(self.out) else "")) for i, (text, end) in enumerate(self.out))

    def merge(self):
        ours, base, theirs = self.texts
        to_ours, to_theirs = dict(match(self.keys[1], self.keys[0])), dict(match(self.keys[1], self.keys[2]))
        at = (0, 0, 0)
        for b in range(len(base)):
            if b in to_ours and b in to_theirs:
                o, t = to_ours[b], to_theirs[b]
                self.chunk((at[0], o), (at[1], b), (at[2], t))
                self.out.append(tuple(theirs[t][i] if ours[o][i] == base[b][i] else ours[o][i] for i in (0, 1)))
                at = (o + 1, b + 1, t + 1)
        self.chunk((at[0], len(ours)), (at[1], len(base)), (at[2], len(theirs)))

    def chunk(self, *spans):
        o, b, t = (text[start:end] for text, (start, end) in zip(self.texts, spans))
        ko, kb, kt = (keys[start:end] for keys, (start, end) in zip(self.keys, spans))
        if ko == kb:
            self.out += t
        elif kt == kb or ko == kt:
            self.out += o
        elif self.style == "diff3":
            self.conflict(o, b, t)
        elif self.style == "zdiff3":
            before = after = 0
            while before < min(len(ko), len(kt)) and ko[before] == kt[before]:
                before += 1
            while after < min(len(ko), len(kt)) - before and ko[-1 - after] == kt[-1 - after]:
                after += 1
            self.out += o[:before]
            self.conflict(o[before : len(o) - after], b, t[before : len(t) - after])
            self.out += o[len(o) - after :]
        else:
            # Alternates conflicts and groups of common lines.
            parts, i, j = [], 0, 0
            for x, y in match(ko, kt) + [(len(ko), len(kt))]:
                if (x, y) != (i, j):
                    parts.append(["conflict", o[i:x], t[j:y]])
                if x < len(ko) or y < len(kt):
                    if not parts or parts[-1][0] != "common":
                        parts.append(["common", [], []])
                    parts[-1][1].append(o[x])
                    parts[-1][2].append(t[y])
                i, j = x + 1, y + 1
            joined = []
            for n, (kind, left, right) in enumerate(parts):
                if kind == "common" and 0 < n < len(parts) - 1:
                    if len(left) <= 3 or not any(unicodedata.category(c)[0] == "L" or unicodedata.category(c) == "Nd" for line in left for c in line[0]):
                        kind = "conflict"
                if joined and kind == "conflict" == joined[-1][0]:
                    joined[-1] = [kind, joined[-1][1] + left, joined[-1][2] + right]
                else:
                    joined.append([kind, left, right])
            for kind, left, right in joined:
                if kind == "common":
                    self.out += left
                else:
                    self.conflict(left, [], right)

    def conflict(self, o, b, t):
        if self.favor:
            self.out += {"ours": o, "theirs": t, "union": o + t}[self.favor]
            return
        self.conflicts += 1
        marker = lambda c, label: self.out.append((c * self.size + (" " + label if label else ""), self.end))
        marker("<", self.labels[0])
        self.out += o
        if self.style != "merge":
            marker("|", self.labels[1])
            self.out += b
        marker("=", "")
        self.out += t
        marker(">", self.labels[2])


class Merge(lab.Case):
    def merge(self, ours, base, theirs, *options, status=None):
        for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
            self.write(name, text)
        done = self.program("textmerge", "merge", *options, "ours", "base", "theirs")
        if status is not None:
            self.assertEqual(done.status, status, done)
        return done.stdout

    def lines(self, text, end="\n"):
        return "".join(word + end for word in text.split())


class Diff(lab.Case):
    def diff(self, old, new, *options):
        self.write("old", old)
        self.write("new", new)
        return self.program("textmerge", "diff", *options, "old", "new")

    def long_diff(self, old, new):
        self.write("old", old)
        self.write("new", new)
        # The table with a cell for each pair of lines would take all memory of the machine.
        return self.program("sh", "-c", "ulimit -v 4000000; exec textmerge diff old new", seconds=30)

    def expected(self, a, b):
        out, i, j = "", 0, 0
        for x, y in match(a, b) + [(len(a), len(b))]:
            if (x, y) != (i, j):
                span = lambda start, end: f"{start if start == end else start + 1},{end - start}"
                out += f"@@ -{span(i, x)} +{span(j, y)} @@\n" + "".join(f"-{l}\n" for l in a[i:x]) + "".join(f"+{l}\n" for l in b[j:y])
            i, j = x + 1, y + 1
        return out

    def test_output_is_unchanged(self):
        done = self.diff("a\r\nb\nc\nd", "a\nx\nc\nd\ne \n")
        self.assertEqual((done.status, done.stdout), (1, "@@ -2,1 +2,1 @@\n-b\n+x\n@@ -4,0 +5,1 @@\n+e \n"), done)
        done = self.diff("a  b\n", "a b  ", "-b")
        self.assertEqual((done.status, done.stdout), (0, ""), done)
        self.assertEqual(self.diff("", "z").stdout, "@@ -0,0 +1,1 @@\n+z\n\\ no line end\n")
        self.assertEqual(self.program("textmerge", "diff", "old").status, 2)

    def test_the_choice_between_matches_is_unchanged(self):
        for a, b in (("x", "xx"), ("xx", "x"), ("ab", "ba"), ("axbx", "xa"), ("abcx", "xcbax"), ("aab", "aba"), ("xyx", "xxyxx"), ("", "a"), ("ab", "cd"), ("bab", "aabbab")):
            done = self.diff("".join(c + "\n" for c in a), "".join(c + "\n" for c in b))
            self.assertEqual(done.stdout, self.expected(a, b), (a, b))

    def test_the_choice_is_unchanged_for_many_texts(self):
        random_ = random.Random(7)
        for _ in range(60):
            letters = "abcdefghij"[: random_.choice((2, 3, 5, 10))]
            a, b = ("".join(random_.choice(letters) for _ in range(random_.randrange(40))) for _ in "ab")
            if random_.random() < 0.5:
                b = list(a)
                for _ in range(random_.randrange(8)):
                    at = random_.randrange(len(b) + 1)
                    b[at : at + random_.randrange(3)] = random_.choice(letters) * random_.randrange(3)
                b = "".join(b)
            done = self.diff("".join(c + "\n" for c in a), "".join(c + "\n" for c in b))
            self.assertEqual(done.stdout, self.expected(a, b), (a, b))

    def test_long_texts_with_few_differences(self):
        old = [f"line {i % 5000}" for i in range(100_000)]
        new = list(old)
        places = sorted({0, 99_999, *(i * 331 + 17 for i in range(298))})
        for i in places:
            new[i] = f"changed {i}"
        done = self.long_diff("\n".join(old) + "\n", "\n".join(new) + "\n")
        self.assertEqual(done.status, 1, done)
        expected = "".join(f"@@ -{i + 1},1 +{i + 1},1 @@\n-{old[i]}\n+{new[i]}\n" for i in places)
        self.assertEqual(done.stdout, expected)

    def test_texts_without_a_common_line(self):
        done = self.long_diff("".join(f"a{i}\n" for i in range(3000)), "".join(f"b{i}\n" for i in range(3000)))
        self.assertEqual(done.stdout.splitlines()[0], "@@ -1,3000 +1,3000 @@")
        self.assertEqual(len(done.stdout.splitlines()), 6001)


class Chunks(Merge):
    def test_changes_of_both_sides_are_brought_together(self):
        merged = self.merge(self.lines("A b c d e f g"), self.lines("a b c d e f g"), self.lines("a b d e new f G"), status=0)
        self.assertEqual(merged, self.lines("A b d e new f G"))

    def test_equal_changes_are_taken_once(self):
        self.assertEqual(self.merge("a\nx\r\nb\n", "a\nb\n", "a\nx\nb\n", status=0), "a\nx\r\nb\n")

    def test_neighboring_changes_are_a_conflict(self):
        merged = self.merge(self.lines("a X c"), self.lines("a b c"), self.lines("a b Y"), status=1)
        self.assertEqual(merged, "a\n<<<<<<< ours\nX\nc\n=======\nb\nY\n>>>>>>> theirs\n")

    def test_line_ends_and_texts_of_stable_lines_are_merged_separately(self):
        merged = self.merge("a  b\nc\r\nd\n", "a b\nc\nd\n", "a b\r\nc \nd", "-b", status=0)
        self.assertEqual(merged, "a  b\r\nc \r\nd")

    def test_the_end_of_the_text(self):
        self.assertEqual(self.merge("a", "a\n", "a\nb\n", status=0), "a\nb\n")
        self.assertEqual(self.merge("a\nb", "a", "a", status=0), "a\nb")
        self.assertEqual(self.merge("x\r\na", "x\r\na\r\n", "x\r\na\r\nb", status=0), "x\r\na\r\nb")
        self.assertEqual(self.merge("", "", "", status=0), "")
        self.assertEqual(self.merge("", "a\n", "a\n", status=0), "")

    def test_white_space_is_ignored_with_b_only(self):
        texts = "if  x\n\ty\nz\n", "if x\n y\nz\n", "if x \n y\nz!\n"
        self.assertEqual(self.merge(*texts, "-b", status=0), "if  x\n\ty\nz!\n")
        self.assertIn("<<<<<<<", self.merge(*texts, status=1))


class Conflicts(Merge):
    def test_diff3_shows_the_whole_chunk(self):
        merged = self.merge(self.lines("a p X q z"), self.lines("a b z"), self.lines("a p Y q z"), "-style", "diff3", status=1)
        self.assertEqual(merged, "a\n<<<<<<< ours\np\nX\nq\n||||||| base\nb\n=======\np\nY\nq\n>>>>>>> theirs\nz\n")

    def test_zdiff3_takes_equal_lines_out_at_both_ends(self):
        merged = self.merge(self.lines("a p X q z"), self.lines("a b z"), self.lines("a p q Y q z"), "-style", "zdiff3", status=1)
        self.assertEqual(merged, "a\np\n<<<<<<< ours\nX\n||||||| base\nb\n=======\nq\nY\n>>>>>>> theirs\nq\nz\n")

    def test_zdiff3_with_overlapping_ends(self):
        merged = self.merge(self.lines("x a a y"), self.lines("x b c y"), self.lines("x a a a y"), "-style=zdiff3", status=1)
        self.assertEqual(merged, "x\na\na\n<<<<<<< ours\n||||||| base\nb\nc\n=======\na\n>>>>>>> theirs\ny\n")

    def test_merge_style_takes_common_lines_out(self):
        done_lines = self.lines("s A 1 2 3 4 B e"), self.lines("s old e"), self.lines("s C 1 2 3 4 D e")
        merged = self.merge(*done_lines, status=1)
        expected = "s\n<<<<<<< ours\nA\n=======\nC\n>>>>>>> theirs\n1\n2\n3\n4\n<<<<<<< ours\nB\n=======\nD\n>>>>>>> theirs\ne\n"
        self.assertEqual(merged, expected)

    def test_up_to_three_common_lines_join_conflicts(self):
        merged = self.merge(self.lines("s A 1 2 3 B e"), self.lines("s old e"), self.lines("s C 1 2 3 D e"), status=1)
        self.assertEqual(merged, "s\n<<<<<<< ours\nA\n1\n2\n3\nB\n=======\nC\n1\n2\n3\nD\n>>>>>>> theirs\ne\n")

    def test_common_lines_without_letters_and_digits_join_conflicts(self):
        gap = "{ } -- \u00b2 ; \u2026"
        merged = self.merge(self.lines(f"s A {gap} B e"), self.lines("s old e"), self.lines(f"s C {gap} D e"), status=1)
        self.assertEqual(merged.count("<<<<<<<"), 1)
        gap = "{ } \u00e9 ;"
        merged = self.merge(self.lines(f"s A {gap} B e"), self.lines("s old e"), self.lines(f"s C {gap} D e"), status=1)
        self.assertEqual(merged.count("<<<<<<<"), 2)
        gap = "{ } \u0663 ;"
        merged = self.merge(self.lines(f"s A {gap} B e"), self.lines("s old e"), self.lines(f"s C {gap} D e"), status=1)
        self.assertEqual(merged.count("<<<<<<<"), 2)

    def test_each_group_of_common_lines_decides_on_its_own(self):
        merged = self.merge(self.lines("s A 1 B 2 C 1 2 3 4 D 3 E e"), self.lines("s old e"), self.lines("s F 1 G 2 H 1 2 3 4 I 3 J e"), status=1)
        side = lambda text: self.lines(text)
        self.assertEqual(merged, "s\n<<<<<<< ours\n" + side("A 1 B 2 C") + "=======\n" + side("F 1 G 2 H") + ">>>>>>> theirs\n" + side("1 2 3 4")
                         + "<<<<<<< ours\n" + side("D 3 E") + "=======\n" + side("I 3 J") + ">>>>>>> theirs\ne\n")

    def test_joined_lines_are_those_of_each_side_and_others_those_of_ours(self):
        merged = self.merge("A\n1\r\nB\n", "old\n", "C\n1\nD\n", status=1)
        self.assertEqual(merged, "<<<<<<< ours\nA\n1\r\nB\n=======\nC\n1\nD\n>>>>>>> theirs\n")
        merged = self.merge("1\r\nB\n", "old\n", "1\nD\n", status=1)
        self.assertEqual(merged, "1\r\n<<<<<<< ours\nB\n=======\nD\n>>>>>>> theirs\n".replace("ours\n", "ours\r\n").replace("===\n", "===\r\n").replace("theirs\n", "theirs\r\n"))

    def test_number_of_conflicts(self):
        self.merge(self.lines("A 1 B"), self.lines("a 1 b"), self.lines("C 1 D"))
        done = self.program("textmerge", "merge", "ours", "base", "theirs")
        self.assertEqual((done.status, done.stderr.strip()), (1, "conflicts: 2"), done)
        done = self.program("textmerge", "merge", "-favor", "ours", "ours", "base", "theirs")
        self.assertEqual((done.status, done.stdout, done.stderr), (0, self.lines("A 1 B"), ""), done)


class Markers(Merge):
    def test_labels(self):
        merged = self.merge("X\n", "a\n", "Y\n", "-style", "diff3", "-L", "", "-L", "the old", status=1)
        self.assertEqual(merged, "<<<<<<<\nX\n||||||| the old\na\n=======\nY\n>>>>>>> theirs\n")

    def test_markers_are_longer_than_those_in_the_texts(self):
        merged = self.merge("X\n", "a\n======== \n", "<<<<<<< me\n", status=1)
        self.assertEqual(merged.splitlines()[0], "<<<<<<<<< ours")
        merged = self.merge("X\n", "a\n=========x\n =======\n======\n<<<<<<<>\n", "Y\n", status=1)
        self.assertEqual(merged.splitlines()[2], "=======")
        merged = self.merge("X\n", "a\n", "|||||||\r\n", status=1)
        self.assertEqual(merged, "<<<<<<<< ours\nX\n========\n|||||||\r\n>>>>>>>> theirs\n")

    def test_line_ends_of_markers(self):
        self.assertEqual(self.merge("X\r\nq\n", "a\n", "Y\n", status=1), "<<<<<<< ours\r\nX\r\nq\n=======\r\nY\n>>>>>>> theirs\r\n")
        self.assertEqual(self.merge("X", "a\r\n", "Y", status=1), "<<<<<<< ours\r\nX\r\n=======\r\nY\r\n>>>>>>> theirs\r\n")
        self.assertEqual(self.merge("X", "a", "Y", status=1), "<<<<<<< ours\nX\n=======\nY\n>>>>>>> theirs\n")

    def test_favored_sides(self):
        texts = "a\nX", "a\nb\n", "a\nY"
        for favor, expected in (("ours", "a\nX"), ("theirs", "a\nY"), ("union", "a\nX\nY")):
            self.assertEqual(self.merge(*texts, "-favor", favor, status=0), expected)
        merged = self.merge(self.lines("s A 1 2 3 4 B"), self.lines("s old"), self.lines("s C 1 2 3 4 D"), "-favor=union", status=0)
        self.assertEqual(merged, self.lines("s A C 1 2 3 4 B D"))

    def test_trouble(self):
        self.assertEqual(self.merge("a\x00\n", "a\n", "a\n", status=2), "")
        self.write("ours", "a\n")
        for arguments in (["ours", "base"], ["ours", "base", "none"], ["-style", "git", "ours", "base", "theirs"], ["-favor", "none", "ours", "base", "theirs"],
                          ["-L", "a", "-L", "b", "-L", "c", "-L", "d", "ours", "base", "theirs"]):
            done = self.program("textmerge", "merge", *arguments)
            self.assertEqual((done.status, done.stdout), (2, ""), done)


class Random(Merge):
    def test_many_texts_are_merged_as_the_rules_say(self):
        random_ = random.Random(11)
        for number in range(120):
            letters = "abcdefghijkl"[: random_.choice((3, 6, 12))] + "{"
            text = lambda words: "".join(w + random_.choice((" ", "", "", "")) + random_.choice(("\n",) * 8 + ("\r\n",)) for w in words)

            def edited(words):
                words = list(words)
                for _ in range(random_.randrange(5)):
                    at = random_.randrange(len(words) + 1)
                    words[at : at + random_.randrange(3)] = [random_.choice(letters) for _ in range(random_.randrange(4))]
                return words

            base = [random_.choice(letters) for _ in range(random_.randrange(14))]
            texts = [text(edited(base)), text(base), text(edited(base))]
            texts = [t[: -1] if random_.random() < 0.2 else t for t in texts]
            style, favor, space = random_.choice(("merge", "merge", "diff3", "zdiff3")), random_.choice((None, None, None, "ours", "theirs", "union")), random_.random() < 0.5
            model = Model(texts, style, favor, space)
            options = ["-style", style] + (["-favor", favor] if favor else []) + (["-b"] if space else [])
            merged = self.merge(*texts, *options, status=1 if model.conflicts else 0)
            self.assertEqual(merged, model.result(), (texts, options))
