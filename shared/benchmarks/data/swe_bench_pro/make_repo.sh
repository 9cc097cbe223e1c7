#!/bin/bash
# Builds the repository of the demo instances with fixed dates, so that its commits always have the same ids.
# usage: make_repo.sh FOLDER
set -eu
mkdir -p "$1"
cd "$1"
git init -q -b main .
git config core.autocrlf false
git config user.name "Demo"
git config user.email "demo@example.invalid"

put() {
    mkdir -p "$(dirname "$1")"
    cat > "$1"
}
# Inserts text before the last lines of a file: their number is the second argument.
insert() {
    { head -n "-$2" "$1"; cat; tail -n "$2" "$1"; } > "$1.new"
    mv "$1.new" "$1"
}
day=0
commit() {
    day=$((day + 1))
    export GIT_AUTHOR_DATE="2025-03-0${day}T12:00:00Z" GIT_COMMITTER_DATE="2025-03-0${day}T12:00:00Z"
    git add --all
    git -c commit.gpgsign=false commit -q -m "$1"
}

put README.md <<'TEXT'
# timesheet

Reads the durations of a work log, such as `1h 30m`, and adds them up.

Run the tests with `python -m unittest discover -s tests`.
TEXT
put timesheet/__init__.py <<'TEXT'
"""Work logs with durations."""

from timesheet.durations import parse
from timesheet.log import Log
TEXT
put timesheet/durations.py <<'TEXT'
"""Durations written as text."""

import re

PART = re.compile(r"(\d+)([hm])")


def parse(text):
    """Returns the minutes of a duration such as `1h 30m`."""
    minutes = 0
    for number, unit in PART.findall(text):
        minutes += int(number)
    return minutes
TEXT
put timesheet/log.py <<'TEXT'
"""Work logs."""

from timesheet.durations import parse


class Log:
    """Durations by project."""

    def __init__(self):
        self.entries = []

    def add(self, project, duration):
        """Adds a duration such as `45m` to a project."""
        self.entries.append((project, parse(duration)))

    def total(self, project=None):
        """Returns the minutes of a project, or those of all."""
        return sum(minutes for name, minutes in self.entries if project is None or name == project)
TEXT
put tests/test_durations.py <<'TEXT'
import unittest

from timesheet import parse


class ParseTest(unittest.TestCase):
    def test_minutes(self):
        self.assertEqual(parse("45m"), 45)

    def test_nothing(self):
        self.assertEqual(parse(""), 0)


if __name__ == "__main__":
    unittest.main()
TEXT
put tests/test_log.py <<'TEXT'
import unittest

from timesheet import Log


class LogTest(unittest.TestCase):
    def setUp(self):
        self.log = Log()
        self.log.add("garden", "20m")
        self.log.add("kitchen", "5m")
        self.log.add("garden", "10m")

    def test_total_of_a_project(self):
        self.assertEqual(self.log.total("garden"), 30)

    def test_total_of_all(self):
        self.assertEqual(self.log.total(), 35)

    def test_unknown_project(self):
        self.assertEqual(self.log.total("cellar"), 0)
TEXT
commit "Read durations and add them up"

put timesheet/durations.py <<'TEXT'
"""Durations written as text."""

import re

PART = re.compile(r"(\d+)([hm])")
MINUTES = {"h": 60, "m": 1}


def parse(text):
    """Returns the minutes of a duration such as `1h 30m`."""
    minutes = 0
    for number, unit in PART.findall(text):
        minutes += int(number) * MINUTES[unit]
    return minutes
TEXT
insert tests/test_durations.py 4 <<'TEXT'

    def test_hours(self):
        self.assertEqual(parse("2h"), 120)

    def test_hours_and_minutes(self):
        self.assertEqual(parse("1h 30m"), 90)
TEXT
commit "Count an hour as sixty minutes"

put timesheet/__init__.py <<'TEXT'
"""Work logs with durations."""

from timesheet.durations import parse
from timesheet.log import Log
from timesheet.report import report
TEXT
put timesheet/report.py <<'TEXT'
"""Reports about work logs."""


def report(log):
    """Returns a line `PROJECT: MINUTES` for each project, those with most minutes first."""
    totals = {}
    for project, minutes in log.entries:
        totals[project] = totals.get(project, 0) + minutes
    ordered = sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))
    return "\n".join(f"{project}: {minutes}" for project, minutes in ordered)
TEXT
put tests/test_report.py <<'TEXT'
import unittest

from timesheet import Log, report


class ReportTest(unittest.TestCase):
    def test_most_minutes_first(self):
        log = Log()
        log.add("garden", "20m")
        log.add("kitchen", "1h")
        log.add("garden", "10m")
        self.assertEqual(report(log), "kitchen: 60\ngarden: 30")

    def test_names_order_equal_minutes(self):
        log = Log()
        log.add("b", "5m")
        log.add("a", "5m")
        self.assertEqual(report(log), "a: 5\nb: 5")

    def test_empty_log(self):
        self.assertEqual(report(Log()), "")
TEXT
commit "Report the minutes of each project"

put timesheet/log.py <<'TEXT'
"""Work logs."""

from timesheet.durations import parse


class Log:
    """Durations by project."""

    def __init__(self):
        self.entries = []

    def add(self, project, duration):
        """Adds a duration such as `45m` to a project."""
        minutes = parse(duration)
        if minutes == 0:
            raise ValueError(f"no duration: {duration!r}")
        self.entries.append((project.strip().lower(), minutes))

    def total(self, project=None):
        """Returns the minutes of a project, or those of all."""
        wanted = project.strip().lower() if project is not None else None
        return sum(minutes for name, minutes in self.entries if wanted is None or name == wanted)
TEXT
cat >> tests/test_log.py <<'TEXT'

    def test_case_and_space_of_names(self):
        self.log.add(" Garden ", "1h")
        self.assertEqual(self.log.total("GARDEN"), 90)

    def test_text_without_a_duration(self):
        with self.assertRaises(ValueError):
            self.log.add("garden", "soon")
        self.assertEqual(self.log.total(), 35)
TEXT
commit "Compare projects without case and refuse entries without a duration"
