"""Command line."""

import argparse
import sys

from .errors import AgendaError
from .events import load_events, parse_date
from .listing import listing
from .zones import find_zone, load_zones


def parser():
    top = argparse.ArgumentParser(prog="agenda", description="Lists the events of a team.")
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("list")
    command.add_argument("events")
    command.add_argument("--zone", required=True)
    command.add_argument("--from", dest="first", required=True)
    command.add_argument("--to", dest="last", required=True)
    return top


def main():
    options = parser().parse_args()
    try:
        zones = load_zones()
        zone = find_zone(zones, options.zone)
        events = load_events(options.events, zones)
        lines = listing(events, zone, parse_date(options.first), parse_date(options.last))
    except AgendaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
