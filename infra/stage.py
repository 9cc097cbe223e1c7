#!/usr/bin/env python3
"""Prints the stack name and the region of a stage in samconfig.toml."""

import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: stage.py STAGE")
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    try:
        parameters = config[sys.argv[1]]["global"]["parameters"]
        print(parameters["stack_name"], parameters["region"])
    except KeyError as missing:
        sys.exit(f"samconfig.toml: stage {sys.argv[1]} has no {missing}")


if __name__ == "__main__":
    main()
