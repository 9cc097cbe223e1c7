"""Encoding of records (docs/FORMAT.md)."""

import struct
import typing
import zlib

PUT = 1
DELETE = 2
COMMIT = 3

CRC = struct.Struct(">I")
HEAD = struct.Struct(">BHI")
COUNT = struct.Struct(">I")

KEY_BYTES_MAX = 0xFFFF
VALUE_BYTES_MAX = 0xFFFFFFFF


class Record(typing.NamedTuple):
    kind: int
    key: bytes
    value: bytes
    # Position in the segment.
    offset: int
    end: int

    @property
    def value_offset(self):
        return self.end - len(self.value)


def encoded(kind, key=b"", value=b""):
    body = HEAD.pack(kind, len(key), len(value)) + key + value
    return CRC.pack(zlib.crc32(body)) + body


def encoded_commit(count):
    return encoded(COMMIT, value=COUNT.pack(count))


def decoded(data, offset):
    """Returns the record at an offset, or `None` if there is no good record."""
    start = offset + CRC.size
    if start + HEAD.size > len(data):
        return None
    kind, key_length, value_length = HEAD.unpack_from(data, start)
    key_start = start + HEAD.size
    end = key_start + key_length + value_length
    if end > len(data) or kind not in (PUT, DELETE, COMMIT):
        return None
    (crc,) = CRC.unpack_from(data, offset)
    if crc != zlib.crc32(data[start:end]):
        return None
    key_end = key_start + key_length
    return Record(kind, data[key_start:key_end], data[key_end:end], offset, end)
