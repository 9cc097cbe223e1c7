"""Imported by a program when its tests begin."""

import os

try:
    os.write(int(os.environ["SCICODE_MARK"]), b"tests\n")
except Exception:
    pass
