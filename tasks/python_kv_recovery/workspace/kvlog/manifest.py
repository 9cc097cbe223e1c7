"""The list of segments of a store."""

import json
import os

from .errors import StoreError
from .faults import crash_point


class Manifest:
    def __init__(self, folder, segments, next_number):
        self.folder = folder
        self.segments = segments
        self.next_number = next_number

    @classmethod
    def load(cls, folder):
        """Returns the manifest of a store, or `None` if the folder has none."""
        try:
            with open(os.path.join(folder, "MANIFEST"), encoding="utf-8") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError:
            raise StoreError("the manifest is no JSON") from None
        return cls(folder, content["segments"], content["next"])

    def path(self, number):
        return os.path.join(self.folder, f"seg-{number}.log")

    def take_number(self):
        self.next_number += 1
        return self.next_number - 1

    def save(self):
        temporary = os.path.join(self.folder, "MANIFEST.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"next": self.next_number, "segments": self.segments}, file)
            file.flush()
            os.fsync(file.fileno())
        crash_point("manifest:written")
        os.replace(temporary, os.path.join(self.folder, "MANIFEST"))
        sync_folder(self.folder)


def sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
