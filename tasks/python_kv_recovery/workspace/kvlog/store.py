"""The store: an index in memory over the values in the segments."""

import os
import typing

from .errors import StoreError
from .faults import crash_point
from .manifest import Manifest, sync_folder
from .record import COMMIT, KEY_BYTES_MAX, PUT, VALUE_BYTES_MAX
from .segment import Writer, records

SEGMENT_BYTES = 1 << 20


class Place(typing.NamedTuple):
    """Place of a value."""

    segment: int
    offset: int
    length: int


class Store:
    def __init__(self, folder, segment_bytes=SEGMENT_BYTES):
        self.folder = folder
        self.segment_bytes = segment_bytes
        self.index = {}
        os.makedirs(folder, exist_ok=True)
        self.manifest = Manifest.load(folder)
        if self.manifest is None:
            self.manifest = Manifest(folder, [], 1)
            self.begin_segment()
        else:
            self.recover()
            self.writer = Writer(self.manifest.path(self.manifest.segments[-1]))

    def recover(self):
        pending = []
        for number in self.manifest.segments:
            path = self.manifest.path(number)
            if not os.path.exists(path):
                raise StoreError(f"missing segment {number}")
            for record in records(path):
                if record.kind != COMMIT:
                    pending.append(record)
                    continue
                for done in pending:
                    self.apply(number, done)
                pending.clear()

    def apply(self, number, record):
        if record.kind == PUT:
            self.index[record.key] = Place(number, record.value_offset, len(record.value))
        else:
            self.index.pop(record.key, None)

    def get(self, key):
        """Returns the value of a key, or `None`."""
        place = self.index.get(key)
        if place is None:
            return None
        with open(self.manifest.path(place.segment), "rb") as file:
            file.seek(place.offset)
            return file.read(place.length)

    def keys(self):
        return sorted(self.index)

    def put(self, key, value):
        self.write([(key, value)])

    def delete(self, key):
        """Returns true if the key existed."""
        if key not in self.index:
            return False
        self.write([(key, None)])
        return True

    def write(self, operations):
        """Writes a transaction of `(key, value)`, where `None` is a delete."""
        for key, value in operations:
            if not 0 < len(key) <= KEY_BYTES_MAX or len(value or b"") > VALUE_BYTES_MAX:
                raise StoreError("the key or the value is too long")
        if self.writer.size >= self.segment_bytes:
            self.writer.close()
            self.begin_segment()
        number = self.manifest.segments[-1]
        offsets = self.writer.append(operations)
        for (key, value), offset in zip(operations, offsets):
            if value is None:
                self.index.pop(key, None)
            else:
                self.index[key] = Place(number, offset, len(value))

    def begin_segment(self):
        number = self.manifest.take_number()
        self.writer = Writer(self.manifest.path(number))
        sync_folder(self.folder)
        crash_point("roll:created")
        self.manifest.segments.append(number)
        self.manifest.save()

    def compact(self, first, last):
        """Replaces a run of sealed segments by one. Returns its number."""
        run = self.run(first, last)
        latest = {}
        for old in run:
            for record in records(self.manifest.path(old)):
                if record.kind != COMMIT:
                    latest[record.key] = record.value if record.kind == PUT else None
        operations = [(key, value) for key, value in latest.items() if value is not None]

        number = self.manifest.take_number()
        writer = Writer(self.manifest.path(number))
        offsets = writer.append(operations)
        writer.close()
        sync_folder(self.folder)
        crash_point("compact:written")

        place = self.manifest.segments.index(run[0])
        self.manifest.segments[place : place + len(run)] = [number]
        self.manifest.save()
        crash_point("compact:published")

        for (key, value), offset in zip(operations, offsets):
            self.index[key] = Place(number, offset, len(value))
        for old in run:
            os.remove(self.manifest.path(old))
        return number

    def run(self, first, last):
        segments = self.manifest.segments
        for number in (first, last):
            if number not in segments:
                raise StoreError(f"there is no segment {number}")
            if number == segments[-1]:
                raise StoreError(f"segment {number} is active")
        run = segments[segments.index(first) : segments.index(last) + 1]
        if not run:
            raise StoreError(f"segment {first} is newer than segment {last}")
        return run

    def close(self):
        self.writer.close()
