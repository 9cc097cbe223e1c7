"""Versions and ranges (docs/VERSIONS.md)."""

import functools
import re

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z]+(?:\.[0-9A-Za-z]+)*))?", re.ASCII)
COMPARATOR = re.compile(r"(=|!=|<=|>=|<|>|\^|~)?(\d+(?:\.\d+(?:\.\d+(?:-[0-9A-Za-z.]+)?)?)?)", re.ASCII)


@functools.total_ordering
class Version:
    __slots__ = ("text", "numbers", "pre", "_key")

    def __init__(self, text):
        match = VERSION.fullmatch(text)
        if not match:
            raise ValueError(f"invalid version `{text}`")
        self.text = text
        self.numbers = tuple(map(int, match.group(1, 2, 3)))
        self.pre = tuple(match[4].split(".")) if match[4] else ()
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        self._key = (self.numbers, not self.pre, parts)

    def __eq__(self, other):
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other):
        return self._key < other._key

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Version({self.text!r})"


class Range:
    """A range of versions. `text` is the range as written."""

    def __init__(self, text):
        self.text = text
        self.alternatives = [Alternative(part) for part in text.split("||")]

    def matches(self, version):
        return any(alternative.matches(version) for alternative in self.alternatives)

    def __repr__(self):
        return f"Range({self.text!r})"


class Alternative:
    def __init__(self, text):
        self.tests = []
        self.pre_release_of = set()
        if not text.split():
            raise ValueError("empty range")
        for part in text.split():
            self.add(part)

    def add(self, text):
        if text == "*":
            return
        match = COMPARATOR.fullmatch(text)
        if not match:
            raise ValueError(f"invalid comparator `{text}`")
        sign = match[1] or "="
        numbers = match[2]
        numbers += ".0" * max(0, 2 - numbers.split("-")[0].count("."))
        bound = Version(numbers)
        if bound.pre:
            self.pre_release_of.add(bound.numbers)
        self.tests.append((sign, bound, self.upper(sign, bound)))

    @staticmethod
    def upper(sign, bound):
        """Returns the first version above a `^` or `~` range."""
        major, minor, patch = bound.numbers
        if sign == "~" or (sign == "^" and major == 0 and minor > 0):
            return Version(f"{major}.{minor + 1}.0")
        if sign == "^":
            return Version(f"{major + 1}.0.0" if major else f"0.0.{patch + 1}")
        return None

    def matches(self, version):
        if version.pre and version.numbers not in self.pre_release_of:
            return False
        return all(self.passes(version, *test) for test in self.tests)

    @staticmethod
    def passes(version, sign, bound, upper):
        if sign == "=":
            return version == bound
        if sign == "!=":
            return version != bound
        if sign == "<":
            return version < bound
        if sign == "<=":
            return version <= bound
        if sign == ">":
            return version > bound
        if sign == ">=":
            return version >= bound
        return bound <= version < upper
