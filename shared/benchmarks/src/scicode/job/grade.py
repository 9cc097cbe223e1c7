"""Evaluates the tests of a step on values that the program's process sends.

Runs in a process forked from the driver's, which programs can't access. Values are untrusted: they are built from plain
data only, and none of their code ever runs.
"""

import base64
import json
import os

BYTES_MAX = 1 << 28
PLAIN_KINDS = "biufcSUmM"
SPARSE_FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


class Ended(Exception):
    """The program ended before it sent all values that its tests compare."""


class Malformed(Exception):
    """The message isn't a value."""


class Opaque:
    """Value of a type that can't be sent. It can't be compared with anything."""

    __hash__ = object.__hash__

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return False

    def __repr__(self):
        return f"<{self.name}, which cannot be compared>"


def exactly(descriptor, length):
    pieces = []
    while length:
        piece = os.read(descriptor, min(length, 1 << 20))
        if not piece:
            raise Ended
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def received(descriptor):
    length = int.from_bytes(exactly(descriptor, 8), "big")
    if length > BYTES_MAX:
        raise Malformed(f"a value of {length} bytes is too long")
    try:
        return decoded(json.loads(exactly(descriptor, length)))
    except Ended:
        raise
    except Exception as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None


def array(kind, *parts):
    import numpy

    if kind == "array":
        dtype, shape, content = parts
        dtype = numpy.dtype(dtype)
        if dtype.kind not in PLAIN_KINDS:
            raise ValueError(f"an array of {dtype}")
        return numpy.frombuffer(base64.b64decode(content), dtype).reshape(shape).copy()
    if kind == "objects":
        shape, values = parts
        made = numpy.empty(len(values), object)
        for at, value in enumerate(values):
            made[at] = decoded(value)
        return made.reshape(shape)
    if kind == "opaque":
        return Opaque(parts[0])
    raise ValueError(f"an array of kind {kind}")


def sparse(form, is_array, shape, *arrays):
    import scipy.sparse

    if form not in SPARSE_FORMATS:
        raise ValueError(f"a sparse matrix of format {form}")
    ending = "_array" if is_array else "_matrix"
    arrays = [array(*part) for part in arrays]
    if form in ("csr", "csc", "bsr"):
        return getattr(scipy.sparse, form + ending)(tuple(arrays), shape=tuple(shape))
    data, row, column = arrays
    return getattr(scipy.sparse, "coo" + ending)((data, (row, column)), shape=tuple(shape)).asformat(form)


def of_sympy(kind, text, precision):
    import sympy

    if kind == "Integer":
        return sympy.Integer(int(text))
    if kind == "Rational":
        above, _, below = text.partition("/")
        return sympy.Rational(int(above), int(below or 1))
    if kind == "Float":
        float(text)
        return sympy.Float(text, precision=min(int(precision), 1 << 16))
    raise ValueError(f"a number of kind {kind}")


def symbol(name):
    import sympy

    return sympy.Symbol(name)


def masked(values, mask):
    import numpy

    return numpy.ma.MaskedArray(array(*values), array(*mask))


def matrix(*parts):
    import numpy

    return numpy.asmatrix(array(*parts))


def decoded(value):
    kind, *parts = value
    if kind in ("array", "objects", "opaque"):
        return array(kind, *parts)
    if kind == "scalar":
        return array(*parts)[()]
    return MAKERS[kind](*parts)


def all_of(values):
    return [decoded(value) for value in values]


MAKERS = {
    "none": lambda: None,
    "bool": bool,
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
    "str": str,
    "bytes": base64.b64decode,
    "list": all_of,
    "tuple": lambda values: tuple(all_of(values)),
    "set": lambda values: set(all_of(values)),
    "frozenset": lambda values: frozenset(all_of(values)),
    "dict": lambda entries: {decoded(key): decoded(value) for key, value in entries},
    "range": lambda parts: range(*(int(part, 16) for part in parts)),
    "masked": masked,
    "matrix": matrix,
    "sparse": sparse,
    "symbol": symbol,
    "sympy": of_sympy,
}


def has_empty(value):
    """Returns true for an empty array or sequence, or a value that contains one at any depth."""
    if 0 in getattr(value, "shape", ()):
        return True
    if isinstance(value, (list, tuple, set, frozenset, range)) and len(value) == 0:
        return True
    if isinstance(value, dict):
        return any(map(has_empty, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(has_empty, value))
    return getattr(getattr(value, "dtype", None), "kind", "") == "O" and any(map(has_empty, value.flat))


def receiver(descriptor, targets):
    """Receives values. Rejects empty ones if no expected value is empty: no element of them could be wrong, so
    `numpy.allclose` considers an array of shape (0, 1, 1, 1) close to every array of up to three dimensions."""
    are_allowed = has_empty(targets)

    def receive():
        value = received(descriptor)
        if not are_allowed and has_empty(value):
            raise Malformed("it has an empty array or sequence, which no right value has")
        return value

    return receive


def graded(source, names, descriptor):
    """Returns `pass`, `ended` if values are missing, or `fail` with the reason."""
    names = {**names, "__receive_from_program": receiver(descriptor, names.get("targets", []))}
    try:
        exec(source, names)
    except Ended:
        return "ended", ""
    except BaseException as error:
        return "fail", f"{type(error).__name__}: {error}"
    return "pass", ""
