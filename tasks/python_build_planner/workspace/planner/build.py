"""Plans the build of a selection."""

import hashlib
import json


def fingerprint(release, toolchain, required):
    """Returns the fingerprint of a build. `required` has a digest for each required package, by package."""
    content = [release.package, str(release.version), release.source, toolchain, sorted(required.items())]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def plan(selection, project, built, jobs):
    """Returns the plan as a JSON object."""
    schedule = []
    time = 0
    for package, release in sorted(selection.items()):
        entry = {"package": package, "worker": 1, "start": time, "end": time + release.cost}
        time += release.cost
        schedule.append(entry)
    return {"actions": {package: "build" for package in sorted(selection)}, "schedule": schedule, "end": time}
