"""Compares what a program prints or returns with the expected outputs, in a process that the program cannot reach.

Part of the supervisor's process. Test inputs go to the program's process one at a time; the expected outputs stay here.
The run ends with the first failure, as officially. Replies are untrusted: their length and form are checked, and values
are made of plain types only, whose comparisons are Python's own.
"""

import decimal
import fractions
import json
import os
import select
import time

WRONG = -2
OUT_OF_TIME = -3
BROKEN = -4

# Bytes of a reply beyond four times the expected output: a longer one cannot be right.
REPLY_BYTES_MAX = 16 << 20
# Hexadecimal digits of a fraction's parts: making one takes the square of their number.
DIGITS_MAX = 100_000
# A passing test may take this many time limits. The program's own process enforces the limit, which the program can
# switch off; the rest is room for a slow machine.
LATE = 2
TICK = 0.2


class Gone(Exception):
    """The program's process has ended, its time is up, or what it says has no form."""


class TooLong(Exception):
    """A reply is longer than any right one."""


class Channel:
    """Requests to the program's process and replies from it, until a deadline."""

    def __init__(self, process, requests, replies):
        self.process = process
        self.requests = requests
        self.replies = replies
        self.deadline = 0.0
        os.set_blocking(requests, False)

    def send(self, message):
        content = json.dumps(message).encode("ascii")
        left = memoryview(len(content).to_bytes(8, "big") + content)
        while left:
            self.wait([], [self.requests])
            try:
                left = left[os.write(self.requests, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise Gone from None

    def receive(self, bytes_max=REPLY_BYTES_MAX):
        length = int.from_bytes(self.exactly(8), "big")
        if length > bytes_max:
            raise TooLong
        try:
            # Each `NaN` is an object of its own: Python takes one and the same object in two lists as equal.
            message = json.loads(self.exactly(length), parse_constant=float)
        except (ValueError, RecursionError):
            raise Gone from None
        if not isinstance(message, dict):
            raise Gone
        return message

    def exactly(self, length):
        pieces = []
        while length:
            self.wait([self.replies], [])
            try:
                piece = os.read(self.replies, min(length, 1 << 20))
            except OSError:
                raise Gone from None
            if not piece:
                raise Gone
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def wait(self, reads, writes):
        """Until one of them can be used. What a process says right before it ends is read before its end is seen."""
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise Gone
            has_ended = self.process.poll() is not None
            ready = select.select(reads, writes, [], 0 if has_ended else min(left, TICK))
            if ready[0] or ready[1]:
                return
            if has_ended:
                raise Gone


# Values


class Other:
    """A value that equals nothing: of a type that no expected value has, or that compares in its own way."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return False


class Array:
    """An array of numpy. Comparing it gives an array, which is true or false only when it has one element."""

    __hash__ = None

    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        others = flat(other)
        if not self.values or not others:
            return False
        if len(self.values) > 1 or len(others) > 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous.")
        return self.values[0] == others[0]


def flat(value):
    return [part for inner in value for part in flat(inner)] if isinstance(value, list) else [value]


def decoded(value):
    """The value that `isolated.py` has encoded. Whatever has no right form equals nothing."""
    if isinstance(value, list):
        return [decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(map(decoded, content))
    if kind == "dict":
        # Expected values have texts as keys. Numbers can be chosen to share a hash, so that this process would spend hours on
        # making the dictionary.
        if not all(isinstance(key, str) for key, _ in content):
            return Other()
        return {key: decoded(part) for key, part in content}
    if kind == "int":
        return int(content, 16)
    if kind == "decimal":
        return decimal.Decimal(content)
    if kind == "fraction" and max(map(len, content)) <= DIGITS_MAX:
        return fractions.Fraction(int(content[0], 16), int(content[1], 16))
    if kind == "complex":
        return complex(*content)
    if kind == "array":
        return Array([decoded(part) for part in content])
    return Other()


def value_of(reply):
    try:
        return decoded(reply)
    except Exception:
        return Other()


# Tests


def broken(message):
    return [BROKEN], {"error_code": BROKEN, "error_message": message}


def failed(reply):
    """The entry and the metadata of a test in which the program has raised an exception."""
    said = reply["failed"]
    code = said.get("error_code") if isinstance(said, dict) else None
    if code not in (OUT_OF_TIME, BROKEN):
        raise Gone
    message = "Time Limit Exceeded" if code == OUT_OF_TIME else "Runtime Error"
    return code, {"error": str(said.get("error")), "error_code": code, "error_message": message}


class Session:
    """One program and its tests."""

    def __init__(self, runner, channel, task, tests):
        self.runner = runner
        self.channel = channel
        self.name = task["fn_name"]
        self.seconds = task["timeout"]
        self.inputs = [test["input"] for test in tests]
        self.outputs = [test["output"] for test in tests]

    def run(self, code, source):
        """Results of the tests up to the first failure, and what is said about it. Raises `Gone` where there are none."""
        work = {"code": code, "source": source, "fn_name": self.name, "timeout": self.seconds}
        self.channel.send(work)
        reply = self.channel.receive()
        if "broken" in reply:
            return broken(str(reply["broken"]))
        if "ready" not in reply:
            raise Gone
        try:
            expected = self.expected()
        except Exception as error:
            return broken(f"Error during testing: {error}")
        results, total = [], 0
        for given, right, text in zip(self.inputs, expected, self.outputs):
            began = time.monotonic()
            self.channel.send({"input": given})
            try:
                reply = self.channel.receive(REPLY_BYTES_MAX + 4 * len(json.dumps(text)))
            except TooLong:
                return results + [self.wrong()], {"error_code": WRONG, "error_message": "Wrong answer: far too long"}
            elapsed = time.monotonic() - began
            total += elapsed
            if "broken" in reply:
                return broken(str(reply["broken"]))
            if "failed" in reply:
                entry, said = failed(reply)
                return results + [entry], said
            try:
                entries, said = self.compared(reply, given, right)
            except Gone:
                raise
            except Exception as error:
                return broken(f"Error during testing: {error}")
            if said is None and elapsed > LATE * self.seconds:
                error = f"the test took {elapsed:.1f} s"
                said = {"error": error, "error_code": OUT_OF_TIME, "error_message": "Time Limit Exceeded"}
                entries = [OUT_OF_TIME]
            results += entries
            if said is not None:
                return results, said
        return results, {"execution time": total}

    def expected(self):
        if self.name is None:
            return self.outputs
        for given in self.inputs:
            for line in given.split("\n"):
                json.loads(line)
        return [json.loads(text) for text in self.outputs]

    def wrong(self):
        return WRONG if self.name is None else False

    def compared(self, reply, given, right):
        """Entries of a test, and what is said about a failure."""
        if self.name is None:
            text = reply.get("printed")
            if not isinstance(text, str):
                raise Gone
            try:
                self.runner.compare_output(text, given, right)
            except self.runner.Stopped as stopped:
                return [stopped.entry], stopped.said
            return [True], None
        if "returned" not in reply:
            raise Gone
        try:
            # The value's own comparison comes first, as officially; it is never one of the program's.
            if bool(value_of(reply["returned"]) == right):
                return [True], None
        except Exception as error:
            said = {"error": repr(error), "error_code": BROKEN, "error_message": "Runtime Error"}
            return [BROKEN], said
        self.channel.send({"show": True})
        reply = self.channel.receive()
        if "failed" in reply:
            entry, said = failed(reply)
            return [False, entry], said
        if "shown" not in reply:
            raise Gone
        return [False], {"error_code": WRONG, "error_message": "Wrong Answer"}
