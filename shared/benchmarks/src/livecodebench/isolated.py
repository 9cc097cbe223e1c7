"""Runs a program on test inputs and sends back its output or return values. Expected outputs never enter this process.

Started as `python3 -I -B -c TEXT REQUESTS REPLIES` with two inherited file descriptors. A message is ASCII JSON,
preceded by its length in 8 bytes. The first request is the work: the program, and the source of the runner. Each later
one is the input of a test, or a request to show the last answer. A program can send its own replies, but they only
count as answers.
"""

import collections
import decimal
import faulthandler
import fractions
import json
import os
import signal
import sys
import types

ERROR_CHARS_MAX = 2000
# Limits for a value to send, far above any expected value. Values in plain lists count as a sixteenth.
DEPTH_MAX = 200
PARTS_MAX = 3_000_000
# Longer integers are sent as hexadecimal digits, which takes linear time and has no limit.
PLAIN_BITS_MAX = 10_000


# Isolation from the process that compares


def reads_memory_of(pid):
    try:
        with open(f"/proc/{pid}/mem", "rb"):
            return True
    except OSError:
        return False


def is_isolated_from(pid):
    if reads_memory_of(pid):
        drop_capabilities()
    return not reads_memory_of(pid)


# Values


class Encoder:
    """Encodes a value as JSON, which `compare.py` decodes to an equal one.

    Lists, numbers, strings, booleans and None are encoded as themselves; an object has one entry, named after its type.
    An object whose class defines its own comparison isn't sent, because that comparison would be the program's.
    """

    def __init__(self):
        self.parts = 0
        self.numpy = sys.modules.get("numpy")
        sorted_lists = sys.modules.get("sortedcontainers")
        self.sequences = (collections.UserList,)
        if isinstance(sorted_lists, types.ModuleType):
            self.sequences += (sorted_lists.SortedList,)

    def encoded(self, value, depth=0):
        cls = type(value)
        self.parts += 1
        if value is None or cls is bool or cls is str or cls is float:
            return value
        if cls is int:
            return value if value.bit_length() <= PLAIN_BITS_MAX else {"int": hex(value)}
        if depth > DEPTH_MAX:
            return {"other": "a value that is nested too deeply"}
        if self.parts > PARTS_MAX:
            raise OverflowError
        if cls is list:
            return self.all(value, depth)
        if cls is tuple:
            return {"tuple": self.all(value, depth)}
        if cls is decimal.Decimal:
            return {"decimal": str(value)}
        if cls is fractions.Fraction:
            return {"fraction": [hex(value.numerator), hex(value.denominator)]}
        if cls is complex:
            return {"complex": [value.real, value.imag]}
        return self.converted(value, cls, depth)

    def all(self, values, depth):
        kinds = set(map(type, values))
        is_plain = kinds <= {str, float, bool, type(None)}
        if kinds and kinds <= {int, bool}:
            is_plain = max(max(values), -min(values)).bit_length() <= PLAIN_BITS_MAX
        if is_plain:
            self.parts += len(values) // 16
            if self.parts > PARTS_MAX:
                raise OverflowError
            return list(values)
        return [self.encoded(value, depth + 1) for value in values]

    def converted(self, value, cls, depth):
        """Converts subclasses that compare like their base class, and library types that equal plain values."""
        numpy, equality = self.numpy, cls.__eq__
        if numpy is not None and isinstance(value, numpy.generic):
            item = value.item()
            # Some numpy types have no counterpart.
            return {"other": cls.__name__} if isinstance(item, numpy.generic) else self.encoded(item, depth)
        if numpy is not None and cls is numpy.ndarray:
            if value.ndim == 0:
                return self.encoded(value.item(), depth)
            return {"array": self.all(value.ravel().tolist(), depth)}
        for base, plain in (
            (int, int.__int__),
            (float, float.__float__),
            (str, str.__str__),
            (list, list.copy),
            (tuple, lambda value: tuple.__getitem__(value, slice(None))),
        ):
            if isinstance(value, base) and equality is base.__eq__:
                return self.encoded(plain(value), depth)
        compares_as_dict = (dict.__eq__, collections.OrderedDict.__eq__, collections.Counter.__eq__)
        if isinstance(value, dict) and equality in compares_as_dict:
            return self.entries(dict.items(value), depth)
        if isinstance(value, collections.abc.Mapping) and equality is collections.abc.Mapping.__eq__:
            return self.entries(value.items(), depth)
        for sequence in self.sequences:
            if isinstance(value, sequence) and equality is sequence.__eq__:
                return self.encoded(list(value), depth)
        return {"other": cls.__name__[:100]}

    def entries(self, items, depth):
        return {"dict": [[self.encoded(key, depth + 1), self.encoded(value, depth + 1)] for key, value in items]}


def encoded(value):
    try:
        return Encoder().encoded(value)
    except Exception:
        return {"other": "a value that cannot be sent"}


# Tests


def failed(stopped):
    names = ("error", "error_code", "error_message")
    said = {name: stopped.said[name] for name in names}
    return {"failed": {**said, "error": str(said["error"])[:ERROR_CHARS_MAX]}}


def printed(runner, function, text, seconds):
    signal.alarm(seconds)
    faulthandler.enable()
    try:
        output, _ = runner.output_of(function, text, "", seconds)
    except runner.Stopped as stopped:
        return failed(stopped), None
    return {"printed": output}, None


def returned(runner, method, given, seconds):
    signal.alarm(seconds)
    faulthandler.enable()
    try:
        answer = method(*given)
        signal.alarm(0)
        if isinstance(answer, tuple):
            answer = list(answer)
    except Exception as error:
        signal.alarm(0)
        return failed(runner.failure(error, given, "")), None
    finally:
        signal.alarm(0)
        faulthandler.disable()
    return {"returned": encoded(answer)}, answer


def shown(runner, answer):
    """Formats a wrong answer. As officially, an answer that can't be formatted is an additional failure."""
    try:
        runner.shortened(answer)
    except Exception as error:
        return failed(runner.failure(error, "", ""))
    return {"shown": True}


def main():
    # Programs can replace the contents of modules, so functions that are needed later are saved here.
    read, write, leave, dumps, loads = os.read, os.write, os._exit, json.dumps, json.loads
    print_output, return_value, show = printed, returned, shown
    requests, replies = int(sys.argv[1]), int(sys.argv[2])

    def receive():
        content, length = b"", 8
        pieces = []
        while length:
            piece = read(requests, min(length, 1 << 20))
            if not piece:
                leave(0)
            length -= len(piece)
            pieces.append(piece)
            if not length and not content:
                content = b"".join(pieces)
                pieces, length = [], int.from_bytes(content, "big")
        return loads(b"".join(pieces))

    def send(message):
        content = dumps(message).encode("ascii")
        content = len(content).to_bytes(8, "big") + content
        at = memoryview(content)
        while at:
            at = at[write(replies, at) :]

    try:
        import numpy  # noqa: F401  # the official program imports it

        has_numpy = True
    except ImportError:
        has_numpy = False
    send({"numpy": has_numpy, "isolated": is_isolated_from(os.getppid())})
    status = 1
    try:
        work = receive()
        if hasattr(sys, "set_int_max_str_digits"):
            sys.set_int_max_str_digits(50000)
        runner = types.ModuleType("runner")
        sys.modules["runner"] = runner
        exec(compile(work["source"], "runner.py", "exec", dont_inherit=True), runner.__dict__)
        code, name, seconds = work["code"], work["fn_name"], work["timeout"]
        work = None
        sys.argv = ["-c"]
        signal.signal(signal.SIGALRM, runner.on_alarm)
        runner.take_away()
        signal.alarm(seconds)
        try:
            function = runner.prepared(code, name, seconds)
            signal.alarm(0)
            send({"ready": True})
            answer = None
            while True:
                request = receive()
                if "show" in request:
                    reply = show(runner, answer)
                elif name is None:
                    reply, answer = print_output(runner, function, request["input"], seconds)
                else:
                    given = [loads(line) for line in request["input"].split("\n")]
                    reply, answer = return_value(runner, function, given, seconds)
                send(reply)
        except Exception as error:
            send({"broken": f"Error during testing: {error}"[:ERROR_CHARS_MAX]})
            status = 0
    finally:
        leave(status)


if __name__ == "__main__":
    main()
