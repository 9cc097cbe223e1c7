import lab


def err(code):
    return {"error": code}


class SheetCase(lab.Case):
    def setUp(self):
        self.start()

    def start(self):
        self.sheet = self.driver("node", "bin/sheet.js", seconds=20)

    def set(self, cell, text):
        return self.sheet.call("set", cell=cell, text=text)["changed"]

    def fill(self, **cells):
        return self.sheet.call("set_many", cells=[[cell, text] for cell, text in cells.items()])["changed"]

    def text(self, cell):
        return self.sheet.call("get", cell=cell)["text"]

    def value(self, cell):
        return self.sheet.call("get", cell=cell)["value"]

    def edit(self, op, **arguments):
        return self.sheet.call(op, **arguments)["changed"]

    def evaluations(self):
        return self.sheet.call("stats")["evaluations"]

    def refused(self, kind, op, **arguments):
        before = self.sheet.call("dump")
        with self.assertRaises(lab.Raised) as caught:
            self.sheet.call(op, **arguments)
        self.assertEqual(caught.exception.kind, kind)
        self.assertEqual(self.sheet.call("dump"), before)


class Existing(SheetCase):
    def test_operators_and_functions_keep_working(self):
        self.set("A1", "6")
        self.set("A2", "=(A1+2)*3-A1/4&\"!\"")
        self.set("A3", "=IF(A1>5,MAX(A1:B1,2),1/0)")
        self.set("A4", "=SUM(1,A1)+nope")
        self.assertEqual(self.value("A2"), "22.5!")
        self.assertEqual(self.value("A3"), 6)
        self.assertEqual(self.value("A4"), err("#NAME?"))
        self.start()
        self.set("A1", "=1")
        self.refused("syntax", "set", cell="A1", text="=1+")
        self.refused("bad_request", "set", cell="A0", text="1")

    def test_dump_is_row_by_row(self):
        for cell, text in (("B2", "=A1"), ("AA1", "x"), ("A1", "4"), ("B1", "'=no"), ("C3", "1"), ("C3", "")):
            self.set(cell, text)
        self.assertEqual(
            self.sheet.call("dump"), [["A1", "4", 4], ["B1", "'=no", "=no"], ["AA1", "x", "x"], ["B2", "=A1", 4]]
        )


class Changes(SheetCase):
    def test_changed_cells_are_reported_row_by_row(self):
        self.fill(B1="=A1*2", A2="=B1+C1", C1="=A1", D9="=D8")
        self.assertEqual(self.set("A1", "3"), [["A1", 3], ["B1", 6], ["C1", 3], ["A2", 9]])
        self.start()
        self.fill(A1="2", B1="=A1&\"x\"", C1="=SUM(A1:A9)")
        self.assertEqual(self.set("A1", ""), [["A1", None], ["B1", "x"], ["C1", 0]])

    def test_same_value_is_not_reported(self):
        self.fill(A1="2", B1="=A1>1", C1="=IF(B1,7,8)")
        self.assertEqual(self.set("A1", "2.0"), [])
        self.assertEqual(self.text("A1"), "2.0")
        self.assertEqual(self.set("A1", "5"), [["A1", 5]])

    def test_set_many_is_one_edit(self):
        self.fill(A1="1", A2="2", B1="=A1+A2")
        before = self.evaluations()
        changed = self.sheet.call("set_many", cells=[["A1", "9"], ["A2", "1"], ["A1", "2"]])["changed"]
        self.assertEqual(changed, [["A1", 2], ["A2", 1]])
        self.assertLessEqual(self.evaluations() - before, 1)
        self.start()
        self.fill(A1="1", B1="=A1")
        self.refused("syntax", "set_many", cells=[["A1", "5"], ["C1", "=("]])
        self.assertEqual(self.set("A1", "4"), [["A1", 4], ["B1", 4]])

    def test_old_references_are_forgotten(self):
        self.fill(A1="1", B1="=A1", C1="=SUM(A1:A3)")
        self.fill(B1="=A2", C1="8")
        before = self.evaluations()
        self.assertEqual(self.set("A1", "5"), [["A1", 5]])
        self.assertEqual(self.evaluations(), before)


class Evaluations(SheetCase):
    def test_unchanged_values_stop_the_recalculation(self):
        self.fill(A1="3", B1="=A1>0", C1="=B1&\"\"", D1="=C1&A2", E1="=A1")
        before = self.evaluations()
        self.assertEqual(self.set("A1", "4"), [["A1", 4], ["E1", 4]])
        self.assertEqual(self.evaluations() - before, 2)

    def test_each_formula_is_evaluated_once_in_a_ladder(self):
        cells = {"A1": "1", "B1": "1"}
        for row in range(2, 61):
            cells[f"A{row}"] = f"=A{row - 1}+B{row - 1}"
            cells[f"B{row}"] = f"=B{row - 1}+A{row - 1}-A{row - 1}"
        self.fill(**cells)
        before = self.evaluations()
        self.assertEqual(len(self.set("A1", "2")), 60)
        self.assertEqual(self.evaluations() - before, 2 * 59)

    def test_empty_cell_of_a_range_is_a_reference(self):
        self.fill(A1="=SUM(C1:D9)", A2="=IF(TRUE,1,E5)")
        before = self.evaluations()
        self.assertEqual(self.set("D9", "4"), [["A1", 4], ["D9", 4]])
        self.assertEqual(self.evaluations() - before, 1)

    def test_long_chain(self):
        names = [f"A{row}" for row in range(1, 6001)]
        self.sheet.call("set_many", cells=[[names[0], "1"]] + [[b, f"={a}+1"] for a, b in zip(names, names[1:])])
        self.assertEqual(self.value("A6000"), 6000)
        self.assertEqual(self.set("A1", "11")[-1], ["A6000", 6010])

    def test_ranges_as_large_as_the_sheet(self):
        self.sheet.call("set_many", cells=[[f"A{row}", f"=SUM(B1:ZZ9999)+{row}"] for row in range(1, 61)])
        changed = self.set("ZZ9999", "1000")
        self.assertEqual(len(changed), 61)
        self.assertEqual(self.value("A60"), 1060)


class Cycles(SheetCase):
    def test_all_cells_of_a_cycle_are_marked(self):
        self.fill(A1="=B1+1", B1="=C1+1", C1="5")
        self.assertEqual(self.set("C1", "=A1"), [["A1", err("#CYCLE!")], ["B1", err("#CYCLE!")], ["C1", err("#CYCLE!")]])
        self.assertEqual(self.set("C1", "7"), [["A1", 9], ["B1", 8], ["C1", 7]])
        self.start()
        self.fill(A2="=SUM(A1:A3)", B1="=IF(TRUE,1,B1)", C1="=IFERROR(C1,4)")
        for cell in ("A2", "B1", "C1"):
            self.assertEqual(self.value(cell), err("#CYCLE!"))

    def test_cells_behind_a_cycle_are_evaluated(self):
        self.fill(A1="=B1", B1="=A1", C1="=A1+1", D1="=IFERROR(C1,\"loop\")", E1="=COUNT(A1:B1,3)")
        self.assertEqual(self.value("C1"), err("#CYCLE!"))
        self.assertEqual(self.value("D1"), "loop")
        self.assertEqual(self.value("E1"), 1)
        self.start()
        self.fill(A1="=A1", B1="=IFERROR(A1,2)", C1="=B1+D1", D1="=C1")
        self.assertEqual([self.value(cell) for cell in ("A1", "B1", "C1", "D1")], [err("#CYCLE!"), 2] + [err("#CYCLE!")] * 2)

    def test_cell_that_leaves_a_cycle_is_evaluated_though_its_reference_keeps_its_value(self):
        self.fill(Z1="=Z1", A1="=B1", B1="=IFERROR(A1,5)")
        self.assertEqual(self.value("B1"), err("#CYCLE!"))
        self.assertEqual(self.set("A1", "=Z1"), [["B1", 5]])

    def test_cycle_members_are_not_evaluated(self):
        self.fill(A1="=B1+X1", B1="=A1")
        before = self.evaluations()
        self.assertEqual(self.set("X1", "3"), [["X1", 3]])
        self.assertEqual(self.evaluations(), before)


class Errors(SheetCase):
    def test_count_skips_errors_and_iferror_checks_its_arguments(self):
        self.fill(A1="=1/0", A2="4", A3="x", A4="TRUE")
        self.fill(B1="=COUNT(A1:A9,1/0,2,\"7\",A2)", B2="=IFERROR(A1)", B3="=IFERROR(A2,A1)", B4="=IFERROR(A1,A2/0)")
        self.assertEqual([self.value(f"B{row}") for row in range(1, 5)], [3, err("#VALUE!"), 4, err("#DIV/0!")])


class Structure(SheetCase):
    def test_references_follow_inserted_rows(self):
        self.fill(A1="1", A3="3", B1="=A3+$A$3+A$1", B5="=a3")
        self.assertEqual(self.edit("insert_rows", at=2, count=2), [])
        self.assertEqual(self.text("B1"), "=A5+$A$5+A$1")
        self.assertEqual(self.text("B7"), "=A5")
        self.assertEqual(self.set("A5", "4"), [["B1", 9], ["A5", 4], ["B7", 4]])

    def test_range_moves_grows_or_stays(self):
        self.fill(C1="=SUM(A3:A5)", D1="=COUNT($A$3:$a$5)")
        self.edit("insert_rows", at=6, count=1)
        self.assertEqual((self.text("C1"), self.text("D1")), ("=SUM(A3:A5)", "=COUNT($A$3:$a$5)"))
        self.edit("insert_rows", at=5, count=1)
        self.assertEqual((self.text("C1"), self.text("D1")), ("=SUM(A3:A6)", "=COUNT($A$3:$A$6)"))
        self.edit("insert_rows", at=3, count=3)
        self.assertEqual((self.text("C1"), self.text("D1")), ("=SUM(A6:A9)", "=COUNT($A$6:$A$9)"))

    def test_corners_in_any_order_keep_their_place(self):
        self.fill(H1="=SUM(C$6:$A3)", H2="=SUM(A6:C3)")
        self.edit("insert_rows", at=6, count=1)
        self.assertEqual((self.text("H1"), self.text("H2")), ("=SUM(C$7:$A3)", "=SUM(A7:C3)"))
        self.edit("delete_rows", at=3, count=1)
        self.assertEqual((self.text("H1"), self.text("H2")), ("=SUM(C$6:$A3)", "=SUM(A6:C3)"))
        self.edit("delete_columns", at="C", count=1)
        self.assertEqual((self.text("G1"), self.text("G2")), ("=SUM(B$6:$A3)", "=SUM(A6:B3)"))

    def test_deleted_rows_leave_a_range(self):
        self.fill(A3="1", A4="2", A5="4", A6="8", C1="=SUM(A3:A6)", D1="=SUM(A4:A5)", E1="=A4&\"\"")
        self.assertEqual(self.edit("delete_rows", at=4, count=2), [["C1", 9], ["D1", err("#REF!")], ["E1", err("#REF!")]])
        self.assertEqual([self.text(cell) for cell in ("C1", "D1", "E1")], ["=SUM(A3:A4)", "=SUM(#REF!)", '=#REF!&""'])

    def test_deleted_ends_of_a_range(self):
        self.fill(A3="1", A4="2", A5="4", A6="8", C1="=SUM(A3:A6)")
        self.assertEqual(self.edit("delete_rows", at=2, count=2), [["C1", 14]])
        self.assertEqual(self.text("C1"), "=SUM(A2:A4)")
        self.assertEqual(self.edit("delete_rows", at=4, count=5), [["C1", 6]])
        self.assertEqual(self.text("C1"), "=SUM(A2:A3)")

    def test_columns_behave_like_rows(self):
        self.fill(B1="2", D1="4", A5="=SUM(B1:D1)+D$1", F1="=B1")
        self.assertEqual(self.edit("insert_columns", at="C", count=1), [])
        self.assertEqual(self.text("A5"), "=SUM(B1:E1)+E$1")
        self.assertEqual(self.text("G1"), "=B1")
        self.assertEqual(self.edit("delete_columns", at="B", count=2), [["E1", err("#REF!")], ["A5", 8]])
        self.assertEqual(self.text("A5"), "=SUM(B1:C1)+C$1")

    def test_only_references_change_in_a_text(self):
        self.fill(A1="= sum( a5 : B$6 ,a1) &\"A5 \"\"a5\"\"\"& log10(a5)&Sum (A5)", A2="A5", A3="'=A5")
        self.edit("insert_rows", at=4, count=1)
        self.assertEqual(self.text("A1"), "= sum( A6 : B$7 ,a1) &\"A5 \"\"a5\"\"\"& log10(A6)&Sum (A6)")
        self.assertEqual((self.text("A2"), self.text("A3")), ("A5", "'=A5"))

    def test_insertion_is_refused_if_cells_would_leave(self):
        self.fill(A9998="1", ZY1="2", B1="=A9998")
        self.refused("full", "insert_rows", at=9998, count=2)
        self.refused("full", "insert_columns", at="B", count=2)
        self.assertEqual(self.edit("insert_rows", at=9999, count=1), [])
        self.assertEqual(self.edit("insert_rows", at=1, count=1), [])
        self.assertEqual(self.text("B2"), "=A9999")

    def test_last_row_of_the_sheet(self):
        self.fill(A1="=C9998&\"\"", A2="=COUNT(B1:B9999,9998,C9998:D9999)", A3="=COUNT(B9997:B9998)")
        self.assertEqual(self.edit("insert_rows", at=9990, count=2), [["A1", err("#REF!")]])
        self.assertEqual(self.text("A1"), "=#REF!&\"\"")
        self.assertEqual(self.text("A2"), "=COUNT(B1:B9999,9998,#REF!)")
        self.assertEqual(self.text("A3"), "=COUNT(B9999:B9999)")
        self.start()
        self.fill(A1="=COUNT(C1:C9999)", C9999="3", C9997="1")
        self.assertEqual(self.edit("delete_rows", at=9998, count=50), [["A1", 1]])
        self.assertEqual(self.text("A1"), "=COUNT(C1:C9997)")

    def test_malformed_requests_are_refused(self):
        self.fill(A1="1")
        self.refused("bad_request", "insert_rows", at=0, count=1)
        self.refused("bad_request", "delete_rows", at=10000, count=1)
        self.refused("bad_request", "insert_columns", at="C", count=0)
        self.refused("bad_request", "delete_columns", at="AAA", count=1)
        self.refused("bad_request", "insert_rows", at=1, count=1.5)


class Copies(SheetCase):
    def test_relative_parts_move(self):
        self.fill(B2="=A1+$A1+A$1+$A$1", A1="1", A4="5", C1="7")
        self.assertEqual(self.edit("copy", **{"from": "B2", "to": "D5"}), [["D5", 13]])
        self.assertEqual(self.text("D5"), "=C4+$A4+C$1+$A$1")

    def test_references_that_leave_become_errors(self):
        self.fill(C3="=SUM(A$1:B2)+b3+$c$1", D3="=COUNT(A3:D3)")
        self.edit("copy", **{"from": "C3", "to": "C2"})
        self.assertEqual(self.text("C2"), "=SUM(A$1:B1)+B2+$c$1")
        self.edit("copy", **{"from": "C3:D3", "to": "B1"})
        self.assertEqual(self.text("B1"), "=SUM(#REF!)+A1+$c$1")
        self.assertEqual(self.text("C1"), "=COUNT(#REF!)")

    def test_overlapping_copy_has_the_old_source_and_clears(self):
        self.fill(A1="1", B1="=A1+1", C1="=B1*2", D1="9")
        changed = self.edit("copy", **{"from": "A1:C1", "to": "B1"})
        self.assertEqual(changed, [["B1", 1], ["C1", 2], ["D1", 4]])
        self.assertEqual([self.text(f"{col}1") for col in "ABCD"], ["1", "1", "=B1+1", "=C1*2"])
        self.assertEqual(self.edit("copy", **{"from": "G8:H8", "to": "A1"}), [["A1", None], ["B1", None], ["C1", 1], ["D1", 2]])

    def test_copy_must_fit(self):
        self.fill(A1="1", B3="=A1")
        self.refused("bad_request", "copy", **{"from": "A1:B3", "to": "A9998"})
        self.refused("bad_request", "copy", **{"from": "A1:B1", "to": "ZZ1"})
        self.assertEqual(self.edit("copy", **{"from": "A1:B3", "to": "C9997"}), [["C9997", 1], ["D9999", 1]])
