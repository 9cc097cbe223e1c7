import json

import lab

LAYOUT = "<title>{{ page.title }}</title>\n{{ content }}"


class Base(lab.Case):
    def setUp(self):
        self.write("s/site.json", json.dumps({"title": "T", "nav": [{"label": "A & B", "url": "a.html"}]}))
        self.write("s/layouts/page.html", LAYOUT)

    def build(self, status=0):
        done = self.program("node", "bin/quarry.js", "build", "s")
        self.assertEqual(done.status, status, done)
        return done

    def lines(self, status=0):
        """Builds and returns what was printed, without the summary."""
        return self.build(status).stdout.splitlines()[:-1]

    def failing(self, status=1):
        """Builds and returns the paths of pages that failed."""
        lines = self.build(status).stderr.splitlines()
        return sorted(line.removeprefix("failed ").partition(":")[0] for line in lines if line.startswith("failed "))

    def page(self, name, *lines):
        self.write(f"s/pages/{name}", "".join(f"{line}\n" for line in lines))

    def out(self, name):
        return self.read(f"s/out/{name}.html")

    def layout(self, text, **site):
        """Returns what a layout makes of the data of a site."""
        self.write("s/site.json", json.dumps(site))
        self.write("s/layouts/page.html", text)
        self.page("p.html", "<b>x</b>")
        self.build()
        return self.out("p")

    def rejects(self, *layouts):
        for number, text in enumerate(layouts):
            self.write(f"s/layouts/l{number}.html", text)
            self.page(f"p{number}.html", "---", f"layout: l{number}", "---", "x")
        failed = self.failing()
        self.assertEqual([text for number, text in enumerate(layouts) if f"p{number}" not in failed], [])

    def markdown(self, *lines):
        self.write("s/layouts/page.html", "{{ content }}")
        self.page("p.md", *lines)
        self.build()
        return self.out("p")


class Escaping(Base):
    def test_text_and_attributes(self):
        value = "<a href=\"x\">&'"
        self.assertEqual(
            self.layout("{{ site.v }}|<p title=\"{{ site.v }}\" class='{{site.v}}'>", v=value),
            "&lt;a href=\"x\"&gt;&amp;'"
            "|<p title=\"&lt;a href=&quot;x&quot;&gt;&amp;&#39;\" class='&lt;a href=&quot;x&quot;&gt;&amp;&#39;'>",
        )
        self.assertEqual(self.layout('{{ content }}<p title="{{ content }}">'), '<b>x</b>\n<p title="&lt;b&gt;x&lt;/b&gt;\n">')

    def test_raw_tag(self):
        self.assertEqual(self.layout("{{{ site.v }}}{{{site.none}}}", v="<i>&</i>"), "<i>&</i>")
        self.rejects('<p title="{{{ site.v }}}">', "<script>{{{ site.v }}}</script>", "<!-- {{{ site.v }}} -->")

    def test_url_parts(self):
        self.assertEqual(
            self.layout(
                '<a HREF="{{ site.u }}">,<a href="/{{ site.u }}">,<a href="/x?q={{ site.u }}">,<a title="{{ site.u }}">',
                u="a b/\u00e9%20?x=1&y='[2]",
            ),
            '<a HREF="a%20b/%C3%A9%20?x=1&amp;y=&#39;[2]">,<a href="/a%20b/%C3%A9%20?x=1&amp;y=&#39;[2]">,'
            '<a href="/x?q=a%20b%2F%C3%A9%2520%3Fx%3D1%26y%3D&#39;%5B2%5D">,<a title="a b/\u00e9%20?x=1&amp;y=&#39;[2]">',
        )

    def test_bad_schemes(self):
        urls = ["javascript:x", " JavaScript:x", "java\tscript:x", "data:x", "x:y", "./x:y", "?a:b", "MAILTO:a@b", "https://a:1"]
        text = "{{#each site.urls}}<a href=' {{ site.none }}{{ this }}'>{{/each}}"
        good = ["#", "#", "#", "#", "#", "./x:y", "?a:b", "MAILTO:a@b", "https://a:1"]
        self.assertEqual(self.layout(text, urls=urls), "".join(f"<a href=' {url}'>" for url in good))
        self.assertEqual(self.layout('<img src="x-{{ site.u }}">', u="data:x"), '<img src="x-data:x">')

    def test_script(self):
        value = {"a": ["</script>", "&\u2028\u2029"], "b": None}
        self.assertEqual(
            self.layout("<SCRIPT>x = {{ site.v }}, {{ site.none }}, {{ content }}</Script>{{ site.t }}", v=value, t="<"),
            '<SCRIPT>x = {"a":["\\u003c/script\\u003e","\\u0026\\u2028\\u2029"],"b":null}, null, '
            '"\\u003cb\\u003ex\\u003c/b\\u003e\\n"</Script>&lt;',
        )

    def test_values_in_other_places_are_errors(self):
        self.rejects(
            "<p {{ site.title }}>", "<{{ site.title }}>", "</{{ site.title }}>", "<p title={{ site.title }}>", "<p title=a{{ site.title }}>",
            '<p onclick="{{ site.title }}">', '<p STYLE="{{ site.title }}">', '<img srcset="{{ site.title }}">',
            "<!-- > {{ site.title }} -->", "<!doctype {{ site.title }}>", "<style>a > b {{ site.title }}</style>",
        )

    def test_tags_and_comments_are_recognized(self):
        text = "a < b {{ site.v }}<!-- <p title=\" --><br/>{{ site.v }}<p a='>' b = \"<\" c>{{ site.v }}</p\n>{{ site.v }}"
        self.assertEqual(self.layout(text, v="'<"), text.replace("{{ site.v }}", "'&lt;"))

    def test_errors_of_parts_that_arent_taken(self):
        self.write("s/partials/deep.html", "\n<p {{ site.title }}>")
        self.write("s/partials/self.html", "{{#if site.none}}{{> self }}{{/if}}")
        self.rejects(
            "{{#if site.none}}<!-- {{ site.title }} -->{{/if}}", "{{#each site.none}}{{> missing }}{{/each}}",
            "{{#if site.title}}{{else}}{{> deep }}{{/if}}", "{{> self }}",
        )
        self.assertIn("failed p3: partials/self.html:1: ", self.build(1).stderr)

    def test_parts_must_end_in_the_same_place(self):
        self.rejects(
            '<p {{#if site.title}}title="{{/if}}">', "{{#each site.nav}}<p {{/each}}>", "<p", '<a href="{{#if site.title}}/{{/if}}{{ site.title }}">',
            "<p title={{#if site.title}}\"{{else}}'{{/if}}x\">", "<!-- ",
        )
        self.write("s/layouts/l0.html", "<p>\n\n<p\n")
        self.assertIn("failed p0: layouts/l0.html:4: ", self.build(1).stderr)

    def test_parts_may_end_anywhere_between_attributes(self):
        text = '<input {{#if site.a}}checked{{/if}}><p {{#each site.b}}x="{{ this }}"{{/each}}>'
        self.assertEqual(self.layout(text, a=True, b=['"', "2"]), '<input checked><p x="&quot;"x="2">')

    def test_partial_takes_the_place_of_its_tag(self):
        self.write("s/partials/v.html", "{{ site.v }}")
        self.write("s/partials/open.html", "<script>")
        self.assertEqual(
            self.layout('{{> v }}<p title="{{> v }}">{{> open }}{{> v }}</script>', v='"<'),
            '"&lt;<p title="&quot;&lt;"><script>"\\"\\u003c"</script>',
        )


class Markdown(Base):
    def test_blocks(self):
        self.assertEqual(
            self.markdown(
                "# One  ", "text ", "   more", "## Two", "- a", "- b", "  c", "1. d", "", "2. e", "f", "```js", "# <x> ", "", "```", "```", "end",
            ),
            '<h1 id="one">One</h1>\n<p>text\nmore</p>\n<h2 id="two">Two</h2>\n<ul>\n<li>a</li>\n<li>b\nc</li>\n</ul>\n'
            '<ol>\n<li>d</li>\n</ol>\n<ol>\n<li>e</li>\n</ol>\n<p>f</p>\n<pre><code class="language-js"># &lt;x&gt; \n\n</code></pre>\n'
            "<pre><code>end\n</code></pre>\n",
        )
        self.assertEqual(
            self.markdown("#no", "####### no", " - no", "-no", "1) no", "````", "# {#x}", "`` x"),
            "<p>#no\n####### no\n- no\n-no\n1) no\n````\n# {#x}\n`` x</p>\n",
        )

    def test_emphasis(self):
        self.assertEqual(
            self.markdown("*a **b** c* **d *e* f** *g **h* i** * j* *k * l* ***m*** *n", "", "\\*o* *p \\*q* *r `*` s*"),
            "<p><em>a <strong>b</strong> c</em> <strong>d <em>e</em> f</strong> <em>g **h</em> i** * j* <em>k * l</em> ***m*** *n</p>\n"
            "<p>*o* <em>p *q</em> <em>r <code>*</code> s</em></p>\n",
        )

    def test_code_spans_and_escapes(self):
        self.assertEqual(
            self.markdown("`a*b*<` ``c`d`` `e \\` *f* ``g` h"),
            "<p><code>a*b*&lt;</code> <code>c`d</code> <code>e \\</code> <em>f</em> ``g` h</p>\n",
        )
        self.assertEqual(
            self.markdown("\\<b\\> <i>&amp;</i> \\\\ \\a \\[x](y) \\` \"q\""),
            "<p>&lt;b&gt; &lt;i&gt;&amp;amp;&lt;/i&gt; \\ \\a [x](y) ` \"q\"</p>\n",
        )

    def test_links(self):
        self.assertEqual(
            self.markdown(
                "[a *b* [c] `]` \\]](/d?e='f'&g) [h](javascript:i) [j] (k) [l]() [m](n o) [p [q](r)", "", "*s [t*](u) v* [w [x](y)](z) [*](%C3\u00e9)",
            ),
            '<p><a href="/d?e=&#39;f&#39;&amp;g">a <em>b</em> [c] <code>]</code> ]</a> <a href="#">h</a> [j] (k) [l]() [m](n o) '
            '[p <a href="r">q</a></p>\n<p><em>s <a href="u">t*</a> v</em> <a href="z">w [x](y)</a> <a href="%C3%C3%A9">*</a></p>\n',
        )

    def test_headings_are_data_of_the_page(self):
        self.write("s/layouts/page.html", "{{#each page.headings}}{{ this.level }} {{ this.id }} {{ this.text }}\n{{/each}}")
        self.page("p.md", "# A *b* `<c>` [d](e)", "### F & g {#h}")
        self.page("q.html", "# A")
        self.build()
        self.assertEqual(self.out("p"), "1 a-b-c-d A b &lt;c&gt; d\n3 h F &amp; g\n")
        self.assertEqual(self.out("q"), "")


class Ids(Base):
    def ids(self, name):
        return [part.partition('"')[0] for part in self.out(name).split(' id="')[1:]]

    def test_slugs(self):
        self.page("p.md", "# \u00c9t\u00e9 & Hiver!", "# e\u0301te\u0301 2_3", "# --*--", "# \u0928\u092e\u0938\u094d\u0924\u0947", "# Section")
        self.build()
        self.assertEqual(
            self.ids("p"), ["\u00e9t\u00e9-hiver", "\u00e9t\u00e9-2-3", "section", "\u0928\u092e\u0938\u094d\u0924\u0947", "section-2"]
        )

    def test_ids_are_unique_in_the_site(self):
        self.page("b.md", "# Intro", "# Intro 2", "# Setup")
        self.page("a/c.md", "# Intro", "# Intro", "# Intro")
        self.page("z.md", "# Other {#setup}", "# Last {#intro-3}")
        self.build()
        self.assertEqual(self.ids("a/c"), ["intro", "intro-2", "intro-4"])
        self.assertEqual(self.ids("b"), ["intro-5", "intro-2-2", "setup-2"])
        self.assertEqual(self.ids("z"), ["setup", "intro-3"])

    def test_second_explicit_id_fails_its_page_only(self):
        self.page("a.md", "# A {#x}", "# B")
        self.page("b.md", "# C {#x}", "# B", "# B")
        self.page("c.md", "# B", "[l](page:b#c)")
        self.assertEqual(self.failing(), ["b"])
        self.assertEqual(self.ids("c"), ["b-4"])
        self.assertIn('<a href="b.html#x">l</a>', self.out("c"))

    def test_links_between_pages(self):
        self.page("a.md", "# Start")
        self.page("g/b.md", "# Start", "# Start", "# End {#fin}", "[1](page:a) [2](page:a#start) [3](page:#start) [4](page:g/c) [5](page:#end)")
        self.page("g/c.html", "")
        self.page("h.md", "[1](page:g/b#start) [2](page:g/b#fin) [3](page:g/b#end)")
        self.build()
        self.assertIn(
            '<a href="../a.html">1</a> <a href="../a.html#start">2</a> <a href="#start-2">3</a> <a href="c.html">4</a> <a href="#fin">5</a>',
            self.out("g/b"),
        )
        self.assertIn(
            '<a href="g/b.html#start-2">1</a> <a href="g/b.html#fin">2</a> <a href="g/b.html#fin">3</a>', self.out("h")
        )

    def test_links_without_a_target_fail(self):
        self.page("a.md", "# Start", "# Start")
        self.page("b.md", "[1](page:c)")
        self.page("d.md", "[1](page:a#start-2)")
        self.page("e.md", "- *[1](page:f)*")
        self.page("g.md", "`[1](page:f)` \\[1](page:f)")
        self.assertEqual(self.failing(), ["b", "d", "e"])


class Incremental(Base):
    def setUp(self):
        super().setUp()
        self.write("s/layouts/nav.html", "{{> menu }}{{ content }}")
        self.write("s/layouts/list.html", "{{#each pages}}{{ this.title }} {{/each}}{{ content }}")
        self.write("s/partials/menu.html", "{{#if site.none}}{{> extra }}{{/if}}{{#each site.nav}}<a href='{{ this.url }}'>{{ this.label }}</a>{{/each}}")
        self.write("s/partials/extra.html", "x")
        self.page("a.md", "---", "title: A", "---", "# Start", "# End")
        self.page("b.md", "---", "layout: nav", "---", "# Start", "text")
        self.page("c.md", "---", "layout: list", "---", "[b](page:b#start)")
        self.page("d.html", "<p>d</p>")
        self.assertEqual(len(self.lines()), 4)

    def again(self):
        """Builds, checks that the result is that of a full build, and returns what was printed."""
        lines = self.lines()
        pages = [name for name in ("a", "b", "c", "d", "0") if self.exists(f"s/out/{name}.html")]
        before = {name: self.out(name) for name in pages}
        self.program("rm", "-r", "s/.quarry-cache.json", "s/out")
        self.build()
        self.assertEqual({name: self.out(name) for name in pages}, before)
        return lines

    def test_only_changed_and_missing_pages_are_rendered(self):
        done = self.build()
        self.assertEqual(done.stdout, "4 pages: 0 rendered, 4 kept, 0 removed, 0 failed\n")
        self.page("d.html", "<p>d</p>")
        self.assertEqual(self.lines(), [])
        self.page("d.html", "<p>e</p>")
        self.assertEqual(self.again(), ["rendered d.html"])
        self.program("rm", "s/out/b.html")
        self.assertEqual(self.again(), ["rendered b.html"])

    def test_layouts_and_partials_changed(self):
        self.write("s/partials/extra.html", "y")
        self.assertEqual(self.again(), ["rendered b.html"])
        self.write("s/layouts/list.html", "{{ content }}")
        self.assertEqual(self.again(), ["rendered c.html"])

    def test_site_values_changed(self):
        self.write("s/site.json", '{"other": 1,\n"nav": [{"url": "a.html", "label": "A & B"}], "title": "U"}')
        self.assertEqual(self.again(), [])
        self.write("s/site.json", json.dumps({"nav": [{"url": "a.html", "label": "C"}]}))
        self.assertEqual(self.again(), ["rendered b.html"])
        self.write("s/site.json", json.dumps({"none": 1, "nav": [{"url": "a.html", "label": "C"}]}))
        self.assertEqual(self.again(), ["rendered b.html"])

    def test_other_pages_in_a_list_changed(self):
        self.page("d.html", "---", "title: D", "---", "<p>d</p>")
        self.assertEqual(self.again(), ["rendered c.html", "rendered d.html"])
        self.page("0.md", "---", "title: X", "---", "# Other {#start-2}")
        self.assertEqual(self.again(), ["rendered 0.html", "rendered b.html", "rendered c.html"])

    def test_heading_of_an_earlier_page_changed(self):
        self.page("a.md", "---", "title: A", "---", "# Begin", "# End")
        self.assertEqual(self.again(), ["rendered a.html", "rendered b.html", "rendered c.html"])

    def test_page_is_gone(self):
        self.program("rm", "s/pages/d.html", "s/pages/a.md")
        done = self.build()
        self.assertEqual(
            done.stdout,
            "rendered b.html\nrendered c.html\nremoved a.html\nremoved d.html\n2 pages: 2 rendered, 0 kept, 2 removed, 0 failed\n",
        )
        self.assertFalse(self.exists("s/out/a.html") or self.exists("s/out/d.html"))

    def test_failed_page_keeps_its_output_and_is_built_again(self):
        self.page("c.md", "---", "layout: list", "---", "[b](page:nowhere)")
        self.page("d.html", "---", "broken")
        before = self.out("c"), self.out("d")
        self.assertEqual(self.failing(), ["c", "d"])
        self.assertEqual((self.out("c"), self.out("d")), before)
        self.page("c.md", "---", "layout: list", "---", "[b](page:b#start)")
        self.page("d.html", "<p>d</p>")
        self.assertEqual(self.lines(), ["rendered c.html", "rendered d.html"])

    def test_page_that_failed_and_is_gone_is_removed(self):
        self.page("c.md", "[b](page:nowhere)")
        self.page("d.html", "---", "broken")
        self.failing()
        self.failing()
        self.program("rm", "s/pages/c.md", "s/pages/d.html")
        self.assertEqual(self.lines(), ["removed c.html", "removed d.html"])

    def test_useless_cache(self):
        for content in ("", "{", "[]", "null", '{"pages": 1}'):
            self.write("s/.quarry-cache.json", content)
            self.assertEqual(len(self.lines()), 4, content)


class Existing(Base):
    def test_example(self):
        self.assertEqual(self.program("node", "bin/quarry.js", "build", "example").status, 0)
        self.assertEqual(
            self.read("example/out/guide/start.html"),
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>First steps | Stone works</title>\n</head>\n<body>\n'
            '<nav><a href="index.html">Home</a> <a href="guide/start.html">Guide</a> </nav>\n\n<main>\n'
            "<p>Begin with a <em>soft</em> stone.</p>\n\n</main>\n</body>\n</html>\n",
        )

