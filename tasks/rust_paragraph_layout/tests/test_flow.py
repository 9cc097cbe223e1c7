import functools
import random

import lab

SOFT, ZERO, NO_BREAK = "\u00ad", "\u200b", "\u00a0"
GLUE = {"space": " ", "hyphen": "", "soft": SOFT, "zero": ZERO, "end": ""}


def columns(text):
    return sum(2 if char in "字語🙂" else 0 if char == "\u0301" else 1 for char in text)


class Layout:
    """Model of the rules. A paragraph is a list of (text, kind of the break after it)."""

    def __init__(self, width=72, first=0, hang=0, shapes=()):
        self.width, self.first, self.hang, self.shapes = width, first, hang, shapes

    def arguments(self):
        shapes = [part for low, high, width in self.shapes for part in ("--shape", f"{low}-{high}:{width}")]
        return ["--width", str(self.width), "--first", str(self.first), "--hang", str(self.hang), *shapes]

    def space(self, line):
        width = self.width
        for low, high, other in self.shapes:
            if low <= line <= high:
                width = other
        return width - (self.first if line == 1 else self.hang)

    def natural(self, pieces):
        inner = sum(columns(text) + (kind == "space") for text, kind in pieces[:-1])
        return inner + columns(pieces[-1][0]) + (pieces[-1][1] == "soft")

    def line_cost(self, pieces, line, run, before):
        """Returns the cost, the length of the row of hyphenated lines, and the density."""
        space, natural, kind = self.space(line), self.natural(pieces), pieces[-1][1]
        slack, is_last, cost = space - natural, kind == "end", 0
        if slack < 0:
            cost += 10000 - 500 * slack
        elif not is_last:
            cost += slack**2
        elif line > 1 and 4 * natural < space:
            cost += 90
        cost += {"soft": 60, "hyphen": 25}.get(kind, 0)
        is_hyphenated = kind in ("soft", "hyphen")
        if is_hyphenated and run:
            cost += 80 if run == 1 else 400
        density = "tight" if 8 * slack < space else "loose" if 3 * slack > space else ""
        if not is_last and {before, density} == {"tight", "loose"}:
            cost += 120
        return cost, min(run + 1, 2) if is_hyphenated else 0, density

    def best(self, pieces):
        """Returns (cost, lines, hyphenated lines) and the numbers of pieces."""
        last_shape = max((high for _, high, _ in self.shapes), default=1)

        @functools.cache
        def rest(start, line, run, before):
            if start == len(pieces):
                return (0, 0, 0, ())
            found = None
            for end in range(start + 1, len(pieces) + 1):
                one = pieces[start:end]
                if end > start + 1:
                    if self.natural(one) - (one[-1][1] == "soft") > self.space(line):
                        break
                    if self.natural(one) > self.space(line):
                        continue
                cost, row, density = self.line_cost(one, line, run, before)
                others = rest(end, min(line + 1, last_shape + 1), row, density)
                total = (others[0] + cost, others[1] + 1, others[2] + bool(row), (start - end, *others[3]))
                found = min(found or total, total)
            return found

        cost, lines, hyphenated, sizes = rest(0, 1, 0, "")
        return (cost, lines, hyphenated), [-size for size in sizes]

    def page_end(self, row, rows, is_orphan, kind):
        return 40 * (rows - row) ** 2 + 300 * is_orphan + 150 * (kind in ("soft", "hyphen"))

    def best_pages(self, paragraphs, rows):
        """Returns the total cost, and for each paragraph a list of (number of pieces, page ends behind)."""
        last_shape = max((high for _, high, _ in self.shapes), default=1)

        @functools.cache
        def rest(number, start, line, run, before, row):
            pieces = paragraphs[number]
            found = None
            for end in range(start + 1, len(pieces) + 1):
                one = pieces[start:end]
                if end > start + 1:
                    if self.natural(one) - (one[-1][1] == "soft") > self.space(line):
                        break
                    if self.natural(one) > self.space(line):
                        continue
                cost, hyphens, density = self.line_cost(one, line, run, before)
                is_over = end == len(pieces)
                if is_over and line > 1 and row == 1:
                    cost += 350
                follow = (number + 1, 0, 1, 0, "") if is_over else (number, end, min(line + 1, last_shape + 1), hyphens, density)
                ways = []
                if is_over and number + 1 == len(paragraphs):
                    ways.append((0, 0, 0, 0, False, ()))
                else:
                    if row + 1 + is_over <= rows:
                        ways.append((*rest(*follow, row + 1 + is_over)[:4], False, follow, row + 1 + is_over))
                    ended = rest(*follow, 1)
                    price = self.page_end(row, rows, line == 1 and not is_over, one[-1][1])
                    ways.append((ended[0] + price, ended[1] + 1, ended[2], ended[3], True, follow, 1))
                for way in ways:
                    others = rest(*way[5], way[6])[4] if way[5] else ()
                    total = (way[0] + cost, way[1], way[2] + 1, way[3] + bool(hyphens), ((start - end, way[4]), *others))
                    found = min(found or total, total)
            return found

        total = rest(0, 0, 1, 0, "", 1)
        sizes, flat = [], list(total[4])
        for pieces in paragraphs:
            left, one = len(pieces), []
            while left:
                size, is_end = flat.pop(0)
                left += size
                one.append((-size, is_end))
            sizes.append(one)
        return total[:4], sizes

    def text(self, pieces, sizes):
        lines, start = [], 0
        for size in sizes:
            one = pieces[start : start + size]
            start += size
            text = "".join(text + (" " if kind == "space" else "") for text, kind in one)
            text = text[:-1] if one[-1][1] == "space" else text + "-" * (one[-1][1] == "soft")
            lines.append(" " * (self.hang if lines else self.first) + text.replace(NO_BREAK, " "))
        return lines


def source(pieces):
    return "".join(text + GLUE[kind] for text, kind in pieces)


def words(text):
    """Makes pieces of words, in which `~` is a soft hyphen, `|` a zero-width space, and `=` a hyphen."""
    pieces = []
    for word in text.split(" "):
        part = ""
        for char in word:
            if char in "~|=":
                pieces.append((part + "-" * (char == "="), {"~": "soft", "|": "zero", "=": "hyphen"}[char]))
                part = ""
            else:
                part += char
        pieces.append((part, "space"))
    return [*pieces[:-1], (pieces[-1][0], "end")]


def random_pieces(choice, count, kinds, long_ones=False):
    pieces = []
    for _ in range(count):
        letters = "".join(choice.choice("abcdefg") for _ in range(choice.choice([1, 2, 2, 3, 4, 5, 7])))
        letters += choice.choice(["", "", "", "字語", "e\u0301x"])
        if long_ones and choice.random() < 0.05:
            letters *= 4
        kind = choice.choice(kinds)
        pieces.append((letters + "-" * (kind == "hyphen"), kind))
    return [*pieces[:-1], (pieces[-1][0].rstrip("-"), "end")]


class Base(lab.Case):
    def flow(self, text, *arguments, status=0):
        done = self.program("{build}/debug/flow", *arguments, stdin=text)
        self.assertEqual(done.status, status, done)
        return done.stdout

    def check(self, layout, *paragraphs):
        """Compares text and costs with the model. Returns the lines of the last paragraph."""
        paragraphs = [words(one) if isinstance(one, str) else one for one in paragraphs]
        text = "\n\n".join(source(pieces) for pieces in paragraphs)
        models = [layout.best(pieces) for pieces in paragraphs]
        costs = [f"lines {lines} hyphenated {hyphenated} cost {cost}" for (cost, lines, hyphenated), _ in models]
        self.assertEqual(self.flow(text, "--mode", "best", "--stats", *layout.arguments()).splitlines(), costs)
        expected = [layout.text(pieces, sizes) for pieces, (_, sizes) in zip(paragraphs, models)]
        printed = self.flow(text, "--mode", "best", *layout.arguments())
        self.assertEqual(printed, "\n\n".join("\n".join(lines) for lines in expected) + "\n")
        return expected[-1]


class Pages(Base):
    def pages(self, layout, rows, *paragraphs):
        """Compares text and costs with the model. Returns the pages."""
        paragraphs = [words(one) if isinstance(one, str) else one for one in paragraphs]
        text = "\n\n".join(source(pieces) for pieces in paragraphs)
        (cost, pages, _, _), sizes = layout.best_pages(tuple(map(tuple, paragraphs)), rows)
        expected, is_begin = [], True
        for pieces, one in zip(paragraphs, sizes):
            expected += [] if is_begin else [""]
            for line, (_, is_end) in zip(layout.text(pieces, [size for size, _ in one]), one):
                expected += [line, "\f"] if is_end else [line]
                is_begin = is_end
        arguments = ("--mode", "best", "--pages", str(rows), *layout.arguments())
        printed = self.flow(text, *arguments)
        self.assertEqual(printed, "\n".join(expected) + "\n")
        stats = [line.split() for line in self.flow(text, *arguments, "--stats").splitlines()]
        self.assertEqual([int(line[1]) for line in stats[:-1]], [len(one) for one in sizes])
        self.assertEqual((stats[-1][:2], sum(int(line[-1]) for line in stats)), (["pages", str(pages + 1)], cost))
        return [page.strip("\n").splitlines() for page in printed.split("\f\n")]

    def test_greedy_pages_are_filled(self):
        text = "aa bb cc dd\n\nee ff\n\ngg\n\nhh ii jj"
        done = self.flow(text, "--width", "5", "--pages", "4")
        self.assertEqual(done, "aa bb\ncc dd\n\nee ff\n\f\ngg\n\nhh ii\njj\n")
        self.assertEqual(self.flow(text, "--width", "5", "--pages", "4", "--stats").splitlines()[-1], "pages 2 cost 0")
        self.assertEqual(self.flow("aa\n\nbb\n\ncc", "--pages", "2"), "aa\n\f\nbb\n\f\ncc\n")
        self.assertEqual(self.flow("aa\n\nbb\n\ncc", "--pages", "2", "--stats").splitlines()[-1], "pages 3 cost 80")

    def test_costs_of_greedy_pages(self):
        text = f"aa bb\n\ncc dd ee ff gg\n\nhh{SOFT}ii jj"
        self.assertEqual(self.flow(text, "--width", "5", "--pages", "3"), "aa bb\n\ncc dd\n\f\nee ff\ngg\n\f\nhhii\njj\n")
        self.assertEqual(self.flow(text, "--width", "5", "--pages", "3", "--stats").splitlines()[-1], "pages 3 cost 340")
        widows = self.flow("aa bb cc dd ee", "--width", "5", "--pages", "2", "--stats").splitlines()
        self.assertEqual(widows[-1], "pages 2 cost 350")
        hyphens = self.flow(f"aaaa bb{SOFT}bbbb cc", "--width", "5", "--pages", "2", "--stats").splitlines()
        self.assertEqual(hyphens[-1], "pages 2 cost 150")

    def test_empty_text_and_wrong_usage(self):
        self.assertEqual(self.flow(" \n", "--pages", "9"), "")
        self.assertEqual(self.flow(" \n", "--pages", "9", "--stats", "--mode", "best"), "pages 0 cost 0\n")
        for rows in ("0", "1", "-3", "x", ""):
            self.flow("a", "--pages", rows, status=2)

    def test_one_page_is_as_before(self):
        text = "aaa bb cc ddddd\n\neee ff g\n"
        plain = self.flow(text, "--width", "6", "--mode", "best")
        self.assertEqual(self.flow(text, "--width", "6", "--mode", "best", "--pages", "9"), plain)

    def test_pages_end_early_for_orphans_and_widows(self):
        found = self.pages(Layout(8), 6, "aaaaaa bbbbbb cccccc dddddd", "eeeeee ffffff gggggg hhhhhh")
        self.assertEqual([len(page) for page in found], [4, 4])
        found = self.pages(Layout(8), 5, "aaaaaa bbbbbb cccccc dddddd eeeeee ffffff")
        self.assertEqual([len(page) for page in found], [4, 2])

    def test_paragraphs_become_longer_or_shorter_for_pages(self):
        for rows in range(2, 9):
            self.pages(Layout(13), rows, "aaa bbb cc dddd e fff gg hhh ii jjj kk l mmm", "nn oo=pp qqq rrr s tt uuu vv", "ww xx yyy zz aaa b cc dd")

    def test_hyphens_at_page_ends(self):
        for rows in (2, 3, 4):
            self.pages(Layout(9), rows, "aaaa bbb~bbb ccc ddd=ddd eee ffff~ff ggg hhh iii~iii", "jj kkk~kkk llll")

    def test_shapes_and_indentation(self):
        for rows in (3, 5):
            self.pages(Layout(12, 2, 1, [(1, 2, 16), (4, 5, 9)]), rows, "aaa bbbb cc ddddd e ffff ggg~hhh ii jjjjj kk lll mmmm nn o ppp", "qqqq rrr=ss ttt uu vvvv ww x")

    def test_costs_across_page_ends(self):
        for rows in (2, 3):
            self.pages(Layout(7), rows, "aaaa=bbbb=cccc=dddd=eeee", "aa bbb=bbb ccc=cc dd=eee fff=fff gg=gg hh")
            self.pages(Layout(14), rows, "a bcd efg hi j k lmnopqrstuvw xyz abcdefghijkl mnopqr st uvwx yz")

    def test_many_texts(self):
        choice = random.Random(7)
        for _ in range(60):
            kinds = choice.choice([["space"], ["space", "space", "soft", "hyphen", "zero"]])
            texts = [random_pieces(choice, choice.randint(1, 16), kinds, True) for _ in range(choice.randint(1, 6))]
            shapes = choice.choice([[], [], [(2, 3, 15)]])
            self.pages(Layout(choice.choice([8, 11, 16]), choice.choice([0, 2]), 0, shapes), choice.randint(2, 9), *texts)

    def test_ties(self):
        choice = random.Random(8)
        for _ in range(60):
            texts = [[("aa", "space")] * choice.randint(0, 7) + [("aa", "end")] for _ in range(choice.randint(2, 6))]
            self.pages(Layout(choice.choice([5, 6, 8])), choice.randint(2, 6), *texts)

    def test_long_text(self):
        choice = random.Random(9)
        texts = [random_pieces(choice, 75, ["space", "space", "space", "soft"]) for _ in range(20)]
        text = "\n\n".join(source(pieces) for pieces in texts)
        best = self.flow(text, "--width", "60", "--pages", "30", "--mode", "best", "--stats").splitlines()
        greedy = self.flow(text, "--width", "60", "--pages", "30", "--stats").splitlines()
        total = [sum(int(line.split()[-1]) for line in lines) for lines in (best, greedy)]
        self.assertLess(total[0], total[1])


class Greedy(Base):
    def test_output_without_new_options_stays(self):
        text = f"\n\nhello wor{SOFT}ld state-of-the-art\t{SOFT}this{ZERO}is{SOFT} -a a- 1{NO_BREAK}000 --x 字字\r\n \n  next one\n"
        lines = ["hello wor-", "  ld", "  state-", "  of-the-", "  art this", "  is -a a-", "  1 000", "  --x 字字"]
        self.assertEqual(self.flow(text, "--width", "10", "--hang", "2"), "\n".join([*lines, "", "next one"]) + "\n")

    def test_shapes_in_greedy_mode(self):
        done = self.flow("aa bb cc dd ee ff gg", "--width", "5", "--first", "1", "--shape", "1-3:3", "--shape", "2-2:8")
        self.assertEqual(done, " aa\nbb cc dd\nee\nff gg\n")

    def test_costs_of_greedy_layouts(self):
        text = f"aaaa bb{SOFT}bb cc\n\nabcdefghijkl\n\na-b-c-d-e"
        done = self.flow(text, "--width", "8", "--stats")
        self.assertEqual(done, "lines 2 hyphenated 1 cost 60\nlines 1 hyphenated 0 cost 12000\nlines 2 hyphenated 1 cost 115\n")

    def test_wrong_usage(self):
        for arguments in (("--shape", "0-1:9"), ("--shape", "3-2:9"), ("--shape", "1-2:4"), ("--width", "4"), ("--mode", "other"), ("--shape", "1:9"), ("--other",)):
            self.flow("a", "--first", "2", "--hang", "4", *arguments, status=2)


class Best(Base):
    def test_squares_of_slack(self):
        self.assertEqual(self.check(Layout(6), "aaa bb cc ddddd"), ["aaa", "bb cc", "ddddd"])
        self.check(Layout(9), "aaa bb cc ddddd eeee", "aaaaa bb cc ddd e ffff gg")

    def test_short_last_lines(self):
        self.assertEqual(self.check(Layout(12), "aaaaa bbbb cc d"), ["aaaaa bbbb", "cc d"])
        self.check(Layout(12), "aaaaa bbbb ccc", "aaaaa bbbb cc", "aaaaaa bbbbb cc", "aa")

    def test_hyphens_cost_by_kind(self):
        self.check(Layout(12), "aaaa bbbb cc~cc dd ee", "aaaa bbbb cc=cc dd ee", "aaaa bbbb cc|cc dd ee", "aaa bb cccccc~dddd ee")

    def test_rows_of_hyphenated_lines(self):
        self.check(Layout(7), "aaaa=bbbb=cccc=dddd=eeee", "aaaaa~bbbbb~ccccc=ddddd~eeeee~fffff", "aa bbb=bbb ccc=cc dd=eee fff=fff gg=gg hh")

    def test_contrast_of_neighbors(self):
        text = "a bcd efg hi j k lmnopqrstuvw xyz abcdefghijkl mnopqr st uvwx yz abcdefghijklm no"
        for width in range(14, 30):
            self.check(Layout(width), text)

    def test_overfull_lines_have_one_piece(self):
        self.check(Layout(8), "a bbbbbbbbbbbb cc", "aaaa bbbbbbbbb", "bbbbbbbbbbb~cccccccc dd", "bbbbbbbb~cc", "aa bbbbbbbb~cc ddd", "eee bbbbbbbbbbbbbbb=f")

    def test_hyphen_that_does_not_fit_does_not_end_the_search(self):
        self.assertEqual(self.check(Layout(8), [("abcdefg", "space"), ("h\u0301", "end")]), ["abcdefg", "h\u0301"])
        pieces = [("aaaa", "space"), ("bbb", "soft"), ("\u0301", "space"), ("cccc", "end")]
        self.assertEqual(self.check(Layout(8), pieces), ["aaaa bbb\u0301", "cccc"])

    def test_fewer_lines_win_a_tie(self):
        self.assertEqual(self.check(Layout(7), "aaa bb=c ddd"), ["aaa bb-", "c ddd"])
        self.check(Layout(10), "aaaaaa bb=cccc ddd", "aaaaaa=bbbb cc dddddd ee=ffff ggggg")
        self.check(Layout(9), "aaaa b ccccc d=ee fff=ggg hhh", "aaaa b=ccccc d eeeee ff=g hhhhh")

    def test_fewer_hyphenated_lines_win_a_tie(self):
        self.assertEqual(self.check(Layout(11), "a bbbb ccc=dddd"), ["a bbbb", "ccc-dddd"])
        self.check(Layout(15), "aa~bbbbb cccc~dddd")
        self.check(Layout(16), "a bbbbb ccc ddd=eeee")
        self.check(Layout(10), "aaaaa bbb=cc=ddd", "aaaa=bb ccc d eee=fffff")

    def test_longer_first_lines_win_a_tie(self):
        self.assertEqual(self.check(Layout(6), "a bbb ccc d eee ff g"), ["a bbb", "ccc d", "eee", "ff g"])
        self.check(Layout(9), "aaaaa b ccc d eeeeee", "aaaaaa bb cccccc ddd=e")
        self.check(Layout(8), "aaaaa b ccccc dddd ee ff g hhhhhh", "aa bbbb cccc d eeee ff gggg hhhh i")

    def test_indentation(self):
        for first, hang in ((3, 0), (0, 3), (5, 2)):
            self.check(Layout(14, first, hang), "aaa bbbb cc ddddd e ffff ggg=hhh ii jjjjj", "abcdefghijk lm", "ab")

    def test_shapes(self):
        text = "aaa bbbb cc ddddd e ffff ggg~hhh ii jjjjj kk lll mmmm nn o ppp qqqq rrr=ss ttt"
        self.check(Layout(14, shapes=[(1, 3, 9)]), text, text)
        self.check(Layout(14, 1, 2, [(2, 4, 22), (3, 3, 8), (6, 7, 11)]), text)
        self.check(Layout(10, shapes=[(2, 900, 16), (5, 5, 6)]), text)

    def test_paragraphs_are_independent(self):
        self.check(Layout(9, 2, 1, [(1, 1, 12)]), "aaa bbb ccc=ddd", "eee=fff", "a", "ggg hhh iii jjj kkk")


class Models(Base):
    def compare(self, seed, kinds, layouts, long_ones=False):
        choice = random.Random(seed)
        for layout in layouts:
            self.check(layout, *(random_pieces(choice, choice.randint(1, 40), kinds, long_ones) for _ in range(40)))

    def test_many_paragraphs_of_words(self):
        self.compare(1, ["space"], [Layout(width) for width in (8, 13, 20)])

    def test_many_paragraphs_with_hyphens(self):
        self.compare(2, ["space", "space", "soft", "hyphen", "zero"], [Layout(width, 2) for width in (9, 15, 24)], True)

    def test_many_paragraphs_with_shapes(self):
        shapes = [[(1, 2, 20)], [(2, 3, 9), (3, 5, 16)], [(1, 4, 11), (2, 2, 25), (7, 9, 8)]]
        self.compare(3, ["space", "space", "soft", "hyphen"], [Layout(14, 1, 3, one) for one in shapes])

    def test_long_paragraph(self):
        pieces = random_pieces(random.Random(4), 5000, ["space", "space", "space", "soft"])
        done = self.flow(source(pieces), "--mode", "best", "--stats", "--shape", "1-40:50")
        self.assertRegex(done, r"^lines \d+ hyphenated \d+ cost \d+\n$")
        greedy = self.flow(source(pieces), "--stats", "--shape", "1-40:50")
        self.assertLess(int(done.split()[-1]), int(greedy.split()[-1]))


class Justify(Base):
    def test_odd_lines_from_the_right_and_even_lines_from_the_left(self):
        text = " ".join(["aa bb cc dd"] * 4 + ["ee"])
        done = self.flow(text, "--width", "13", "--justify")
        self.assertEqual(done, "aa bb  cc  dd\naa  bb  cc dd\n" * 2 + "ee\n")
        done = self.flow(text, "--width", "12", "--justify", "--mode", "greedy")
        self.assertEqual(done, "aa bb cc  dd\naa  bb cc dd\n" * 2 + "ee\n")
        done = self.flow("a b c\n\naa b c\n\nd b c aaaa", "--width", "6", "--justify")
        self.assertEqual(done, "a b c\n\naa b c\n\nd b  c\naaaa\n")

    def test_several_columns_for_each_gap(self):
        done = self.flow("aa bb cc xxxxxxxxxxx dd ee ff xxxxxxxxxxx", "--width", "13", "--justify")
        self.assertEqual(done, "aa   bb    cc\nxxxxxxxxxxx\ndd   ee    ff\nxxxxxxxxxxx\n")

    def test_lines_that_stay_as_they_are(self):
        text = f"a b ccccccccc dd{NO_BREAK}ee ffffffff abcdefghijklm g{SOFT}h"
        self.assertEqual(self.flow(text, "--width", "11", "--justify"), "a b\nccccccccc\ndd ee\nffffffff\nabcdefghijklm\ngh\n")

    def test_limit_of_widening(self):
        self.assertEqual(self.flow("aaa bbb cccccccc", "--width", "10", "--justify"), "aaa    bbb\ncccccccc\n")
        self.assertEqual(self.flow("aaa bbb cccccccc", "--width", "11", "--justify"), "aaa bbb\ncccccccc\n")

    def test_hyphens_shapes_and_no_break_spaces(self):
        text = f"aa b{NO_BREAK}c dddd{SOFT}eeee fff 字 hh iii"
        done = self.flow(text, "--width", "20", "--justify", "--hang", "1", "--shape", "1-2:13")
        self.assertEqual(done, "aa b c  dddd-\n eeee  fff 字\n hh iii\n")

    def test_justified_best_layout(self):
        text = "aaa bb cc ddddd"
        self.assertEqual(self.flow(text, "--width", "6", "--mode", "best", "--justify"), "aaa\nbb  cc\nddddd\n")
        costs = self.flow(text, "--width", "6", "--mode", "best", "--stats")
        self.assertEqual(costs, "lines 3 hyphenated 0 cost 10\n")
        self.assertEqual(self.flow(text, "--width", "6", "--mode", "best", "--justify", "--stats"), costs)
