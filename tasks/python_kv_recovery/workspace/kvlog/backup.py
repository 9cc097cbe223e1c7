"""Backups: reads the files of a store without opening it."""

import glob
import json
import os

from .errors import StoreError
from .faults import hold_point
from .manifest import Manifest
from .record import COMMIT, PUT
from .segment import records


def backup(folder, target):
    if Manifest.load(folder) is None:
        raise StoreError(f"{folder} is no store")
    hold_point("backup:listed")
    values = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "seg-*.log"))):
        for record in records(path):
            if record.kind == PUT:
                values[record.key] = record.value
            elif record.kind != COMMIT:
                values.pop(record.key, None)
    with open(target, "w", encoding="utf-8") as file:
        for key in sorted(values):
            entry = {"key": key.decode("utf-8"), "value": values[key].decode("utf-8")}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
