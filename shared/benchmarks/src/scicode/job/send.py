"""Sends values of a program to the process that compares them, as ASCII JSON preceded by its length in 8 bytes.

A value is a list of its kind and its parts. Values without a counterpart, such as objects of the program's own classes,
are sent as the name of their type and can't be compared with anything.
"""

import base64
import json
import os
import sys

import numpy

DEPTH_MAX = 100
NAME_CHARS_MAX = 100
# Kinds of numpy types that are plain data: numbers, booleans, strings, bytes, times.
PLAIN_KINDS = "biufcSUmM"

_descriptor = int(os.environ["SCICODE_VALUES"])


def _bytes(content):
    return base64.b64encode(content).decode("ascii")


def _array(value, depth):
    if value.dtype.kind in PLAIN_KINDS:
        return ["array", value.dtype.str, list(value.shape), _bytes(numpy.ascontiguousarray(value).tobytes())]
    if value.dtype.kind == "O":
        return ["objects", list(value.shape), [_encoded(part, depth + 1) for part in value.ravel().tolist()]]
    return _opaque(value)


def _opaque(value):
    return ["opaque", type(value).__name__[:NAME_CHARS_MAX]]


def _sparse(value, depth):
    module = sys.modules["scipy.sparse"]
    is_array = isinstance(value, getattr(module, "sparray", ()))
    parts = [value.format, is_array, list(value.shape)]
    if value.format in ("csr", "csc", "bsr"):
        arrays = [value.data, value.indices, value.indptr]
    else:
        entries = value.tocoo()
        arrays = [entries.data, entries.row, entries.col]
    return ["sparse", *parts, *(_array(numpy.asarray(part), depth) for part in arrays)]


def _of_sympy(value, sympy):
    if isinstance(value, sympy.Symbol):
        return ["symbol", value.name]
    for kind in ("Integer", "Rational", "Float"):
        if isinstance(value, getattr(sympy, kind)):
            return ["sympy", kind, str(value), getattr(value, "_prec", 0)]
    return _opaque(value)


def _encoded(value, depth=0):
    if depth > DEPTH_MAX:
        return _opaque(value)
    if value is None:
        return ["none"]
    if isinstance(value, numpy.generic):
        return ["scalar", *_array(numpy.asarray(value), depth)]
    if isinstance(value, bool):
        return ["bool", bool(value)]
    if isinstance(value, int):
        return ["int", hex(int(value))]
    if isinstance(value, float):
        return ["float", float(value).hex()]
    if isinstance(value, complex):
        value = complex(value)
        return ["complex", value.real.hex(), value.imag.hex()]
    if isinstance(value, str):
        return ["str", str.__str__(value)]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", _bytes(bytes(value))]
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(value):
        # One of its formats is also a dictionary.
        return _sparse(value, depth)
    for kind, base in (("list", list), ("tuple", tuple), ("set", set), ("frozenset", frozenset)):
        if isinstance(value, base):
            return [kind, [_encoded(part, depth + 1) for part in base.__iter__(value)]]
    if isinstance(value, dict):
        return ["dict", [[_encoded(key, depth + 1), _encoded(part, depth + 1)] for key, part in dict.items(value)]]
    if isinstance(value, range):
        return ["range", [hex(part) for part in (value.start, value.stop, value.step)]]
    if isinstance(value, numpy.ma.MaskedArray):
        return ["masked", _array(value.data, depth), _array(numpy.ma.getmaskarray(value), depth)]
    if isinstance(value, numpy.matrix):
        return ["matrix", *_array(numpy.asarray(value), depth)]
    if isinstance(value, numpy.ndarray):
        return _array(numpy.asarray(value), depth)
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(value, sympy.Basic):
        return _of_sympy(value, sympy)
    if hasattr(type(value), "__array__"):
        # Converted as the comparisons of numpy do.
        return _array(numpy.asarray(value), depth)
    return _opaque(value)


def send(value):
    try:
        content = json.dumps(_encoded(value)).encode("ascii")
    except Exception:
        content = json.dumps(_opaque(value)).encode("ascii")
    left = memoryview(len(content).to_bytes(8, "big") + content)
    while left:
        left = left[os.write(_descriptor, left) :]
