import json
import re

import lab
import markup

TODAY = "2026-03-01"
VALID = {
    "email": " ada@example.org ",
    "password": "correct horse 42",
    "password_repeat": "correct horse 42",
    "name": " Ada King ",
    "birth_date": "1990-12-10",
    "country": "de",
    "phone": "",
    "plan": "basic",
    "company": "",
    "vat_id": "",
    "children": [],
    "topics": [],
    "terms": True,
}
BUSINESS = {**VALID, "plan": "business", "company": "Engines Ltd", "vat_id": "DE123456789"}
ADA = {"key": 3, "name": " Ada ", "birth_date": "2015-05-01"}
BEN = {"key": 1, "name": "Ben", "birth_date": "2017-06-02"}
FAMILY = {**VALID, "plan": "family", "children": [ADA, BEN]}
TWICE = "This child is listed already"
ACCOUNT = ["email", "password", "password_repeat"]
PERSON = ["name", "birth_date", "country", "phone"]


class SignupCase(lab.Case):
    def setUp(self):
        self.signup = self.driver("node", "driver.js")

    def state(self, step=0, values=None, errors=(), today=TODAY, **more):
        base = self.signup.call("initial", today=today)
        base["values"].update(values or {})
        found = [{"field": field, "message": message} for field, message in errors]
        return {**base, "step": step, "errors": found, **more}

    def after(self, state, kind, **more):
        return self.signup.call("reduce", state=state, event={"type": kind, **more})

    def page(self, state):
        return markup.parse(self.signup.call("render", state=state))

    def validated(self, today=TODAY, base=VALID, **values):
        errors = self.signup.call("validate", values={**base, **values}, today=today)
        return [(error["field"], error["message"]) for error in errors]

    def shown(self, state):
        return [(error["field"], error["message"]) for error in state["errors"]]

    def names(self, page):
        """Names of the fields, in their order."""
        controls = page.id("signup").all("input", "select")
        return list(dict.fromkeys(control["name"] for control in controls))


class Frame(SignupCase):
    def test_only_the_current_step_is_rendered(self):
        for step, names in enumerate((ACCOUNT, PERSON, ["plan", "topics", "terms"])):
            page = self.page(self.state(step))
            self.assertEqual(self.names(page), names)
            titles = [(item.text(), item["aria-current"]) for item in page.all("ol")[0].all("li")]
            expected = ["Your account", "About you", "Your plan"]
            self.assertEqual(titles, [(name, "step" if index == step else None) for index, name in enumerate(expected)])
            heading = page.id("step-title")
            self.assertEqual((heading.tag, heading["tabindex"]), ("h1", "-1"))
            self.assertEqual(heading.text(), f"Step {step + 1} of 3: {expected[step]}")

    def test_form_and_buttons(self):
        for step, texts in enumerate((["Continue"], ["Continue", "Back"], ["Create account", "Back"])):
            form = self.page(self.state(step)).id("signup")
            self.assertEqual((form.tag, form["method"].lower(), form["action"]), ("form", "post", "/signup"))
            self.assertNotIn("novalidate", form)
            buttons = form.all("button")
            self.assertEqual([button.text() for button in buttons], texts)
            found = [(button["type"], button["name"], button["value"], "formnovalidate" in button) for button in buttons]
            self.assertEqual(found, [("submit", "action", "next", False), ("submit", "action", "back", True)][: len(texts)])

    def test_completion(self):
        state = self.state(2, payload={"name": '<i>A & "B"</i>'})
        page = self.page(state)
        self.assertEqual(page.all("form"), [])
        heading = page.id("step-title")
        self.assertEqual((heading.tag, heading["tabindex"], heading.text()), ("h1", "-1", 'Welcome, <i>A & "B"</i>'))
        self.assertEqual(heading.elements, [])

    def test_titles(self):
        titles = [
            self.signup.call("title", state=state)
            for state in (
                self.state(1),
                self.state(0, errors=[("email", "x")]),
                self.state(2, errors=[(None, "x")]),
                self.state(2, payload={"name": "A"}),
            )
        ]
        self.assertEqual(
            titles,
            [
                "About you (step 2 of 3) - Join Fernhill",
                "Error: Your account (step 1 of 3) - Join Fernhill",
                "Error: Your plan (step 3 of 3) - Join Fernhill",
                "Welcome - Join Fernhill",
            ],
        )


class Fields(SignupCase):
    def test_controls_have_labels_and_constraints(self):
        page = self.page(self.state(0))
        labels = {label["for"]: label for label in page.all("label")}
        self.assertEqual([labels[f"f-{name}"].text() for name in ACCOUNT], ["Email address", "Password", "Repeat the password"])
        self.assertTrue(all(not label.all("input") for label in labels.values()))
        email, password, repeat = (page.id(f"f-{name}") for name in ACCOUNT)
        self.assertEqual([email[name] for name in ("type", "autocomplete", "maxlength")], ["email", "email", "254"])
        self.assertEqual([password[name] for name in ("type", "autocomplete", "minlength")], ["password", "new-password", "12"])
        self.assertTrue(all("required" in control and "placeholder" not in control for control in (email, password, repeat)))
        page = self.page(self.state(1))
        self.assertNotIn("required", page.id("f-phone"))
        self.assertEqual([label.text() for label in page.all("label") if label["for"] == "f-phone"], ["Phone number (optional)"])
        self.assertEqual([label.text() for label in page.all("label") if label["for"] == "f-name"], ["Full name"])

    def test_select(self):
        page = self.page(self.state(1, {"country": "fr"}))
        select = page.id("f-country")
        self.assertEqual((select.tag, select["autocomplete"], "required" in select), ("select", "country", True))
        options = select.all("option")
        self.assertEqual((options[0]["value"], options[0].text()), ("", "Choose a country"))
        self.assertEqual([option["value"] for option in options[1:]], ["at", "ch", "de", "fr", "gb"])
        self.assertEqual([option.text() for option in options if "selected" in option], ["France"])

    def test_groups(self):
        page = self.page(self.state(2, {"plan": "maker", "topics": ["garden", "wood"]}))
        for name, legend, type_ in (("plan", "Plan", "radio"), ("topics", "Newsletters (optional)", "checkbox")):
            group = page.id(f"f-{name}")
            self.assertEqual(group.tag, "fieldset")
            self.assertEqual((group.elements[0].tag, group.elements[0].text()), ("legend", legend))
            inputs = group.all("input")
            self.assertTrue(all(control["id"] == f"f-{name}-{control['value']}" for control in inputs))
            self.assertTrue(all((control["type"], control["name"]) == (type_, name) for control in inputs))
            self.assertEqual({"required" in control for control in inputs}, {name == "plan"})
            labels = {label["for"]: label.text() for label in group.all("label")}
            self.assertEqual(list(labels), [control["id"] for control in inputs])
        self.assertEqual(labels["f-topics-garden"], "Garden & yard")
        checked = [control["id"] for control in page.all("input") if "checked" in control]
        self.assertEqual(checked, ["f-plan-maker", "f-topics-wood", "f-topics-garden"])

    def test_single_checkbox(self):
        for accepted in (True, False):
            page = self.page(self.state(2, {"terms": accepted}))
            terms = page.id("f-terms")
            self.assertEqual((terms["type"], terms["name"], terms["value"], "required" in terms), ("checkbox", "terms", "yes", True))
            self.assertEqual("checked" in terms, accepted)
            self.assertIsNone(terms.inside("fieldset"))

    def test_values_are_kept_exactly_and_escaped(self):
        hostile = " \"><script>alert('x')</script> &amp; &lt $& "
        page = self.page(self.state(1, {"name": hostile, "birth_date": "30.2.", "phone": "'"}))
        self.assertEqual(page.all("script"), [])
        self.assertEqual([page.id(f"f-{name}")["value"] for name in ("name", "birth_date", "phone")], [hostile, "30.2.", "'"])

    def test_passwords_are_not_in_the_markup(self):
        state = self.state(0, {"password": "correct horse 42", "password_repeat": "something else"}, [("password", "x")])
        self.assertTrue(all("value" not in self.page(state).id(f"f-{name}") for name in ("password", "password_repeat")))
        self.assertNotRegex(self.signup.call("render", state=state), "correct horse|something else")

    def test_conditional_fields(self):
        for values, names in (
            ({"plan": "business"}, ["plan", "company", "topics", "terms"]),
            ({"plan": "business", "country": "at"}, ["plan", "company", "vat_id", "topics", "terms"]),
            ({"plan": "business", "country": "gb"}, ["plan", "company", "topics", "terms"]),
            ({"plan": "basic", "country": "at"}, ["plan", "topics", "terms"]),
        ):
            page = self.page(self.state(2, values))
            self.assertEqual(self.names(page), names)
        self.assertIn("required", self.page(self.state(2, {"plan": "business"})).id("f-company"))

    def test_latest_date_of_birth(self):
        for today, latest in (("2026-03-01", "2008-03-01"), ("2024-02-29", "2006-02-28"), ("2022-02-28", "2004-02-28")):
            field = self.page(self.state(1, today=today)).id("f-birth_date")
            self.assertEqual((field["type"], field["min"], field["max"]), ("date", "1900-01-01", latest))


class Descriptions(SignupCase):
    def test_hints_without_errors(self):
        page = self.page(self.state(1))
        self.assertEqual(page.id("f-phone")["aria-describedby"], "f-phone-hint")
        self.assertEqual(page.id("f-phone-hint").text(), "With the country code, like +49 30 1234567.")
        self.assertNotIn("aria-describedby", page.id("f-name"))
        self.assertTrue(all("aria-invalid" not in element for element in page.all()))
        self.assertIsNone(page.id("f-name-hint") or page.id("f-name-error") or page.id("f-phone-error"))

    def test_errors_come_before_hints(self):
        page = self.page(self.state(0, errors=[("email", "Bad <b>&amp;</b>"), ("password_repeat", "Other")]))
        self.assertEqual(page.id("f-email")["aria-describedby"].split(), ["f-email-error", "f-email-hint"])
        self.assertEqual(page.id("f-email-error").text(), "Bad <b>&amp;</b>")
        self.assertEqual(page.id("f-password_repeat")["aria-describedby"], "f-password_repeat-error")
        invalid = [element["id"] for element in page.all() if element["aria-invalid"] == "true"]
        self.assertEqual(invalid, ["f-email", "f-password_repeat"])
        self.assertNotIn("aria-invalid", page.id("f-password"))

    def test_errors_of_groups(self):
        page = self.page(self.state(2, errors=[("plan", "Choose"), ("topics", "Too many"), ("terms", "Accept")]))
        self.assertEqual(page.id("f-plan")["aria-describedby"], "f-plan-error")
        self.assertEqual(page.id("f-topics")["aria-describedby"].split(), ["f-topics-error", "f-topics-hint"])
        self.assertEqual(page.id("f-terms")["aria-describedby"], "f-terms-error")
        self.assertTrue(all(control["aria-invalid"] == "true" for control in page.all("input")))
        self.assertTrue(all("aria-invalid" not in group for group in page.all("fieldset")))
        self.assertTrue(all("aria-describedby" not in control for control in page.all("input") if control["name"] != "terms"))

    def test_summary(self):
        errors = [(None, "Sorry & <all>"), ("plan", "Choose"), ("topics", "Too many"), ("terms", "Accept")]
        page = self.page(self.state(2, errors=errors))
        summary = page.id("error-summary")
        self.assertIs(page.id("signup").elements[0], summary)
        self.assertEqual((summary["role"], summary["tabindex"]), ("alert", "-1"))
        heading = page.id(summary["aria-labelledby"])
        self.assertEqual((heading.tag, heading.text(), heading["id"]), ("h2", "There are 4 problems", "error-summary-title"))
        items = summary.all("li")
        self.assertEqual([item.text() for item in items], ["Sorry & <all>", "Choose", "Too many", "Accept"])
        links = [[link["href"] for link in item.all("a")] for item in items]
        self.assertEqual(links, [[], ["#f-plan-basic"], ["#f-topics-wood"], ["#f-terms"]])
        ids = [element["id"] for element in page.all() if "id" in element]
        self.assertEqual(len(ids), len(set(ids)))
        page = self.page(self.state(1, errors=[("country", "Choose a country")]))
        self.assertEqual(page.id("error-summary-title").text(), "There is 1 problem")
        self.assertIsNone(self.page(self.state(1)).id("error-summary"))


class Validation(SignupCase):
    def test_missing_values(self):
        empty = self.state()["values"]
        self.assertEqual(
            self.validated(base={**empty, "name": " \t"}),
            [
                ("email", "Enter your email address"),
                ("password", "Choose a password"),
                ("password_repeat", "Repeat the password"),
                ("name", "Enter your name"),
                ("birth_date", "Enter your date of birth"),
                ("country", "Choose a country"),
                ("plan", "Choose a plan"),
                ("terms", "Accept the terms of use to continue"),
            ],
        )
        self.assertEqual([field for field, _ in self.validated(country="toString", plan="gold")], ["country", "plan"])
        self.assertEqual(self.validated(), [])

    def test_email(self):
        bad = ["a", "@b.c", "a@b", "a@b..c", "a@.b", "a@b.c.", "a b@c.d", "a@b@c.d", "a" * 250 + "@b.c" + "d"]
        for email in bad:
            self.assertEqual(self.validated(email=email), [("email", "Enter an email address like name@example.org")], email)
        for email in ("a@b.c", " x+y@sub.example.org ", "a" * 250 + "@b.c"):
            self.assertEqual(self.validated(email=email), [], email)

    def test_password(self):
        messages = {"short": "The password needs at least 12 characters", "long": "The password can have at most 128 characters"}
        messages["email"] = "The password must not contain your email name"
        cases = [("\U0001f511" * 11, "short"), ("\U0001f511" * 12, None), ("\U0001f511" * 128, None), ("x" * 129, "long")]
        cases += [("my ADA password", "email"), (" " * 12, None)]
        for password, kind in cases:
            expected = [("password", messages[kind])] if kind else []
            self.assertEqual(self.validated(password=password, password_repeat=password), expected, password)
        same = {"password": "abcdefghijklm", "password_repeat": "abcdefghijklm"}
        for email in ("ab@example.org", "zzz@example.org"):
            self.assertEqual(self.validated(email=email, **same), [])
        self.assertEqual([field for field, _ in self.validated(email="abcdef", **same)], ["email"])
        self.assertEqual(self.validated(password_repeat="correct horse 42 "), [("password_repeat", "The passwords are not the same")])

    def test_birth_date(self):
        for date in ("1899-12-31", "1990-02-29", "1990-2-03", "1990-13-01", "1990-04-31", "1990-01-00", "10.12.1990", "1900-02-29"):
            self.assertEqual(self.validated(birth_date=date), [("birth_date", "Enter a real date")], date)
        young = [("birth_date", "You have to be at least 18")]
        for today, date, expected in (
            ("2026-03-01", "2008-03-01", []),
            ("2026-03-01", "2008-03-02", young),
            ("2022-02-28", "2004-02-29", young),
            ("2022-03-01", "2004-02-29", []),
            ("2024-02-29", "2006-02-28", []),
            ("2024-02-29", "2006-03-01", young),
            ("2026-03-01", "2030-01-01", young),
            ("2026-03-01", " 2000-02-29 ", []),
        ):
            self.assertEqual(self.validated(today=today, birth_date=date), expected, (today, date))

    def test_names_and_topics(self):
        self.assertEqual(self.validated(name=" " + "\U0001f9f0" * 80 + " "), [])
        self.assertEqual(self.validated(name="x" * 81), [("name", "The name can have at most 80 characters")])
        self.assertEqual(
            self.validated(base=BUSINESS, company="x" * 121), [("company", "The name can have at most 120 characters")]
        )
        self.assertEqual(self.validated(topics=["wood", "metal", "garden"]), [])
        four = [("topics", "Choose at most 3 newsletters")]
        self.assertEqual(self.validated(topics=["wood", "metal", "garden", "bikes"]), four)
        self.assertEqual(self.validated(topics=["wood", "glass"]), [("topics", "Choose newsletters from the list")])

    def test_phone_and_vat_number(self):
        for phone in ("+49 (30) 123-4567", "+1234567", " +123456789012345 "):
            self.assertEqual(self.validated(phone=phone), [], phone)
        for phone in ("030 1234567", "+123456", "+1234567890123456", "+12345a7", "++1234567"):
            self.assertEqual(self.validated(phone=phone), [("phone", "Enter a phone number that begins with +")], phone)
        wrong = [("vat_id", "This is not a VAT number of your country")]
        for country, number, expected in (
            ("de", " de 123.456-789 ", []),
            ("at", "DE123456789", wrong),
            ("fr", "fr x7 123456789", []),
            ("de", "DE12345678", wrong),
            ("gb", "anything", []),
            ("de", " ", [("vat_id", "Enter the VAT number")]),
        ):
            self.assertEqual(self.validated(base=BUSINESS, country=country, vat_id=number), expected, (country, number))
        self.assertEqual(self.validated(plan="maker", vat_id="wrong"), [])


class Events(SignupCase):
    def test_next(self):
        state = self.after(self.state(0, {**VALID, "email": "x", "name": ""}), "next")
        self.assertEqual(self.shown(state), [("email", "Enter an email address like name@example.org")])
        self.assertEqual((state["step"], state["focus"]), (0, "error-summary"))
        state = self.after(self.after(state, "change", name="email", value="a@b.c"), "next")
        self.assertEqual((state["step"], state["focus"], state["errors"], state["payload"]), (1, "step-title", [], None))

    def test_change(self):
        state = self.state(0, VALID, [(None, "general"), ("email", "x"), ("password", "y")], focus="error-summary")
        after = self.after(state, "change", name="email", value=" q ")
        self.assertEqual(self.shown(after), [(None, "general"), ("password", "y")])
        self.assertEqual((after["values"]["email"], after["focus"]), (" q ", None))
        self.assertEqual(self.after(state, "change", name="constructor", value="1"), state)
        state = self.state(2, BUSINESS, [("company", "x"), ("vat_id", "y"), ("topics", "z")])
        after = self.after(state, "change", name="plan", value="maker")
        self.assertEqual((self.shown(after), after["values"]["company"]), ([("topics", "z")], "Engines Ltd"))

    def test_last_step_returns_to_the_first_step_with_errors(self):
        state = self.after(self.state(2, {**VALID, "terms": False, "country": "", "birth_date": "x"}), "next")
        self.assertEqual(self.shown(state), [("birth_date", "Enter a real date"), ("country", "Choose a country")])
        self.assertEqual((state["step"], state["focus"], state["payload"]), (1, "error-summary", None))

    def test_back(self):
        state = self.after(self.state(2, {"plan": "gold"}, [("plan", "x")]), "back")
        self.assertEqual((state["step"], state["errors"], state["focus"], state["values"]["plan"]), (1, [], "step-title", "gold"))
        self.assertEqual(self.after(self.state(0), "back")["step"], 0)

    def test_payload(self):
        values = {**BUSINESS, "phone": " +49 (30) 123-4567", "vat_id": "de 123.456-789", "topics": ["bikes", "wood", "bikes"]}
        state = self.after(self.state(2, values), "next")
        expected = {
            "email": "ada@example.org",
            "password": "correct horse 42",
            "name": "Ada King",
            "birth_date": "1990-12-10",
            "country": "de",
            "phone": "+49301234567",
            "plan": "business",
            "company": "Engines Ltd",
            "vat_id": "DE123456789",
            "topics": ["wood", "bikes"],
            "terms": True,
        }
        self.assertEqual(state["payload"], expected)
        self.assertEqual((state["errors"], state["focus"]), ([], "step-title"))
        for event in ({"kind": "next"}, {"kind": "back"}, {"kind": "change", "name": "name", "value": "B"}):
            self.assertEqual(self.after(state, **event), state)
        small = self.after(self.state(2, {**BUSINESS, "plan": "basic"}), "next")["payload"]
        hidden = {"company", "vat_id", "phone"}
        self.assertEqual(set(small), set(expected) - hidden)

    def test_rejected(self):
        done = self.after(self.state(2, VALID), "next")
        errors = [
            {"field": "terms", "message": "t"},
            {"field": "country", "message": "c"},
            {"field": "company", "message": "hidden"},
            {"field": "name", "message": "n"},
            {"message": "general"},
            {"field": "name", "message": "again"},
        ]
        state = self.after(done, "rejected", errors=errors)
        self.assertEqual(self.shown(state), [(None, "hidden"), (None, "general"), ("name", "n"), ("country", "c")])
        self.assertEqual((state["step"], state["focus"], state["payload"]), (1, "error-summary", None))
        state = self.after(done, "rejected", errors=[{"field": "toString", "message": "m"}])
        self.assertEqual((state["step"], self.shown(state)), (2, [(None, "m")]))


class Rows(SignupCase):
    def test_visible_with_the_family_plan_only(self):
        page = self.page(self.state(2, FAMILY))
        parts = ["children.3.name", "children.3.birth_date", "children.1.name", "children.1.birth_date"]
        self.assertEqual(self.names(page), ["plan", *parts, "topics", "terms"])
        self.assertIsNone(self.page(self.state(2, {**FAMILY, "plan": "maker"})).id("f-children"))
        self.assertEqual(self.validated(base={**FAMILY, "plan": "maker", "children": [{**ADA, "name": ""}]}), [])

    def test_markup_of_rows(self):
        page = self.page(self.state(2, FAMILY))
        group = page.id("f-children")
        self.assertEqual((group.tag, group.elements[0].tag, group.elements[0].text()), ("fieldset", "legend", "Children"))
        self.assertEqual((group["aria-describedby"], page.id("f-children-hint").text()), ("f-children-hint", "They get cards of their own."))
        rows = group.all("fieldset")
        self.assertEqual([(row["id"], row.elements[0].tag, row.elements[0].text()) for row in rows], [("f-children.3", "legend", "Child 1"), ("f-children.1", "legend", "Child 2")])
        labels = {label["for"]: label.text() for label in group.all("label")}
        self.assertEqual(labels, {f"f-children.{key}.{part}": label for key in (3, 1) for part, label in (("name", "Name"), ("birth_date", "Date of birth"))})
        name, birth_date = page.id("f-children.3.name"), page.id("f-children.3.birth_date")
        self.assertEqual([name[key] for key in ("name", "type", "autocomplete", "maxlength", "value")], ["children.3.name", "text", "off", "80", " Ada "])
        self.assertEqual([birth_date[key] for key in ("name", "type", "value")], ["children.3.birth_date", "date", "2015-05-01"])
        self.assertTrue("required" in name and "required" in birth_date)
        self.assertTrue(all("required" not in each and "aria-invalid" not in each for each in page.all("fieldset")))
        ids = [element["id"] for element in page.all() if "id" in element]
        self.assertEqual(len(ids), len(set(ids)))

    def test_buttons_of_rows(self):
        rows = [ADA, {**BEN, "name": ' "&" '}, {"key": 7, "name": " ", "birth_date": ""}]
        page = self.page(self.state(2, {**FAMILY, "children": rows}))
        buttons = page.id("f-children").all("button")
        self.assertEqual([(button["type"], button.text()) for button in buttons], [("button", "Remove")] * 3 + [("button", "Add a child")])
        found = [(button["data-remove"], button["aria-label"], button.inside("fieldset")["id"]) for button in buttons[:3]]
        expected = [("3", "Remove Ada"), ("1", 'Remove "&"'), ("7", "Remove Child 3")]
        self.assertEqual(found, [(f"children.{key}", label, f"f-children.{key}") for key, label in expected])
        self.assertEqual((buttons[3]["id"], buttons[3]["data-add"], buttons[3].inside("fieldset")["id"]), ("f-children-add", "children", "f-children"))
        for count, texts in ((3, 1), (4, 0), (5, 0)):
            rows = [{**ADA, "key": key} for key in range(count)]
            page = self.page(self.state(2, {**FAMILY, "children": rows}))
            self.assertEqual(sum(button["id"] == "f-children-add" for button in page.all("button")), texts)

    def test_limits_of_dates(self):
        for today, first in (("2026-03-01", "2008-03-02"), ("2024-02-29", "2006-03-01"), ("2022-02-28", "2004-02-29"), ("2026-12-31", "2009-01-01")):
            field = self.page(self.state(2, FAMILY, today=today)).id("f-children.3.birth_date")
            self.assertEqual((field["min"], field["max"]), (first, today))

    def test_errors_of_rows_in_the_markup(self):
        errors = [("children", "All"), ("children.3.birth_date", "Date"), ("children.1.name", "<Name>")]
        page = self.page(self.state(2, FAMILY, errors))
        self.assertEqual(page.id("f-children")["aria-describedby"].split(), ["f-children-error", "f-children-hint"])
        self.assertEqual([element["id"] for element in page.all() if element["aria-invalid"] == "true"], ["f-children.3.birth_date", "f-children.1.name"])
        self.assertEqual(page.id("f-children.1.name")["aria-describedby"], "f-children.1.name-error")
        self.assertEqual(page.id("f-children.1.name-error").text(), "<Name>")
        links = [link["href"] for link in page.id("error-summary").all("a")]
        self.assertEqual(links, ["#f-children.3.name", "#f-children.3.birth_date", "#f-children.1.name"])
        page = self.page(self.state(2, {**FAMILY, "children": []}, [("children", "Add")]))
        self.assertEqual([link["href"] for link in page.id("error-summary").all("a")], ["#f-children-add"])

    def test_validation_of_rows(self):
        self.assertEqual(self.validated(base=FAMILY), [])
        self.assertEqual(self.validated(base=FAMILY, children=[]), [("children", "Add at least one child")])
        rows = [{"key": key, "name": f"C{key}", "birth_date": "2015-05-01"} for key in range(5)]
        rows[3].update(name=" ", birth_date="")
        expected = [("children", "A family has at most 4 cards for children"), ("children.3.name", "Enter the child's name"), ("children.3.birth_date", "Enter the child's date of birth")]
        self.assertEqual(self.validated(base=FAMILY, children=rows, terms=False), [*expected, ("terms", "Accept the terms of use to continue")])
        long = {**BEN, "name": " " + "\U0001f9f0" * 80 + " "}
        self.assertEqual(self.validated(base=FAMILY, children=[long]), [])
        self.assertEqual(self.validated(base=FAMILY, children=[{**BEN, "name": "x" * 81}]), [("children.1.name", "The name can have at most 80 characters")])

    def test_dates_of_birth_of_rows(self):
        invalid, future, old = "Enter a real date", "The date is in the future", "Children are under 18"
        for today, date, message in (
            ("2026-03-01", "2026-03-01", None),
            ("2026-03-01", "2026-03-02", future),
            ("2026-03-01", "2026-02-29", invalid),
            ("2026-03-01", "2015-5-01", invalid),
            ("2026-03-01", " 2015-05-01 ", None),
            ("2026-03-01", "2008-03-01", old),
            ("2026-03-01", "2008-03-02", None),
            ("2022-02-28", "2004-02-29", None),
            ("2022-03-01", "2004-02-29", old),
            ("2024-02-29", "2006-02-28", old),
        ):
            expected = [("children.1.birth_date", message)] if message else []
            self.assertEqual(self.validated(today=today, base=FAMILY, children=[{**BEN, "birth_date": date}]), expected, (today, date))

    def test_children_that_are_listed_twice(self):
        rows = [ADA, {**BEN, "name": "ADA", "birth_date": " 2015-05-01"}, {"key": 8, "name": "ada", "birth_date": "2015-05-02"}]
        self.assertEqual(self.validated(base=FAMILY, children=rows), [("children.1.name", TWICE)])
        rows = [{**ADA, "birth_date": ""}, {**BEN, "name": "Ada", "birth_date": ""}]
        self.assertEqual([field for field, _ in self.validated(base=FAMILY, children=rows)], ["children.3.birth_date", "children.1.birth_date"])
        rows = [{**ADA, "birth_date": "x"}, {**BEN, "name": "Ada", "birth_date": "x"}]
        self.assertEqual([field for field, _ in self.validated(base=FAMILY, children=rows)], ["children.3.birth_date", "children.1.name", "children.1.birth_date"])
        rows = [{**ADA, "name": ""}, {**BEN, "name": " ", "birth_date": "2015-05-01"}]
        self.assertEqual([message for _, message in self.validated(base=FAMILY, children=rows)], ["Enter the child's name"] * 2)

    def test_add(self):
        state = self.state(2, {"plan": "family"}, [("children", "Add"), ("plan", "x"), (None, "y")])
        after = self.after(state, "add", name="children")
        self.assertEqual((after["values"]["children"], after["next_key"]), ([{"key": 1, "name": "", "birth_date": ""}], 2))
        self.assertEqual((after["focus"], self.shown(after)), ("f-children.1.name", [("plan", "x"), (None, "y")]))
        after = self.after(self.after(after, "add", name="children"), "remove", name="children.2")
        after = self.after(after, "add", name="children")
        self.assertEqual(([row["key"] for row in after["values"]["children"]], after["focus"]), ([1, 3], "f-children.3.name"))
        full = self.state(2, {**FAMILY, "children": [{**ADA, "key": key} for key in range(4)]}, next_key=9)
        for state, name in ((full, "children"), (self.state(2), "children"), (self.state(2, FAMILY), "topics"), (self.state(2, FAMILY), "toString")):
            self.assertEqual(self.after(state, "add", name=name), state)

    def test_change_of_parts(self):
        errors = [("children", "a"), ("children.3.birth_date", "b"), ("children.1.name", TWICE), ("children.1.birth_date", "c"), ("terms", TWICE)]
        state = self.state(2, FAMILY, errors, focus="error-summary", next_key=4)
        after = self.after(state, "change", name="children.3.birth_date", value=" q ")
        self.assertEqual(after["values"]["children"], [{**ADA, "birth_date": " q "}, BEN])
        self.assertEqual((self.shown(after), after["focus"]), ([("children.1.birth_date", "c"), ("terms", TWICE)], None))
        after = self.after(state, "change", name="terms", value=True)
        self.assertEqual(len(self.shown(after)), 4)
        for name in ("children", "children.9.name", "children.3", "children.3.key", "children.3.toString", "children.3.name.x", "topics.3.name"):
            self.assertEqual(self.after(state, "change", name=name, value="z"), state, name)
        after = self.after(state, "change", name="plan", value="maker")
        self.assertEqual((self.shown(after), after["values"]["children"]), ([("terms", TWICE)], [ADA, BEN]))

    def test_remove(self):
        cyd = {"key": 5, "name": "Cyd", "birth_date": "2018-01-01"}
        errors = [("children", "a"), ("children.3.name", "b"), ("children.1.birth_date", "c"), ("children.5.name", TWICE), ("terms", "d")]
        state = self.state(2, {**FAMILY, "children": [ADA, BEN, cyd]}, errors, next_key=6)
        after = self.after(state, "remove", name="children.1")
        self.assertEqual((after["values"]["children"], after["next_key"], after["focus"]), ([ADA, cyd], 6, "f-children.5.name"))
        self.assertEqual(self.shown(after), [("children.3.name", "b"), ("terms", "d")])
        after = self.after(after, "remove", name="children.5")
        self.assertEqual(after["focus"], "f-children.3.name")
        after = self.after(after, "remove", name="children.3")
        self.assertEqual((after["values"]["children"], after["focus"], self.shown(after)), ([], "f-children-add", [("terms", "d")]))
        for name in ("children.4", "children", "children.1.name", "3"):
            self.assertEqual(self.after(state, "remove", name=name), state)
        hidden = self.state(2, {**FAMILY, "plan": "basic"})
        self.assertEqual(self.after(hidden, "remove", name="children.3"), hidden)

    def test_keys_that_begin_alike(self):
        rows = [{**ADA, "key": 1}, {**BEN, "key": 11}]
        state = self.state(2, {**FAMILY, "children": rows}, [("children.11.name", "x"), ("children.1.name", "y")], next_key=12)
        self.assertEqual(self.shown(self.after(state, "remove", name="children.1")), [("children.11.name", "x")])

    def test_steps_and_payload(self):
        state = self.after(self.state(2, {**FAMILY, "children": [{**ADA, "name": ""}], "terms": False}), "next")
        self.assertEqual((state["step"], self.shown(state)), (2, [("children.3.name", "Enter the child's name"), ("terms", "Accept the terms of use to continue")]))
        payload = self.after(self.state(2, FAMILY), "next")["payload"]
        self.assertEqual(payload["children"], [{"name": "Ada", "birth_date": "2015-05-01"}, {"name": "Ben", "birth_date": "2017-06-02"}])
        self.assertNotIn("children", self.after(self.state(2, {**FAMILY, "plan": "maker"}), "next")["payload"])

    def test_rejected_rows(self):
        done = self.after(self.state(2, FAMILY), "next")
        row = lambda index, part, message: {"field": "children", "index": index, "part": part, "message": message}
        errors = [row(1, "name", "n"), row(0, "birth_date", "b"), row(2, "name", "far"), row(1, "name", "again"), row(0, "key", "k")]
        errors.append({"field": "children.3.name", "message": "no field"})
        state = self.after(done, "rejected", errors=errors)
        self.assertEqual(self.shown(state), [(None, "no field"), ("children", "far"), ("children.3.birth_date", "b"), ("children.1.name", "n")])
        self.assertEqual((state["step"], state["payload"]), (2, None))
        done = self.after(self.state(2, VALID), "next")
        self.assertEqual(self.shown(self.after(done, "rejected", errors=[row(0, "name", "m")])), [(None, "m")])


class Drafts(SignupCase):
    def restored(self, draft, today=TODAY):
        return self.signup.call("restore", text=draft if isinstance(draft, (str, type(None))) else json.dumps(draft), today=today)

    def test_exact_text(self):
        state = self.state(2, {**FAMILY, "topics": ["bikes", "wood"], "vat_id": " é"}, [("plan", "x")], next_key=4)
        expected = (
            '{"version":2,"values":{"email":" ada@example.org ","name":" Ada King ","birth_date":"1990-12-10","country":"de","phone":"",'
            '"plan":"family","company":"","vat_id":" é","children":[{"name":" Ada ","birth_date":"2015-05-01"},{"name":"Ben","birth_date":"2017-06-02"}],'
            '"topics":["bikes","wood"],"terms":true}}'
        )
        self.assertEqual(self.signup.call("save", state=state), expected)
        state = self.signup.call("restore", text=expected, today=TODAY)
        children = [{**ADA, "key": 1}, {**BEN, "key": 2}]
        values = {**FAMILY, "password": "", "password_repeat": "", "topics": ["wood", "bikes"], "vat_id": " é", "children": children}
        self.assertEqual(state, {**self.state(), "values": values, "next_key": 3})

    def test_nothing_to_save_after_completion(self):
        self.assertIsNone(self.signup.call("save", state=self.after(self.state(2, VALID), "next")))

    def test_unusable_drafts(self):
        for draft in (None, "", "{", "null", "[]", "1", {}, {"version": 3, "values": {"name": "x"}}, {"version": "2", "values": {"name": "x"}}, {"version": 2, "values": [1]}):
            self.assertEqual(self.restored(draft), self.state(), draft)

    def test_each_value_is_taken_by_itself(self):
        values = {"name": 1, "email": "e", "country": "xx", "plan": ["family"], "terms": "yes", "topics": "wood", "children": {}, "password": "secret", "other": "x", "toString": "x"}
        self.assertEqual(self.restored({"version": 2, "values": values}), {**self.state(0, {"email": "e", "country": "xx"})})
        values = {"topics": ["bikes", "glass", "wood", "bikes", None], "terms": True}
        self.assertEqual(self.restored({"version": 2, "values": values}), self.state(0, {"topics": ["wood", "bikes"], "terms": True}))

    def test_rows_of_drafts(self):
        rows = [{"key": 9, "name": "A", "birth_date": 5}, "x", None, [], {"birth_date": "b", "extra": 1}, {}, {"name": "D"}, {"name": "E"}]
        state = self.restored({"version": 2, "values": {"children": rows}})
        expected = [("A", ""), ("", "b"), ("", ""), ("D", "")]
        self.assertEqual(state["values"]["children"], [{"key": key, "name": name, "birth_date": date} for key, (name, date) in enumerate(expected, 1)])
        self.assertEqual(state["next_key"], 5)

    def test_drafts_of_version_1(self):
        for birthday, date in (("3.12.1990", "1990-12-03"), ("03.1.2001", "2001-01-03"), ("31.31.1990", "1990-31-31"), ("3.12.90", "3.12.90"), (" 3.12.1990", " 3.12.1990"), ("", "")):
            state = self.restored({"version": 1, "values": {"birthday": birthday, "name": "N"}})
            self.assertEqual(state, self.state(0, {"birth_date": date, "name": "N"}))
        state = self.restored({"version": 1, "values": {"interests": "bikes ,glass, wood", "birthday": 3}})
        self.assertEqual(state, self.state(0, {"topics": ["wood", "bikes"]}))
        state = self.restored({"version": 2, "values": {"interests": "bikes", "birthday": "3.12.1990"}})
        self.assertEqual(state, self.state())


class Page(SignupCase):
    def test_index(self):
        page = markup.parse(self.read("index.html"))
        self.assertTrue(page.all("html")[0]["lang"])
        viewport = next(meta["content"] for meta in page.all("meta") if meta["name"] == "viewport")
        self.assertNotRegex(viewport, r"(?i)maximum-scale|user-scalable\s*=\s*(no|0)")
        body = page.all("body")[0]
        self.assertEqual((body.elements[0].tag, body.elements[0]["href"]), ("a", "#main"))
        self.assertTrue(body.elements[0].text())
        [main] = page.all("main")
        self.assertEqual(main["id"], "main")
        self.assertIs(page.id("app").inside("main"), main)
        for tag, role in (("header", "banner"), ("footer", "contentinfo")):
            found = [element for element in page.all() if element.tag == tag or element["role"] == role]
            self.assertTrue(found and not found[0].inside("main"), tag)
        self.assertTrue(all(image["alt"] for image in page.all("img")))
        self.assertEqual([script["src"] for script in page.all("script")], ["src/app.js"])
        self.assertEqual(page.all("title")[0].text(), "Join Fernhill")

    def test_outlines_stay_visible(self):
        styles = re.sub(r"/\*.*?\*/", "", self.read("styles.css"), flags=re.S)
        for rule in re.findall(r"\{([^{}]*)\}", styles):
            if re.search(r"outline(-style|-width)?\s*:\s*(none|0)\b", rule):
                self.assertRegex(rule, r"box-shadow|border")
