import lab
from contrast import contrast, rules, themes

PAIRS = [("ink", "paper", 4.5), ("muted", "paper", 4.5), ("link", "paper", 4.5), ("line", "paper", 3), ("heat-none-ink", "heat-none", 4.5)]
PAIRS += [(f"heat-{step}-ink", f"heat-{step}", 4.5) for step in range(5)]

KEPT = {
    "light": "paper #fff ink #1b2127 ink-dark #101418 ink-light #fff heat-none #eef1f4 "
    "heat-0 #fff3e0 heat-1 #ffc46b heat-2 #cf6519 heat-3 #b9480b heat-4 #7a2406",
    "dark": "paper #14181d ink #e6ebf0 ink-dark #101418 ink-light #fff heat-none #232a31 "
    "heat-0 #2b1a10 heat-1 #5c2c0a heat-2 #a8480e heat-3 #d2601a heat-4 #ffd08a",
}

SHEET = """
:root {
  --paper: #FFF; /* white */
  --ink: #0f8853;
  --ink-dark: #102030;
  --ink-light: #fe9;
  --muted: #767676;
  --accent: #a50;
  --link: var(--accent);
  --line: #9a9;
  --heat-none: #eee;
  --heat-none-ink: var(--muted);
  --heat-0: #ffe; --heat-0-ink: var(--ink-dark);
  --heat-1: #fc6; --heat-1-ink: var(--ink-dark);
  --heat-2: #c62; --heat-2-ink: var(--ink-dark);
  --heat-3: #852; --heat-3-ink: var(--ink-light);
  --heat-4: #010203; --heat-4-ink: var(--ink-light);
}

@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) {
    --paper: #111; --ink: #ddd; --muted: #999; --accent: #58a; --heat-none: #222;
    --ink-light: #eef;
  }
}

[data-theme="dark"] {
  --paper: #123; --accent: #fff000;
  --muted: var(--ink-light);
}

body { color: var(--ink); background: var(--paper); }
"""


class Checker(lab.Case):
    def lines(self, css, exit=1):
        self.write("some.css", css)
        done = self.program("node", "bin/check-contrast.js", "some.css")
        self.assertEqual(done.status, exit, done)
        return done.stdout.splitlines()

    def expected(self, css, names):
        lines = []
        for theme, colors in themes(css).items():
            for ink, paper, least in PAIRS:
                ratio = contrast(colors[ink], colors[paper])
                shown = int(ratio * 100 + 1e-9) / 100
                lines.append(f"{theme} {ink} on {paper} {shown:.2f} {'ok' if ratio >= least else 'low'}")
        return [line for line in lines if line.split()[0] in names]

    def test_ratios_of_the_light_theme(self):
        found = [line for line in self.lines(SHEET) if line.startswith("light ")]
        self.assertEqual(found, self.expected(SHEET, ["light"]))

    def test_references_are_replaced_after_themes_are_combined(self):
        found = [line for line in self.lines(SHEET) if not line.startswith("light ")]
        self.assertEqual(found, self.expected(SHEET, ["dark", "chosen-dark"]))

    def test_ratio_that_is_a_little_too_low(self):
        self.assertEqual(self.lines(SHEET)[0], "light ink on paper 4.49 low")

    def test_style_sheet_of_the_page(self):
        done = self.program("node", "bin/check-contrast.js")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.stdout.splitlines(), self.expected(self.read("styles.css"), ["light", "dark", "chosen-dark"]))


class Styles(lab.Case):
    def setUp(self):
        self.css = self.read("styles.css")
        self.themes = themes(self.css)

    def test_pairs_are_readable_in_all_themes(self):
        low = []
        for theme, colors in self.themes.items():
            low += [(theme, ink) for ink, paper, least in PAIRS if contrast(colors[ink], colors[paper]) < least]
        self.assertEqual(low, [])

    def test_brand_colors_stay(self):
        for theme, text in KEPT.items():
            words = text.split()
            for name, value in zip(words[::2], words[1::2]):
                self.assertEqual(contrast(self.themes[theme][name], value), 1, (theme, name))

    def test_both_dark_themes_have_the_same_colors(self):
        for ink, paper, _ in PAIRS:
            for name in (ink, paper):
                self.assertEqual(self.themes["chosen-dark"][name], self.themes["dark"][name], name)

    def test_inks_are_the_better_ones(self):
        for theme, colors in self.themes.items():
            for step in range(5):
                both = [colors["ink-dark"], colors["ink-light"]]
                best = max(both, key=lambda ink: contrast(ink, colors[f"heat-{step}"]))
                self.assertEqual(colors[f"heat-{step}-ink"], best, (theme, step))

    def test_classes_use_their_own_pair(self):
        for step in ("none", 0, 1, 2, 3, 4):
            found = {}
            for _, selectors, declarations in rules(self.css):
                if any(one.endswith(f".heat-{step}") for one in selectors):
                    found.update(declarations)
            background = found.get("background", found.get("background-color"))
            self.assertEqual((background, found.get("color")), (f"var(--heat-{step})", f"var(--heat-{step}-ink)"))

    def test_text_is_not_made_paler(self):
        for _, selectors, declarations in rules(self.css):
            self.assertIn(declarations.get("opacity", "1"), ("1", "1.0", "100%"), selectors)
