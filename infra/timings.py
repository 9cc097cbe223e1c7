#!/usr/bin/env python3
"""Builds the command from scratch, and prints the duration and the ten crates that took longest.

The build uses its own target folder, which is emptied first. A crate's time is the sum over its units: build script,
metadata and code.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "timings"
CRATES_SHOWN = 10


def crates(report):
    """Returns the seconds by crate, from the HTML report that cargo writes."""
    found = re.search(r"const UNIT_DATA = (\[.*?\]);\s*\n", report, re.S)
    if not found:
        sys.exit("cargo's report has no UNIT_DATA: this version of cargo writes another format")
    seconds = {}
    for unit in json.loads(found.group(1)):
        seconds[unit["name"]] = seconds.get(unit["name"], 0.0) + unit["duration"]
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="dev", help="profile of Cargo.toml (default: dev)")
    options = parser.parse_args()
    shutil.rmtree(TARGET, ignore_errors=True)
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "build", "--locked", "--package", "bench-cli", "--profile", options.profile]
    command += ["--timings", "--target-dir", str(TARGET)]
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True)
    total = time.monotonic() - start
    seconds = crates((TARGET / "cargo-timings" / "cargo-timing.html").read_text())
    all_units = sum(seconds.values())
    print(f"{total:.0f} s on {os.cpu_count()} processors, {all_units:.0f} s of work in {len(seconds)} crates")
    for name in sorted(seconds, key=seconds.get, reverse=True)[:CRATES_SHOWN]:
        print(f"{seconds[name]:8.1f} s  {100 * seconds[name] / all_units:4.1f}%  {name}")
    shutil.rmtree(TARGET, ignore_errors=True)


if __name__ == "__main__":
    main()
