"""Checks that values sent by `isolated.py` compare in `compare.py` as in a single process. Takes their folder."""

import collections
import decimal
import enum
import fractions
import importlib.util
import json
import math
import random
import sys

rng = random.Random(20240202)


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


isolated, compare = loaded("isolated"), loaded("compare")
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(50000)


class Ints(int):
    pass


class Floats(float):
    pass


class Texts(str):
    pass


class Lists(list):
    def __iter__(self):  # not used by the comparison of list
        return iter(())


class Dicts(dict):
    pass


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Pair = collections.namedtuple("Pair", "left right")


def expected(depth=0):
    """Returns a random JSON value."""
    kind = rng.choice(["number", "text", "word", "list", "object"] if depth < 4 else ["number", "text", "word"])
    if kind == "number":
        numbers = [0, 1, 2, -1, 0.0, 1.0, 2.5, -0.0, 0.1, 2**53, 2**53 + 1, 10**30, 1e300, math.inf, -math.inf, math.nan]
        return rng.choice([*numbers, 1 << 11_000, rng.randint(-5, 5), rng.random()])
    if kind == "text":
        return rng.choice(["", "a", "b", "1", "\ud800", "é", "x" * 50])
    if kind == "word":
        return rng.choice([None, True, False])
    if kind == "list":
        return [expected(depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return {rng.choice("abc1"): expected(depth + 1) for _ in range(rng.choice([0, 1, 2]))}


def answer(value):
    """Returns the same or nearly the same value, in one of the types that programs return."""
    if rng.random() < 0.04:
        return rng.choice([None, 0, 1, "", "a", [], (), {}, set(), {1, 2}, range(3), b"a", object(), [None], {1: 2}, {(1, 2): 3},
                           iter([1]), int, len, collections.deque([1]), {"a": 1}.keys(), math, (1,), 1 + 0j])  # fmt: skip
    if isinstance(value, bool):
        return rng.choice([value, int(value), float(value), Ints(value), decimal.Decimal(int(value)), complex(value)])
    if isinstance(value, int):
        kinds = [int, int, int, Ints, decimal.Decimal, fractions.Fraction, lambda value: value + 1]
        if abs(value) < 2**60:
            kinds += [float, Floats, complex]
        if value in (1, 2):
            kinds += [Level, lambda value: value == 1]
        return rng.choice(kinds)(value)
    if isinstance(value, float):
        kinds = [float, float, Floats, lambda value: value + 1e-9, lambda value: complex(value, 0)]
        if not math.isnan(value):
            kinds += [decimal.Decimal, lambda value: decimal.Decimal(repr(value))]
        if math.isfinite(value):
            kinds += [fractions.Fraction, int]
        return rng.choice(kinds)(value)
    if isinstance(value, str):
        return rng.choice([str, str, Texts, lambda value: value + "x", list])(value)
    if isinstance(value, list):
        parts = [answer(part) for part in value]
        makers = [list, list, list, list, Lists, collections.UserList, tuple, collections.deque]
        if len(parts) == 2:
            makers.append(lambda parts: Pair(*parts))
        return rng.choice(makers)(parts)
    if isinstance(value, dict):
        entries = {rng.choice([str, str, Texts])(key): answer(part) for key, part in value.items()}
        makers = [dict, dict, Dicts, collections.OrderedDict, collections.UserDict, collections.ChainMap, collections.Counter,
                  lambda entries: collections.defaultdict(int, entries), lambda entries: list(entries.items())]  # fmt: skip
        return rng.choice(makers)(entries)
    return value


def sent(value):
    """Returns the value as decoded by the receiver."""
    message = json.dumps({"returned": isolated.encoded(value)}).encode("ascii")
    return compare.value_of(json.loads(message, parse_constant=float)["returned"])


def outcome(compared):
    try:
        return bool(compared())
    except Exception:
        return "raises"


def check(value, right):
    there = outcome(lambda: value == right)
    here = outcome(lambda: sent(value) == right)
    assert here == there, f"{value!r} and {right!r}: {here}, officially {there}"
    return there


def ordinary():
    outcomes = collections.Counter()
    for _ in range(6_000):
        value = expected()
        right = json.loads(json.dumps(value))
        given = answer(value)
        given = list(given) if isinstance(given, tuple) else given
        outcomes[check(given, right)] += 1
    assert min(outcomes[True], outcomes[False]) > 1_000, outcomes


def particular():
    deep = []
    for _ in range(5_000):
        deep = [deep]
    many = [1]
    for _ in range(100):
        many = [many, many]
    loop = []
    loop.append(loop)
    for value, right in [
        (decimal.Decimal("sNaN"), 1), ([decimal.Decimal("NaN")], [1]), (math.nan, math.nan), (deep, [[]]), (many, [[1]]),
        (loop, [[]]), (1 << 60_000, 1 << 60_000), (-(1 << 60_000), 1), ([1 << 60_000], [1 << 60_000]), ([], []),
        ({"a": (1, 2)}, {"a": [1, 2]}), ([True, 0], [1, False]), ({True: 1}, {"1": 1}), ([1.0], [1]), ([[]], [[]]),
        (["a", 1, None], ["a", 1, None]), (["a", None], ["a", None]), ([-(1 << 20_000)], [-(1 << 20_000)]),
    ]:  # fmt: skip
        check(value, right)
    # Two lists that contain the same object are equal even if that object is not a number.
    right = json.loads("[NaN]")
    assert not check([float("nan")], right)


def arrays():
    try:
        import numpy
    except ImportError:
        return
    for value, right in [
        (numpy.int64(5), 5), (numpy.int64(5), 6), (numpy.float64(0.1), 0.1), (numpy.bool_(True), 1), (numpy.str_("a"), "a"),
        ([numpy.int32(1), numpy.float64(2)], [1, 2]), (numpy.array(5), 5), (numpy.array([5]), [5]), (numpy.array([5]), 5),
        (numpy.array([[5]]), [[5]]), (numpy.array([5, 6]), [5, 6]), ([numpy.array([5])], [[5]]),
        ([numpy.array([5, 6])], [[5, 6]]), (numpy.array([5, 6]), 5), ({"a": numpy.int64(1)}, {"a": 1}),
    ]:  # fmt: skip
        check(value, right)


class Equal:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("a")


class EqualInt(int):
    __eq__ = Equal.__eq__
    __hash__ = int.__hash__


class EqualList(list):
    __eq__ = Equal.__eq__


class EqualText(str):
    __eq__ = Equal.__eq__
    __hash__ = str.__hash__


class EqualDict(dict):
    __eq__ = Equal.__eq__


class Meta(type):
    """Metaclass whose classes pretend to compare as integers do."""

    def __getattribute__(cls, name):
        return int.__eq__ if name == "__eq__" else super().__getattribute__(name)


class Posing(metaclass=Meta):
    __class__ = int

    def __eq__(self, other):
        return True


def forged():
    for value in [Equal(), EqualInt(7), EqualList([7]), EqualText("x"), EqualDict(x=1), Posing()]:
        for right in [1, "a", [1], {"a": 1}, None, True, 2.5]:
            assert value == right
            assert not sent(value) == right
            assert not sent([value]) == [right] and not sent({"k": value}) == {"k": right}
    assert not sent({Equal(): 1}) == {"a": 1}
    # The program can't choose the hash of a key: equal hashes would make the comparison quadratic.
    assert isinstance(sent({(2**61 - 1) * number: 0 for number in range(9)}), compare.Other)
    # Any other message is a value that equals nothing, and nothing is called.
    for reply in [
        {}, {"a": 1, "b": 2}, {"tuple": 1}, {"dict": [[1]]}, {"dict": [[[1], 2]]}, {"int": 5}, {"int": "x"},
        {"decimal": "x"}, {"decimal": {}}, {"fraction": ["1", "0"]}, {"fraction": ["f" * 200_000, "1"]}, {"complex": [1, 2, 3]},
        {"array": 1}, {"array": [{}]}, {"other": "int"}, {"eval": "1"}, {"dict": {"a": 1}}, [{}], [[{"tuple": 1}]],
    ]:  # fmt: skip
        for right in [1, "a", [1], [], {}, {"a": 1}, None, True, [[1]], [[]]]:
            assert outcome(lambda reply=reply, right=right: compare.value_of(reply) == right) in (False, "raises"), reply


ordinary()
particular()
arrays()
forged()
print("all is as it should be")
