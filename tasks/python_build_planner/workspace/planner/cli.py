"""Command line."""

import argparse
import json
import sys

from .build import plan
from .errors import UsageError
from .files import load_catalog, load_lock, load_project, load_state
from .resolve import Conflict, resolve
from .version import Range

PROGRAM = "plan.py"


def main(argv):
    options = arguments(argv)
    try:
        return options.run(options)
    except UsageError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2


def arguments(argv):
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Chooses versions of packages and plans their build.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("versions", help="print the versions that a range matches")
    for name in ("catalog", "package", "range"):
        command.add_argument(name, metavar=name.upper())
    command.set_defaults(run=run_versions)
    for name, run in (("resolve", run_resolve), ("build", run_build)):
        command = commands.add_parser(name)
        command.add_argument("project", metavar="PROJECT")
        command.add_argument("catalog", metavar="CATALOG")
        command.add_argument("--lock", metavar="FILE")
        command.add_argument("--upgrade", action="append", default=[], metavar="PACKAGE")
        command.set_defaults(run=run)
    command.add_argument("--state", metavar="FILE")
    command.add_argument("--jobs", type=positive, default=1, metavar="N")
    command.add_argument("--memory", type=positive, metavar="M")
    return parser.parse_args(argv)


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def run_versions(options):
    try:
        wanted = Range(options.range)
    except ValueError as error:
        raise UsageError(error) from None
    for release in load_catalog(options.catalog).get(options.package, []):
        if wanted.matches(release.version):
            print(release.version)
    return 0


def run_resolve(options):
    _, selection = resolved(options)
    if selection is None:
        return 1
    show({"packages": {package: str(release.version) for package, release in sorted(selection.items())}})
    return 0


def run_build(options):
    project, selection = resolved(options)
    if selection is None:
        return 1
    built = load_state(options.state).built if options.state else {}
    show(plan(selection, project, built, options.jobs))
    return 0


def resolved(options):
    """Returns the project and the selection. Prints the conflict if there is no selection."""
    project = load_project(options.project)
    catalog = load_catalog(options.catalog)
    lock = load_lock(options.lock) if options.lock else {}
    for package in options.upgrade:
        lock.pop(package, None)
    try:
        return project, resolve(project, catalog, lock)
    except Conflict:
        show({"conflict": {}})
        return project, None


def show(result):
    print(json.dumps(result, ensure_ascii=False, indent=2))
