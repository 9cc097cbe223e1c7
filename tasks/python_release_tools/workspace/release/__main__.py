"""Command line."""

import argparse
import sys
from pathlib import Path

from . import config, manifest
from .collect import collect
from .errors import ReleaseError


def build(path, folder):
    settings = config.load(path)
    names = collect(settings)
    manifest.write(folder, manifest.body(settings, names))
    return f"released {settings.name} {settings.version}: {len(names)} files"


def main():
    top = argparse.ArgumentParser(prog="release", description="Builds the manifest of a release.")
    command = top.add_subparsers(dest="command", required=True).add_parser("build")
    command.add_argument("config")
    command.add_argument("--out", type=Path, default=Path("out"))
    options = top.parse_args()
    try:
        message = build(options.config, options.out)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
