"""Reads events."""

import json
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from .errors import AgendaError
from .zones import find_zone

DURATION = re.compile(r"PT(?=\d)(?:(\d+)H)?(?:(\d+)M)?")
REQUIRED = ("id", "title", "zone", "start", "duration")


@dataclass(frozen=True)
class Event:
    id: str
    title: str
    zone: object
    start: datetime
    duration: timedelta


@dataclass(frozen=True)
class Occurrence:
    """An event at a time, in UTC."""

    id: str
    title: str
    start: datetime
    end: datetime


def parse_local(text):
    if not isinstance(text, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text):
        raise AgendaError(f"`{text}` is not a local time")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise AgendaError(f"`{text}` is not a local time") from None


def parse_date(text):
    if not isinstance(text, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise AgendaError(f"`{text}` is not a date")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise AgendaError(f"`{text}` is not a date") from None


def parse_duration(text):
    match = DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise AgendaError(f"`{text}` is not a duration")
    return timedelta(hours=int(match[1] or 0), minutes=int(match[2] or 0))


def parse_event(fields, zones):
    for name in REQUIRED:
        if name not in fields:
            raise AgendaError(f"field `{name}` is missing")
    unknown = sorted(set(fields) - set(REQUIRED))
    if unknown:
        raise AgendaError(f"unknown field `{unknown[0]}`")
    return Event(
        id=fields["id"],
        title=fields["title"],
        zone=find_zone(zones, fields["zone"]),
        start=parse_local(fields["start"]),
        duration=parse_duration(fields["duration"]),
    )


def load_events(path, zones):
    """Reads a file of events."""
    try:
        with open(path, encoding="utf-8") as file:
            records = json.load(file)["events"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgendaError(f"{path} can't be read: {error}") from None
    events, ids = [], set()
    for record in records:
        name = record.get("id")
        try:
            event = parse_event(record, zones)
            if name in ids:
                raise AgendaError("the id is used twice")
        except AgendaError as error:
            raise AgendaError(f"event {name}: {error}") from None
        ids.add(name)
        events.append(event)
    return events


def occurrences(event):
    """Returns the occurrences of an event."""
    start = event.zone.to_utc(event.start)
    return [Occurrence(event.id, event.title, start, start + event.duration)]
