import fractions
import random

import lab

USAGE = """usage: heap stats FILE
       heap retained FILE [--top N] [--long]
       heap types FILE
       heap path FILE ID
       heap common FILE
       heap free FILE
       heap cycles FILE
"""
LARGE_SECONDS = 9.0


class Graph:
    """A small graph, analyzed by the definitions."""

    def __init__(self, rng, count, edges, roots):
        self.ids = rng.sample(range(1, 60), count) if rng.random() < 0.5 else [rng.getrandbits(64) for _ in range(count)]
        self.sizes = {i: rng.choice([0, 1, 2, 50, 50, 2**63, 2**64 - 1]) for i in self.ids}
        self.types = {i: rng.choice(["A", "B", "C"]) for i in self.ids}
        self.edges = [(rng.choice(self.ids), rng.choice(self.ids)) for _ in range(edges)]
        self.weak = [(rng.choice(self.ids), rng.choice(self.ids)) for _ in range(edges // 3)]
        self.roots = rng.sample(self.ids, roots)
        self.reachable = self.reach(())
        self.total = sum(self.sizes[i] for i in self.reachable)
        self.dominated = {i: self.reachable - self.reach((i,)) for i in self.reachable}

    def text(self):
        lines = [f"edge {a:#x} {b:#x}" for a, b in self.edges] + [f"weak {a:#x} {b:#x}" for a, b in self.weak] + [f"root {i:#x}" for i in self.roots]
        lines += [f"node {i:#x} {self.sizes[i]} {self.types[i]}" for i in self.ids]
        return "heap 2\n" + "\n".join(lines) + "\n"

    def reach(self, removed):
        found, todo = set(), [i for i in self.roots if i not in removed]
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo += [b for a, b in self.edges if a == node and b not in removed]
        return found

    def size(self, nodes):
        return sum(self.sizes[i] for i in nodes)

    def percent(self, part):
        if not self.total:
            return "0.00%"
        hundredths = round(fractions.Fraction(part * 10000, self.total))
        return f"{hundredths // 100}.{hundredths % 100:02}%"

    def common(self, nodes):
        shared = [i for i in self.reachable if all(n in self.dominated[i] for n in nodes)]
        return min(shared, key=lambda i: len(self.dominated[i]), default=None)

    def dominator(self, node):
        others = [i for i in self.reachable if i != node and node in self.dominated[i]]
        return min(others, key=lambda i: len(self.dominated[i]), default=None)


def shown(node):
    return "-" if node is None else f"{node:#x}"


def graphs(count):
    rng = random.Random(20260)
    for _ in range(count):
        nodes = rng.randint(1, 14)
        yield rng, Graph(rng, nodes, rng.randint(0, 2 * nodes + 4), rng.randint(0, min(3, nodes)))


class Heap(lab.Case):
    def run_heap(self, text, *arguments, stdin="", seconds=5.0):
        self.write("h", text)
        done = self.program("heap", arguments[0], "h", *arguments[1:], stdin=stdin, seconds=seconds)
        self.assertEqual((done.status, done.stderr), (0, ""), done)
        return done.stdout

    def check_error(self, text, message, *arguments):
        self.write("h", text)
        done = self.program("heap", *(arguments or ("stats", "h")))
        self.assertEqual((done.status, done.stdout, done.stderr), (2, "", message + "\n"), f"{text[:300]!r} {done}")


class ByDefinition(Heap):
    def test_retained_sizes_and_dominators(self):
        for _, graph in graphs(12):
            order = sorted(graph.reachable, key=lambda i: (-graph.size(graph.dominated[i]), i))
            expected = ""
            for i in order:
                retained = graph.size(graph.dominated[i])
                expected += f"{i:#x} {graph.sizes[i]} {retained} {graph.percent(retained)} {shown(graph.dominator(i))} {graph.types[i]}\n"
            self.assertEqual(self.run_heap(graph.text(), "retained", "--long"), expected, graph.text())

    def test_types(self):
        for _, graph in graphs(12):
            rows = []
            for kind in sorted({graph.types[i] for i in graph.reachable}):
                own = [i for i in graph.reachable if graph.types[i] == kind]
                top = [i for i in own if not any(j != i and i in graph.dominated[j] for j in own)]
                rows.append((len(own), graph.size(own), sum(graph.size(graph.dominated[i]) for i in top), kind))
            rows.sort(key=lambda row: (-row[2], row[3]))
            expected = "".join(f"{n} {size} {retained} {graph.percent(retained)} {kind}\n" for n, size, retained, kind in rows)
            self.assertEqual(self.run_heap(graph.text(), "types"), expected, graph.text())

    def test_common(self):
        for rng, graph in graphs(12):
            queries, expected = "", ""
            for _ in range(40):
                nodes = [rng.choice(graph.ids) for _ in range(rng.randint(1, 4))]
                queries += " ".join(f"{i:#x}" for i in nodes) + "\n"
                lost = [i for i in nodes if i not in graph.reachable]
                expected += (f"unreachable {lost[0]:#x}" if lost else shown(graph.common(nodes))) + "\n"
            self.assertEqual(self.run_heap(graph.text(), "common", stdin=queries), expected, graph.text() + queries)

    def test_free(self):
        for rng, graph in graphs(12):
            queries, expected = "", ""
            for _ in range(20):
                nodes = [rng.choice(graph.ids) for _ in range(rng.randint(1, 4))]
                queries += "\t".join(f"{i:#x}" for i in nodes) + "\n"
                freed = graph.reachable - graph.reach(nodes)
                expected += f"{len(freed)} {graph.size(freed)}\n"
            self.assertEqual(self.run_heap(graph.text(), "free", stdin=queries), expected, graph.text() + queries)

    def test_cycles(self):
        for _, graph in graphs(12):
            after = {i: {b for a, b in graph.edges if a == i} for i in graph.reachable}
            for _ in graph.reachable:
                after = {i: found.union(*(after[j] for j in found)) for i, found in after.items()}
            components = {frozenset(j for j in after[i] if i in after[j]) for i in graph.reachable if i in after[i]}
            rows = sorted((-graph.size(c), min(c), len(c)) for c in components)
            self.assertEqual(self.run_heap(graph.text(), "cycles"), "".join(f"{n} {-size} {first:#x}\n" for size, first, n in rows), graph.text())

    def test_stats(self):
        for _, graph in graphs(6):
            expected = f"nodes {len(graph.ids)}\nedges {len(graph.edges) + len(graph.weak)}\nroots {len(graph.roots)}\nreachable {len(graph.reachable)}\nbytes {graph.size(graph.ids)}\nreachable bytes {graph.total}\n"
            self.assertEqual(self.run_heap(graph.text(), "stats"), expected, graph.text())

    def test_path_is_the_smallest_of_the_shortest(self):
        for rng, graph in graphs(12):
            paths, best = [(i,) for i in graph.roots], {}
            while paths:
                longer = []
                for path in sorted(paths):
                    if path[-1] not in best:
                        best[path[-1]] = path
                        longer += [path + (b,) for a, b in graph.edges if a == path[-1]]
                paths = longer
            for target in rng.sample(graph.ids, min(2, len(graph.ids))):
                expected = "".join(f"{i:#x} {graph.types[i]}\n" for i in best[target]) if target in best else "unreachable\n"
                self.assertEqual(self.run_heap(graph.text(), "path", f"{target:#x}"), expected, graph.text())


class Output(Heap):
    def test_percentages_are_rounded_half_to_even(self):
        sizes = [5, 15, 25, 35, 145, 1, 14, 16]
        text = "heap 1\n" + "".join(f"node {i + 1:#x} {size} T\nroot {i + 1:#x}\n" for i, size in enumerate(sizes))
        text += f"node 0x9 {100000 - sum(sizes)} T\nroot 0x9\n"
        lines = self.run_heap(text, "retained", "--long").splitlines()
        self.assertEqual([line.split()[1:4:2] for line in lines], [["99744", "99.74%"], ["145", "0.14%"], ["35", "0.04%"], ["25", "0.02%"], ["16", "0.02%"], ["15", "0.02%"], ["14", "0.01%"], ["5", "0.00%"], ["1", "0.00%"]])

    def test_percentages_of_huge_sums_are_exact(self):
        big = 2**64 - 1
        text = "heap 1\nroot 0x0\n" + "".join(f"node {i:#x} {big} T\n" + (f"edge 0x0 {i:#x}\n" if i else "") for i in range(7))
        # One byte below and above half of a hundredth: 1/7 of the whole is 14.2857 %.
        out = self.run_heap(text, "retained", "--long", "--top", "2")
        self.assertEqual(out, f"0x0 {big} {7 * big} 100.00% - T\n0x1 {big} {big} 14.29% 0x0 T\n")
        parts = [2 * 10**15 - 1, 6 * 10**15 + 1, 10**16 - 1, 4 * 10**18]
        total = 4 * 10**19
        text = "heap 1\n" + "".join(f"node {i + 1:#x} {size} T{i}\nroot {i + 1:#x}\n" for i, size in enumerate(parts))
        rest = total - sum(parts)
        text += f"node 0x8 {rest // 2} R\nnode 0x9 {rest - rest // 2} R\nroot 0x8\nroot 0x9\n"
        out = self.run_heap(text, "types").splitlines()
        self.assertEqual([line.split()[3:] for line in out], [["89.96%", "R"], ["10.00%", "T3"], ["0.02%", "T2"], ["0.02%", "T1"], ["0.00%", "T0"]])

    def test_total_of_zero(self):
        text = "heap 1\nnode 0x1 0 A\nnode 0x2 7 B\nroot 0x1\n"
        self.assertEqual(self.run_heap(text, "retained", "--long"), "0x1 0 0 0.00% - A\n")
        self.assertEqual(self.run_heap(text, "types"), "1 0 0 0.00% A\n")
        self.assertEqual(self.run_heap("heap 1\nnode 0x1 1 A\n", "retained"), "")
        self.assertEqual(self.run_heap("heap 2\n", "types"), "")

    def test_options_of_retained(self):
        text = "heap 1\nnode 0xB 1 A\nnode 0x0a 2 B.c$_9\nedge 0xb 0xA\nroot 0xb\nnode 0x3 3 C\nroot 0x3\n"
        self.assertEqual(self.run_heap(text, "retained"), "0x3 3 3 C\n0xb 1 3 A\n0xa 2 2 B.c$_9\n")
        self.assertEqual(self.run_heap(text, "retained", "--top", "2"), "0x3 3 3 C\n0xb 1 3 A\n")
        self.assertEqual(self.run_heap(text, "retained", "--top", "0"), "")
        for options in (["--long", "--top", "1"], ["--top", "1", "--long"]):
            self.assertEqual(self.run_heap(text, "retained", *options), "0x3 3 3 50.00% - C\n")

    def test_usage(self):
        self.write("h", "heap 1\n")
        for words in ([], ["stats"], ["stats", "h", "x"], ["retained", "h", "--top"], ["retained", "h", "--top", "x"], ["retained", "h", "--top", "1234567890"], ["retained", "h", "--long", "--long"], ["retained", "h", "--top", "1", "--top", "1"], ["types", "h", "--long"], ["path", "h"], ["path", "h", "5"], ["common"], ["free", "h", "0x1"], ["cycle", "h"]):
            done = self.program("heap", *words)
            self.assertEqual((done.status, done.stdout, done.stderr), (2, "", USAGE), words)
        self.check_error("heap 1\n", "unknown node 0xa", "path", "h", "0x000A")
        self.check_error("heap 1\n", "can't read `none`", "stats", "none")

    def test_answers_to_lines(self):
        text = "heap 2\nnode 0x1 1 A\nnode 0x2 2 A\nnode 0x3 4 A\nnode 0x4 8 A\nedge 0x1 0x2 0x3\nroot 0x1\n"
        queries = "\n  0x2\t0X3 \r\n\t0x2 0x003 \r\n \r\n0x2 0x9 zz\n0x2 zz 0x9\n0x4 0x9\n0x9 0x4\n0x3 0x2 0x3\n0x1 0x2\n0x+1\n0x2,0x3\n0x4"
        self.assertEqual(self.run_heap(text, "common", stdin=queries).splitlines(), ["malformed", "0x1", "unknown 0x9", "malformed", "unreachable 0x4", "unknown 0x9", "0x1", "0x1", "malformed", "malformed", "unreachable 0x4"])
        self.assertEqual(self.run_heap(text, "free", stdin=queries).splitlines(), ["malformed", "2 6", "unknown 0x9", "malformed", "unknown 0x9", "unknown 0x9", "2 6", "3 7", "malformed", "malformed", "0 0"])


class Format(Heap):
    def test_version_2(self):
        text = (
            "heap 2\r\n\r\n  # comment\n\t#node\nnode\t0x10   1k  Map\r\n node 0x18 007m \"Map\" \n\nnode 0x20 0g \"a b#\\\"\\\\\\n\\t\\x00\\x7F\\xe4\"\nnode 0x28 2 \"\"\n"
            "node 0xFFFFFFFFFFFFFFFF 17179869183g \"caf\u00e9\"\t\nedge 0x10 +0x8 +0x8 -0x10 0x28 -0x08\nweak 0x20 +0xffffffffffffffdf -0x0\nroot 0x10 0x10\nnode 0x30 18446744073709551615 end\nedge 0x28 0x30"
        )
        out = self.run_heap(text.encode("utf-8"), "types")
        total = 1024 + 7 * 2**20 + 2 + 2**64 - 1
        self.assertEqual(out, f'2 {1024 + 7 * 2**20} {total} 100.00% Map\n1 2 {2 + 2**64 - 1} 100.00% ""\n1 {2**64 - 1} {2**64 - 1} 100.00% end\n1 0 0 0.00% "a b#\\"\\\\\\n\\t\\x00\\x7f\ufffd"\n')
        self.assertEqual(self.run_heap(text, "stats"), f"nodes 6\nedges 8\nroots 2\nreachable 5\nbytes {total + 2**64 - 2**30}\nreachable bytes {total}\n")
        self.assertEqual(self.run_heap(text, "path", "0x30"), '0x10 Map\n0x28 ""\n0x30 end\n')

    def test_malformed_lines_of_version_2(self):
        for line in (
            "node 0x1 1", "node 0x1 1 A B", "node 0x1 1 A-B", 'node 0x1 1 "A', 'node 0x1 1 "A"B', 'node 0x1 1 "A" B', 'node 0x1 1 A"', 'node 0x1 1 "\\q"', 'node 0x1 1 "\\x4"', 'node 0x1 1 "\\x4g"', 'node 0x1 1 "a\\"', 'node 0x1 1 "a\tb"', "node 0x1 1K A", "node 0x1 k A", "node 0x1 -1 A",
            "node 0x1 1kk A", "node 1 1 A", "node 0x 1 A", "node 0x11111111111111111 1 A", "node 0xg 1 A", "Node 0x1 1 A", "edge 0x1", "weak 0x1", "root", "edge +0x1 0x2", "root 0x1 +0x1", "edge 0x5 -0x6", "edge 0x5 +0xfffffffffffffffb", "edge 0x5 +-0x1", "edge 0x5 +1", "edge 0x5 +", "nodes", "node", "heap 2", "node 0x1 99999999999999999999k A-B", "node 0x1 1 A # no comment",
        ):
            self.check_error(f"heap 2\nnode 0x5 1 A\n# c\n{line}\nnode 0x5 1 A\n", "h:4: malformed line")

    def test_other_errors(self):
        self.check_error("", "h:1: expected `heap 1` or `heap 2`")
        for first in ("heap 3", "heap 2 ", " heap 2", "heap 1\r", "\nheap 2"):
            self.check_error(first + "\n", "h:1: expected `heap 1` or `heap 2`")
        for size in ("18446744073709551616", "18014398509481984k", "17179869184g", "99999999999999999999999999999", "00000000000000000000000000018446744073709551616", "36893488147419103232k"):
            self.check_error(f"heap 2\nnode 0x5 {size} A\nroot\n", "h:2: size is out of range")
        self.check_error("heap 2\nroot 0x1\nnode 0x5 1 A\n\nnode 0x0005 1 A\nroot\n", "h:5: node 0x5 is defined twice")
        self.check_error("heap 2\nnode 0x5 1 A\nweak 0x5 0x5\nroot 0x7 0x6\nedge 0x8 0x9\n", "h:4: unknown node 0x7")
        self.check_error("heap 2\nedge 0x5 0xA 0xB\nroot 0x7\nnode 0x5 1 A\n", "h:2: unknown node 0xa")
        self.check_error("heap 2\nroot 0x5\nweak 0x9 0xA\nedge 0x8 0x5\nnode 0x5 1 A\n", "h:3: unknown node 0x9")
        self.check_error("heap 1\nroot 0x7\nedge 0x6 0x5\n", "h:2: unknown node 0x7")
        self.check_error("heap 2\nroot 0x7\nnode 0x1 1 A B\n", "h:3: malformed line", "common", "h")

    def test_output_for_version_1_stays(self):
        text = "heap 1\nnode 0x1 10 Root\nnode 0x2 4 A\nnode 0x3 5 A\nnode 0x4 6 B_.$\nnode 0x5 7 C\nedge 0x1 0x2\nedge 0x1 0x3\nedge 0x3 0x4\nedge 0x4 0x3\nroot 0x1\n"
        self.assertEqual(self.run_heap(text, "stats"), "nodes 5\nedges 4\nroots 1\nreachable 4\nbytes 32\nreachable bytes 25\n")
        self.assertEqual(self.run_heap(text, "retained", "--top", "3"), "0x1 10 25 Root\n0x3 5 11 A\n0x4 6 6 B_.$\n")
        self.assertEqual(self.run_heap(text, "path", "0x04"), "0x1 Root\n0x3 A\n0x4 B_.$\n")
        self.assertEqual(self.run_heap(text, "path", "0x5"), "unreachable\n")

    def test_version_1_stays_strict(self):
        self.assertEqual(self.run_heap("heap 1\nroot 0x0A\nnode 0xa 018446744073709551615 A\nnode 0xB 1 B\nedge 0xa 0xb", "retained"), "0xa 18446744073709551615 18446744073709551616 A\n0xb 1 1 B\n")
        for line in ("", "# c", "weak 0x5 0x5", "edge 0x5 0x5 0x5", "root 0x5 0x5", "node 0x1 1k A", 'node 0x1 1 "A"', "node  0x1 1 A", "node\t0x1 1 A", " node 0x1 1 A", "node 0x1 1 A\r", "edge 0x5 +0x0"):
            self.check_error(f"heap 1\nnode 0x5 1 A\n{line}\nnode 0x5 1 A\n", "h:3: malformed line")
        self.check_error("heap 1\nnode 0x5 18446744073709551616 A\n", "h:2: size is out of range")
        self.check_error("heap 1\nnode 0x5 1 A\nnode 0x05 1 A\n", "h:3: node 0x5 is defined twice")


class Large(Heap):
    COUNT = 120_000
    MAX = 300_000

    def nodes(self, count, kind=lambda i: "T", first=0):
        return "".join(f"node {i:#x} 1 {kind(i)}\n" for i in range(first, first + count))

    def large(self, text, *arguments, stdin=""):
        return self.run_heap(text, *arguments, stdin=stdin, seconds=LARGE_SECONDS)

    def test_retained_of_a_list(self):
        n = self.COUNT
        text = "heap 2\nroot 0x0\n" + self.nodes(n) + "".join(f"edge {i:#x} +0x1\n" for i in range(n - 1))
        lines = self.large(text, "retained", "--long").splitlines()
        self.assertEqual(len(lines), n)
        self.assertEqual(lines[0], f"0x0 1 {n} 100.00% - T")
        self.assertEqual(lines[90_000], f"{90_000:#x} 1 {n - 90_000} 25.00% {89_999:#x} T")

    def test_retained_of_a_list_with_back_edges(self):
        n, half = self.MAX, self.MAX // 2
        edges = "".join(f"edge {i:#x} +0x1" + (f" {i - half:#x} 0x1\n" if i > half else "\n") for i in range(n - 1))
        text = "heap 2\nroot 0x0\n" + self.nodes(n) + edges
        lines = self.large(text, "retained", "--long", "--top", "180001").splitlines()
        self.assertEqual(lines[180_000], f"{180_000:#x} 1 {n - 180_000} 40.00% {179_999:#x} T")

    def test_retained_of_a_ladder(self):
        # A list, and a second one in both directions that each node of the first list points to.
        k = self.MAX // 2
        for is_swapped in (False, True):
            edges = []
            for i in range(1, k + 1):
                targets = [f"{i + 1:#x}"] * (i < k) + [f"{k + i:#x}"]
                edges.append(f"edge {i:#x} " + " ".join(reversed(targets) if is_swapped else targets) + "\n")
                targets = [f"{k + i + 1:#x}"] * (i < k) + [f"{k + i - 1:#x}"] * (i > 1)
                edges.append(f"edge {k + i:#x} " + " ".join(reversed(targets) if is_swapped else targets) + "\n")
            text = "heap 2\nroot 0x1\n" + self.nodes(2 * k, first=1) + "".join(edges)
            lines = self.large(text, "retained", "--long", "--top", "200000").splitlines()
            self.assertEqual(lines[:2], [f"0x1 1 {2 * k} 100.00% - T", f"0x2 1 {k - 1} 50.00% 0x1 T"])
            self.assertEqual(sum(line.split()[2] == "1" and line.split()[4] == "0x1" for line in lines), 200_000 - k)

    def test_retained_of_nodes_below_a_long_list(self):
        # The last node of a list and the root both point to each of many nodes.
        k = self.MAX // 2
        text = "heap 2\nroot 0x0\n" + self.nodes(2 * k) + "".join(f"edge {i:#x} +0x1\n" for i in range(k - 1))
        text += "".join(f"edge {k - 1:#x} {i:#x}\nedge 0x0 {i:#x}\n" for i in range(k, 2 * k))
        lines = self.large(text, "retained", "--long", "--top", "200000").splitlines()
        self.assertEqual(lines[1], f"0x1 1 {k - 1} 50.00% 0x0 T")
        self.assertEqual(sum(line.split()[4] == "0x0" for line in lines), 200_000 - k + 1)

    def test_types_of_a_list(self):
        n = self.COUNT
        text = "heap 2\nroot 0x0\n" + self.nodes(n, lambda i: f"T{i}" if i % 2 else "Even") + "".join(f"edge {i:#x} +0x1\n" for i in range(n - 1))
        lines = self.large(text, "types").splitlines()
        self.assertEqual(len(lines), n // 2 + 1)
        self.assertEqual(lines[0], f"{n // 2} {n // 2} {n} 100.00% Even")
        self.assertEqual(lines[30_001], f"1 1 {n - 60_001} 50.00% T60001")

    def test_common_in_deep_trees(self):
        # Two lists below node 0x1, which is below 0x0.
        k = self.COUNT // 2
        text = "heap 2\nroot 0x0\n" + self.nodes(2 * k + 2) + "edge 0x0 0x1\nedge 0x1 0x2 0x3\n" + "".join(f"edge {i:#x} +0x2\n" for i in range(2, 2 * k))
        queries, expected = [], []
        for i in range(100_000):
            a, b = 2 + i % (2 * k), 2 * k + 1 - (i * 7919) % 1000
            queries.append(f"{a:#x} {b:#x}\n")
            expected.append("0x1\n" if (a - b) % 2 else f"{min(a, b):#x}\n")
        self.assertEqual(self.large(text, "common", stdin="".join(queries)), "".join(expected))

    def test_free_and_stats_of_a_list(self):
        n = self.COUNT
        text = "heap 2\nroot 0x0\n" + self.nodes(n) + "".join(f"edge {i:#x} +0x1\n" for i in range(n - 1))
        queries = [n - 10, n // 2, 1, 0]
        out = self.large(text, "free", stdin="".join(f"{q:#x} {n - 1:#x}\n" for q in queries))
        self.assertEqual(out, "".join(f"{n - q} {n - q}\n" for q in queries))
        self.assertEqual(self.large(text, "stats").splitlines()[3], f"reachable {n}")

    def test_cycles_of_rings(self):
        n = self.COUNT
        text = "heap 2\nroot 0x0\n" + self.nodes(n) + "".join(f"edge {i:#x} +0x1\n" for i in range(n - 1)) + f"edge {n // 2:#x} 0x0\nedge {n - 1:#x} {n - 2:#x}\nedge {n - 5:#x} +0x0\n"
        self.assertEqual(self.large(text, "cycles"), f"{n // 2 + 1} {n // 2 + 1} 0x0\n2 2 {n - 2:#x}\n1 1 {n - 5:#x}\n")

    def test_path_through_many_equal_paths(self):
        # Layers of two nodes; each points to both of the next layer, the higher ID first.
        k = self.COUNT // 2
        text = "heap 2\nroot 0x1 0x0\n" + self.nodes(2 * k) + "".join(f"edge {i:#x} {(i | 1) + 2:#x} {(i | 1) + 1:#x}\n" for i in range(2 * k - 2))
        lines = self.large(text, "path", f"{2 * k - 1:#x}").splitlines()
        self.assertEqual(lines, [f"{2 * i:#x} T" for i in range(k - 1)] + [f"{2 * k - 1:#x} T"])

    def test_random_graph_of_full_size(self):
        rng = random.Random(7)
        n = 250_000
        edges = "".join(f"edge {rng.randrange(i):#x} {i:#x} {rng.randrange(n):#x} {rng.randrange(n):#x}\n" for i in range(1, n))
        text = "heap 2\nroot 0x0\n" + self.nodes(n) + edges
        lines = self.large(text, "retained", "--long", "--top", "3").splitlines()
        self.assertEqual(lines[0], f"0x0 1 {n} 100.00% - T")
        self.assertEqual(len(lines), 3)
