import json
import re

import lab
import markup

HOSTILE = "R&D \"Nord\" <b>'x' &amp; &lt $& $1 %TABLES%"


def site(name, *values):
    return {"name": name, "values": list(values)}


def table(*regions, title="Losses", unit="m", groups=(("Q1", "Jan", "Feb"), ("Q2", "Mar")), **more):
    return {
        "title": title,
        "unit": unit,
        "groups": [{"name": name, "columns": list(columns)} for name, *columns in groups],
        "regions": [{"name": name, "sites": list(sites)} for name, *sites in regions],
        **more,
    }


def values(*rows):
    """A table with one region and one group."""
    sites = [site(f"S{index}", *row) for index, row in enumerate(rows)]
    return table(("R", *sites), groups=(("G", *(f"c{index}" for index in range(len(rows[0])))),))


class PageCase(lab.Case):
    def render(self, *tables, options=(), title="Report"):
        self.report = {"title": title, "tables": list(tables)}
        self.write("report.json", json.dumps(self.report))
        done = self.program("node", "bin/render.js", "report.json", *options)
        self.assertEqual(done.status, 0, done)
        return markup.parse(done.stdout)

    def rows(self, page):
        """Texts of all cells in the rows of table bodies."""
        return [[cell.text() for cell in row.elements] for body in page.all("tbody") for row in body.all("tr")]

    def heat(self, page):
        return [[self.step(cell) for cell in row.all("td") if "total" not in (cell["class"] or "")] for row in page.all("tr") if row.all("td")]

    def step(self, element):
        [found] = [name[5:] for name in element["class"].split() if name.startswith("heat-")]
        return found

    def notes(self, element):
        return [note.text() for note in element.all("p") if note["class"] == "note"]

    def legend(self, page):
        entries = []
        [legend] = [element for element in page.all("ul") if element["class"] == "legend"]
        for item in legend.all("li"):
            [swatch] = item.all("span")
            self.assertEqual((swatch["aria-hidden"], "swatch" in swatch["class"].split()), ("true", True))
            entries.append((self.step(swatch), item.text()))
        return entries

    def header_texts(self, page, cell):
        """Texts of the headers that a cell names, with the ids looked up in the page."""
        return [page.id(name).text() for name in (cell["headers"] or "").split()]


class Structure(PageCase):
    NORTH = ("North", site("Harbor", 1, 2, 3), site("Old mill", 4, 5, 6))
    SOUTH = ("South", site("Harbor", 7, 8, 9))

    def test_page(self):
        page = self.render(table(self.NORTH), table(self.SOUTH, note="Some note"), title="A report")
        self.assertEqual([page.all("html")[0]["lang"], page.all("title")[0].text()], ["en", "A report"])
        self.assertEqual([heading.text() for heading in page.all("h1")], ["A report"])
        [main] = page.all("main")
        sections = main.all("section")
        self.assertEqual([len(section.all("table")) for section in sections], [1, 1])
        self.assertEqual([self.notes(section) for section in sections], [[], ["Some note"]])

    def test_caption_is_first_in_the_table(self):
        page = self.render(table(self.NORTH, title="Losses by site", unit="m³/h"))
        caption = page.all("table")[0].elements[0]
        self.assertEqual((caption.tag, caption.text()), ("caption", "Losses by site (m³/h)"))

    def test_head(self):
        page = self.render(table(self.NORTH))
        first, second = page.all("thead")[0].all("tr")
        self.assertTrue(all(cell.tag == "th" and cell["id"] for cell in first.elements + second.elements))
        found = [(cell.text(), cell["scope"], cell["rowspan"] or "1", cell["colspan"] or "1") for cell in first.elements]
        self.assertEqual(
            found,
            [
                ("Region", "col", "2", "1"),
                ("Site", "col", "2", "1"),
                ("Q1", "colgroup", "1", "2"),
                ("Q2", "colgroup", "1", "1"),
                ("Total", "col", "2", "1"),
            ],
        )
        self.assertEqual([(cell.text(), cell["scope"]) for cell in second.elements], [("Jan", "col"), ("Feb", "col"), ("Mar", "col")])
        self.assertEqual([self.header_texts(page, cell) for cell in second.elements], [["Q1"], ["Q1"], ["Q2"]])

    def test_regions_have_bodies(self):
        page = self.render(table(self.NORTH, self.SOUTH))
        bodies = page.all("tbody")
        self.assertEqual([len(body.all("tr")) for body in bodies], [2, 1])
        regions = [body.all("tr")[0].elements[0] for body in bodies]
        found = [(cell.tag, cell["scope"], cell["rowspan"] or "1", cell.text()) for cell in regions]
        self.assertEqual(found, [("th", "rowgroup", "2", "North"), ("th", "rowgroup", "1", "South")])
        sites = [cell for cell in page.all("th") if cell["scope"] == "row"]
        self.assertEqual([cell.text() for cell in sites], ["Harbor", "Old mill", "Harbor"])
        self.assertEqual([self.header_texts(page, cell) for cell in sites], [["North"], ["North"], ["South"]])

    def test_headers_of_values(self):
        page = self.render(table(self.NORTH, self.SOUTH))
        cells = page.all("td")
        self.assertEqual(self.header_texts(page, cells[2]), ["North", "Harbor", "Q2", "Mar"])
        self.assertEqual(self.header_texts(page, cells[5]), ["North", "Old mill", "Q1", "Feb"])
        self.assertEqual(self.header_texts(page, cells[8]), ["South", "Harbor", "Q1", "Jan"])
        self.assertEqual(self.header_texts(page, cells[11]), ["South", "Harbor", "Total"])

    def test_ids_are_unique_in_the_page(self):
        same = table(("A b", site("A b", 1), site("A b", 2)), ("A b", site("", 3)), title="A b", groups=(("A b", "A b"),))
        page = self.render(same, same)
        ids = [element["id"] for element in page.all() if "id" in element]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertTrue(all(name and not any(letter.isspace() for letter in name) for name in ids))
        for which in page.all("table"):
            inside = {element["id"] for element in which.all()}
            named = [name for cell in which.all("td") for name in cell["headers"].split()]
            self.assertEqual(len(named), 3 * (4 + 3))
            self.assertTrue(inside.issuperset(named))

    def test_hide_empty(self):
        gone = ("Gone", site("x", None, None, None))
        north = ("North", site("a", None, None, None), site("b", 0, None, 2), site("c", None, None, None), site("d", 1, 1, 1))
        page = self.render(table(gone, north, self.SOUTH), options=["--hide-empty"])
        self.assertEqual(
            self.rows(page),
            [["North", "b", "0", "n/a", "2", "2"], ["d", "1", "1", "1", "3"], ["South", "Harbor", "7", "8", "9", "24"]],
        )
        regions = [cell["rowspan"] or "1" for cell in page.all("th") if cell["scope"] == "rowgroup"]
        self.assertEqual(regions, ["2", "1"])
        self.assertEqual(self.header_texts(page, page.all("td")[0]), ["North", "b", "Q1", "Jan"])

    def test_sort_total(self):
        north = ("North", site("a", None, None, None), site("b", 1, 1, 1), site("c", 9, 0, 0), site("d", 3, 0, 0), site("e", 1, None, 1))
        page = self.render(table(north), options=["--sort-total", "--hide-empty"])
        self.assertEqual([row[-4:] for row in self.rows(page)], [["9", "0", "0", "9"], ["1", "1", "1", "3"], ["3", "0", "0", "3"], ["1", "n/a", "1", "2"]])
        self.assertEqual([row["data-site"] for row in page.all("tr")[2:]], ["c", "b", "d", "e"])
        sorted_by = [(cell.text(), cell["aria-sort"]) for cell in page.all() if "aria-sort" in cell]
        self.assertEqual(sorted_by, [("Total", "descending")])

    def test_unsorted_tables_have_no_aria_sort(self):
        page = self.render(table(self.NORTH))
        self.assertFalse([cell for cell in page.all() if "aria-sort" in cell])


class Texts(PageCase):
    def hostile(self):
        groups = ((HOSTILE, HOSTILE),)
        return table((HOSTILE, site(HOSTILE, 1)), title=HOSTILE, unit=HOSTILE, note=HOSTILE, groups=groups)

    def test_hostile_texts_are_shown_exactly(self):
        page = self.render(self.hostile(), title=HOSTILE)
        self.assertEqual([page.all(tag)[0].text() for tag in ("title", "h1")], [HOSTILE] * 2)
        self.assertEqual(page.all("caption")[0].text(), f"{HOSTILE} ({HOSTILE})")
        headers = [cell.text() for cell in page.all("th")]
        self.assertEqual(headers, ["Region", "Site", HOSTILE, "Total", HOSTILE, HOSTILE, HOSTILE])
        self.assertEqual(self.notes(page), [HOSTILE])
        self.assertEqual(self.legend(page), [("0", f"1 to 1 {HOSTILE}")])
        self.assertEqual(page.all("b"), [])

    def test_attributes_have_the_text(self):
        page = self.render(self.hostile())
        [row] = page.all("tbody")[0].all("tr")
        self.assertEqual(row["data-site"], HOSTILE)
        self.assertTrue(all(re.fullmatch("[a-z][a-z-]*", name) for name in row.attributes))

    def test_embedded_report(self):
        note = "</script><script>alert(1)</script><!--<script> & \u2028 &quot;"
        page = self.render(table(("R", site("S", 1)), groups=(("G", "c"),), note=note))
        [script] = page.all("script")
        self.assertEqual((script["type"], script["id"]), ("application/json", "report"))
        self.assertEqual(json.loads("".join(script.children)), self.report)
        self.assertEqual(self.notes(page), [" ".join(note.split())])


class Heat(PageCase):
    def test_values_without_a_measurement(self):
        page = self.render(values([0, None, 4]))
        self.assertEqual(self.rows(page), [["R", "S0", "0", "n/a", "4", "4"]])
        self.assertEqual(self.heat(page), [["0", "none", "4"]])
        self.assertEqual(self.legend(page)[-1], ("none", "no data"))

    def test_steps_begin_exactly(self):
        page = self.render(values([0, 20, 19.99, 40], [60, 80, 79.99, 100]))
        self.assertEqual(self.heat(page), [["0", "1", "0", "2"], ["3", "4", "3", "4"]])
        page = self.render(values([0, 0.2, 0.4, 0.6, 0.8, 1]))
        self.assertEqual(self.heat(page), [["0", "1", "2", "3", "4", "4"]])

    def test_numbers_are_compared_as_numbers(self):
        page = self.render(values([9, 10, 100, -3]))
        self.assertEqual(self.heat(page), [["0", "0", "4", "0"]])
        self.assertEqual([text for _, text in self.legend(page)][::4], ["-3 to under 17.6 m", "79.4 to 100 m"])

    def test_legend_has_the_steps_of_the_cells(self):
        page = self.render(values([1, 2], [6, 11]))
        self.assertEqual(
            self.legend(page),
            [
                ("0", "1 to under 3 m"),
                ("1", "3 to under 5 m"),
                ("2", "5 to under 7 m"),
                ("3", "7 to under 9 m"),
                ("4", "9 to 11 m"),
            ],
        )

    def test_all_values_the_same(self):
        page = self.render(values([3, 3], [None, 3]))
        self.assertEqual(self.heat(page), [["0", "0"], ["none", "0"]])
        self.assertEqual(self.legend(page), [("0", "3 to 3 m"), ("none", "no data")])

    def test_table_without_values(self):
        page = self.render(values([None, None]))
        self.assertEqual(self.heat(page), [["none", "none"]])
        self.assertEqual(self.legend(page), [("none", "no data")])
        self.assertEqual(self.rows(page)[0][-1], "n/a")

    def test_hidden_gaps_are_not_in_the_legend(self):
        page = self.render(values([None, None], [0, 10]), options=["--hide-empty"])
        self.assertEqual([step for step, _ in self.legend(page)], ["0", "1", "2", "3", "4"])

    def test_totals_have_no_heat(self):
        page = self.render(values([0.1, 0.2], [0, 0], [1.25, 2.126]))
        totals = [row.elements[-1] for row in page.all("tbody")[0].all("tr")]
        self.assertEqual([cell.text() for cell in totals], ["0.3", "0", "3.38"])
        self.assertTrue(all("total" in cell["class"].split() and "heat" not in cell["class"] for cell in totals))
