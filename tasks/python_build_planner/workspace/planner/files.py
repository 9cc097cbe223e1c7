"""Reads the files that docs/FILES.md describes."""

import dataclasses
import json

from .errors import UsageError
from .version import Range, Version


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    package: str
    version: Version
    # Ranges by package, in the release's order.
    requires: dict
    tools: dict
    constrains: dict
    is_yanked: bool
    source: str
    interface: str | None
    cost: int
    memory: int


@dataclasses.dataclass(frozen=True)
class Running:
    """A build that runs already."""

    fingerprint: str
    worker: int
    left: int


@dataclasses.dataclass(frozen=True)
class State:
    # Fingerprints of what is built, by package.
    built: dict
    # Builds that run already, by package.
    running: dict


@dataclasses.dataclass(frozen=True, eq=False)
class Project:
    toolchain: str
    # Ranges by package, in the project's order.
    requires: dict
    overrides: dict


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path}: the file is no JSON") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: the file is no JSON object")
    return content


def ranges(content):
    return {package: Range(text) for package, text in content.items()}


def checked(parse):
    """Turns errors in the content of a file into messages for users."""

    def load(path):
        content = read(path)
        try:
            return parse(content)
        except KeyError as error:
            raise UsageError(f"{path}: {error} is missing") from None
        except (AttributeError, TypeError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None

    return load


@checked
def load_project(content):
    return Project(content["toolchain"], ranges(content["requires"]), ranges(content.get("overrides", {})))


@checked
def load_catalog(content):
    """Returns the releases by package, newest first."""
    catalog = {}
    for package, releases in content["packages"].items():
        found = [
            Release(
                package,
                Version(release["version"]),
                ranges(release.get("requires", {})),
                ranges(release.get("tools", {})),
                ranges(release.get("constrains", {})),
                release.get("yanked", False),
                release["source"],
                release.get("interface"),
                release["cost"],
                release.get("memory", 0),
            )
            for release in releases
        ]
        catalog[package] = sorted(found, key=lambda release: release.version, reverse=True)
    return catalog


@checked
def load_lock(content):
    """Returns the locked versions by package."""
    return {package: Version(text) for package, text in content["packages"].items()}


@checked
def load_state(content):
    built = {package: entry["fingerprint"] for package, entry in content["built"].items()}
    running = {
        package: Running(entry["fingerprint"], entry["worker"], entry["left"])
        for package, entry in content.get("running", {}).items()
    }
    return State(built, running)
