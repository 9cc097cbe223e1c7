"""A small tree of HTML elements."""

from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children = []

    def __getitem__(self, name):
        return self.attributes.get(name)

    def __contains__(self, name):
        return name in self.attributes

    @property
    def elements(self):
        return [child for child in self.children if isinstance(child, Element)]

    def text(self):
        pieces = [child.text() if isinstance(child, Element) else child for child in self.children]
        return " ".join("".join(pieces).split())

    def all(self, *tags):
        found = []
        for child in self.elements:
            if not tags or child.tag in tags:
                found.append(child)
            found += child.all(*tags)
        return found

    def id(self, name):
        return next((element for element in self.all() if element["id"] == name), None)

    def inside(self, tag):
        above = self.parent
        while above:
            if above.tag == tag:
                return above
            above = above.parent
        return None


class Parser(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.current = Element("#root", {}, None)

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs}, self.current)
        self.current.children.append(element)
        if tag not in VOID:
            self.current = element

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID and self.current.tag == tag:
            self.current = self.current.parent

    def handle_endtag(self, tag):
        above = self.current
        while above and above.tag != tag:
            above = above.parent
        if above and above.parent:
            self.current = above.parent

    def handle_data(self, data):
        self.current.children.append(data)


def parse(text):
    parser = Parser()
    parser.feed(text)
    parser.close()
    return parser.root
