"""Time zones from `data/zones.txt`. All times are `datetime` objects without `tzinfo`: UTC or local, as the names say."""

import calendar
import re
from bisect import bisect_right
from datetime import datetime, timedelta
from pathlib import Path

from .errors import AgendaError

ZONES_FILE = Path(__file__).parent.parent / "data" / "zones.txt"
YEAR_LAST = 2100
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Zone:
    """A time zone: an offset at the beginning, and transitions, each a UTC time and the offset from then on."""

    def __init__(self, name, first_offset, transitions):
        self.name = name
        self._times = [time for time, _ in transitions]
        self._offsets = [first_offset, *(offset for _, offset in transitions)]

    def offset_at(self, utc):
        """Returns the offset from UTC at a UTC time."""
        return self._offsets[bisect_right(self._times, utc)]

    def to_local(self, utc):
        return utc + self.offset_at(utc)

    def to_utc(self, local):
        """Converts a local time. Correct only if no transition is near."""
        return local - self.offset_at(local - self._offsets[0])

    def transitions_between(self, first, last):
        """Returns the transitions in a period of UTC: time, offset before, offset after."""
        begin, end = bisect_right(self._times, first), bisect_right(self._times, last)
        return [(self._times[index], self._offsets[index], self._offsets[index + 1]) for index in range(begin, end)]


class ZoneParser:
    """Collects the lines of one zone."""

    def __init__(self, name):
        self.name = name
        self.spans = []

    def offset(self, words):
        until = datetime.fromisoformat(words[2]) if len(words) > 1 else None
        self.spans.append((parse_offset(words[0]), until, []))

    def dst(self, words):
        first, _, last = words[0].partition("-")
        years = range(int(first), (int(last) if last else YEAR_LAST) + 1)
        self.spans[-1][2].append((years, parse_offset(words[1]), words[2], words[3]))

    def zone(self):
        changes, begin = [], datetime.min
        for standard, until, rules in self.spans:
            if begin != datetime.min:
                changes.append((begin, standard))
            end = datetime.max if until is None else until - standard
            for years, saving, start, stop in rules:
                for year in years:
                    changes.append((change_time(start, year, standard), standard + saving))
                    stop_year = year + (month_of(stop) < month_of(start))
                    changes.append((change_time(stop, stop_year, standard + saving), standard))
            begin = end
        changes.sort()
        return Zone(self.name, self.spans[0][0], changes)


def parse_offset(text):
    sign = -1 if text[0] == "-" else 1
    hours, minutes = text[1:].split(":")
    return sign * timedelta(hours=int(hours), minutes=int(minutes))


def month_of(rule):
    return MONTHS.index(rule.partition("@")[0][-3:]) + 1


def change_time(rule, year, offset_before):
    """Returns the UTC time of a change in a year."""
    day, _, time = rule.partition("@")
    month = month_of(rule)
    if day.startswith("last-"):
        weekday, number = WEEKDAYS.index(day[5:8]), calendar.monthrange(year, month)[1]
        number -= (calendar.weekday(year, month, number) - weekday) % 7
    else:
        match = re.fullmatch(r"(\w{3})>=(\d+)-\w{3}", day)
        weekday, number = WEEKDAYS.index(match[1]), int(match[2])
        number += (weekday - calendar.weekday(year, month, number)) % 7
    hours, minutes = time.removesuffix("u").split(":")
    at = datetime(year, month, number, int(hours), int(minutes))
    return at if time.endswith("u") else at - offset_before


def load_zones():
    """Returns all zones by name."""
    parsers = {}
    current = None
    for line in ZONES_FILE.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "zone":
            current = parsers[words[1]] = ZoneParser(words[1])
        else:
            getattr(current, words[0])(words[1:])
    return {name: parser.zone() for name, parser in parsers.items()}


def find_zone(zones, name):
    try:
        return zones[name]
    except (KeyError, TypeError):
        raise AgendaError(f"unknown zone `{name}`") from None
