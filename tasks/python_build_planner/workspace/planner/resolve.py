"""Chooses a release of each required package."""


class Conflict(Exception):
    """There is no solution."""


def resolve(project, catalog, lock):
    """Returns the selected releases by package."""
    selection = {}
    ranges = [(package, project.overrides.get(package, wanted)) for package, wanted in project.requires.items()]
    while ranges:
        package, wanted = ranges.pop(0)
        if package in selection:
            if not wanted.matches(selection[package].version):
                raise Conflict
            continue
        release = next((release for release in catalog.get(package, []) if wanted.matches(release.version)), None)
        if release is None:
            raise Conflict
        selection[package] = release
        ranges += release.requires.items()
    return selection
