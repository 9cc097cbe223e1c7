"""Compares a program's output or return values with the expected ones, in a process that the program can't access.

Part of the supervisor's process. Test inputs go to the program's process one at a time; the expected outputs stay here.
As in the official program, the run ends with the first failure. Replies are untrusted: their length and form are
checked, and values are built from plain types only, so that only Python's own comparisons run.
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

# Maximum size of a reply in bytes, in addition to four times the expected output. A longer one can't be right.
REPLY_BYTES_MAX = 16 << 20
# Maximum number of hexadecimal digits of a fraction's parts. Creating a fraction takes quadratic time.
DIGITS_MAX = 100_000
# Maximum duration of a passing test, in time limits. The program's own process enforces the limit, but the program can
# disable that; the rest is tolerance for slow machines.
LATE = 2
TICK = 0.2


class Gone(Exception):
    """The program's process has ended, exceeded its time or sent an invalid message."""


class TooLong(Exception):
    """The reply is longer than any right one."""


class Channel:
    """Sends requests to the program's process and receives its replies, until a deadline."""

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
            # Each `NaN` becomes a separate object, because Python treats the same object in two lists as equal.
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
        """Waits until a descriptor is ready. Data that a process writes right before it ends is read before its end is
        noticed."""
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
    """Value that equals nothing: its type never occurs in expected values, or has its own comparison."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return False


class Array:
    """Numpy array. Comparing it gives an array, whose truth is defined only for a single element."""

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
    """Decodes a value encoded by `isolated.py`. An invalid encoding becomes a value that equals nothing."""
    if isinstance(value, list):
        return [decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(map(decoded, content))
    if kind == "dict":
        # Expected values have strings as keys. Numbers could be chosen to have the same hash, so that building the
        # dictionary would take hours.
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
    """Returns result and metadata of a test in which the program raised an exception."""
    said = reply["failed"]
    code = said.get("error_code") if isinstance(said, dict) else None
    if code not in (OUT_OF_TIME, BROKEN):
        raise Gone
    message = "Time Limit Exceeded" if code == OUT_OF_TIME else "Runtime Error"
    return code, {"error": str(said.get("error")), "error_code": code, "error_message": message}


class Session:
    """A program and its tests."""

    def __init__(self, runner, channel, task, tests):
        self.runner = runner
        self.channel = channel
        self.name = task["fn_name"]
        self.seconds = task["timeout"]
        self.inputs = [test["input"] for test in tests]
        self.outputs = [test["output"] for test in tests]

    def run(self, code, source):
        """Returns the results up to the first failure, and its metadata. Raises `Gone` if there are none."""
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
        """Returns the results of a test, and the metadata of a failure."""
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
            # As officially, the value's own comparison comes first; it never runs code of the program.
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
