"""Reading and writing of segments."""

import os

from .record import DELETE, PUT, decoded, encoded, encoded_commit


def records(path):
    """Yields the records of a segment, up to the first bad one."""
    with open(path, "rb") as file:
        data = file.read()
    offset = 0
    while offset < len(data):
        record = decoded(data, offset)
        if record is None:
            break
        yield record
        offset = record.end


class Writer:
    """Appends transactions to a segment."""

    def __init__(self, path):
        self.file = open(path, "ab")
        self.size = self.file.tell()

    def append(self, operations):
        """Appends a transaction of `(key, value)`, where `None` is a delete. Returns the offsets of the values."""
        data = bytearray()
        offsets = []
        for key, value in operations:
            if value is None:
                data += encoded(DELETE, key)
                offsets.append(None)
            else:
                data += encoded(PUT, key, value)
                offsets.append(self.size + len(data) - len(value))
        data += encoded_commit(len(operations))
        self.file.write(data)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.size += len(data)
        return offsets

    def close(self):
        self.file.close()
