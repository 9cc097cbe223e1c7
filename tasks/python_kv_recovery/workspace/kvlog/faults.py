"""Fault injection (README.md)."""

import os

STATUS = 70


def crash_point(name):
    if os.environ.get("KV_CRASH") == name:
        os._exit(STATUS)
