"""Fault injection (README.md)."""

import os
import sys

STATUS = 70

held = set()


def crash_point(name):
    if os.environ.get("KV_CRASH") == name:
        os._exit(STATUS)


def hold_point(name):
    """Waits for a line on the standard input, if asked to, when the point is reached for the first time."""
    if os.environ.get("KV_HOLD") == name and name not in held:
        held.add(name)
        print(f"holding {name}", flush=True)
        sys.stdin.readline()
