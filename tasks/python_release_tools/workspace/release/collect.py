"""Finds the files of a release."""

from pathlib import Path

from .errors import ReleaseError


def matching(root, patterns):
    return {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}


def collect(config, root=Path(".")):
    """Returns the names of the files, sorted, relative to the root, with `/` between folders."""
    found = matching(root, config.include) - matching(root, config.exclude)
    if not found:
        raise ReleaseError("no file matches `include`")
    return sorted(path.relative_to(root).as_posix() for path in found)
