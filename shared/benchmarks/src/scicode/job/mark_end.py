"""Imported by a program when its tests are complete."""

import os

try:
    os.write(int(os.environ["SCICODE_MARK"]), b"end\n")
except Exception:
    pass
