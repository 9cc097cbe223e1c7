"""Lists the occurrences of a period."""

from datetime import datetime, time

from .events import occurrences


def format_time(utc, zone):
    offset = zone.offset_at(utc)
    minutes = int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    hours, minutes = divmod(abs(minutes), 60)
    return f"{utc + offset:%Y-%m-%dT%H:%M}{sign}{hours:02}:{minutes:02}"


def is_in(occurrence, begin, end):
    if occurrence.start == occurrence.end:
        return begin <= occurrence.start < end
    return occurrence.start < end and occurrence.end > begin


def listing(events, zone, first, last):
    """Returns the lines for the days from `first` to `last`, the latter not included."""
    begin, end = (zone.to_utc(datetime.combine(day, time())) for day in (first, last))
    found = [each for event in events for each in occurrences(event) if is_in(each, begin, end)]
    found.sort(key=lambda each: (each.start, each.id))
    return [f"{format_time(each.start, zone)} {format_time(each.end, zone)} {each.id} {each.title}" for each in found]
