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
    "topics": [],
    "terms": True,
}
BUSINESS = {**VALID, "plan": "business", "company": "Engines Ltd", "vat_id": "DE123456789"}
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
