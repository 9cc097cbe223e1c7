"""Runs one program against the tests of its problem, with the verdicts of the official runner.

`run_test` has the signature of the official program and takes its place where that could not be had. The isolated way of
grading uses the parts: `isolated.py` those that run a program, `compare.py` those that compare what it printed. What they
do, surprises included, is described in the benchmark's page: a program without a method becomes the body of a function
that is called once per test, one with a method is executed once and its method called.

Nothing is imported from `__future__` here: programs would inherit it.
"""

import ast
import builtins
import decimal
import faulthandler
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types

# What a program finds without importing it, in the order in which later names hide earlier ones.
STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
).split()
NAMED = [name for name in STARRED if name not in ("builtins", "typing")]
PRELUDE = "".join(
    [f"from {name} import *\n" for name in STARRED]
    + [f"import {name}\n" for name in NAMED]
    + ["sys.setrecursionlimit(50000)\n"]
)

ENTRY = "wrapped_function"
MODULE = "tmp_sol"
TEXT_CHARS_MAX = 300

WRONG = -2
OUT_OF_TIME = -3
BROKEN = -4

# Taken away from programs. Not protection, which is the sandbox's: programs that use them fail here as they do there.
WITHOUT_OS = (
    "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace unlink "
    "fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir"
).split()
WITHOUT_SHUTIL = "rmtree move chown".split()
WITHOUT_MODULES = "ipdb joblib resource psutil tkinter".split()


class TimeoutException(Exception):
    """The time of a test is up. Programs are judged by whether this name is in what they raise."""


class Stopped(Exception):
    """The first failure: what is recorded of the test, and what is said about it."""

    def __init__(self, entry, said):
        super().__init__(entry)
        self.entry = entry
        self.said = said


def on_alarm(_signal, _frame):
    # Lands in the output of a program that goes on regardless, which makes it wrong.
    print("the time of this test is up")
    raise TimeoutException


def shortened(value):
    text = value if isinstance(value, str) else str(value)
    if len(text) <= TEXT_CHARS_MAX:
        return text
    half = TEXT_CHARS_MAX // 2
    return f"{text[:half]}...(truncated) ...{text[-half:]}"


def take_away():
    import unittest.mock  # noqa: F401  # slow, and not needed where outputs are only compared

    faulthandler.disable()
    builtins.quit = None
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in WITHOUT_OS:
        setattr(os, name, None)
    for name in WITHOUT_SHUTIL:
        setattr(shutil, name, None)
    subprocess.Popen = None
    builtins.help = None
    for name in WITHOUT_MODULES:
        sys.modules[name] = None


# Programs


def without_guard(code):
    """The body of a last `if __name__ == '__main__':` takes the place of the statement."""
    try:
        body = ast.parse(code).body
        last = body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == "__name__ == '__main__'":
            return ast.unparse(body[:-1]) + "\n" + ast.unparse(last.body)
    except BaseException:  # an alarm counts as a program that cannot be read, too
        pass
    return code


def as_function(code):
    """Imports stay at the top, everything else becomes a function. What does not parse is left as it is."""
    try:
        imports, others = [], []
        for statement in ast.parse(code).body:
            is_import = isinstance(statement, (ast.Import, ast.ImportFrom))
            (imports if is_import else others).append(statement)
        function = ast.parse(f"def {ENTRY}(): pass").body[0]
        function.body = others
        return "\n".join([PRELUDE, ast.unparse(imports), ast.unparse(function)])
    except Exception:
        return code


def loaded(code, seconds):
    """Executes a program once; what its functions are looked up in."""
    signal.alarm(seconds)
    try:
        module = types.ModuleType(MODULE, "")
        exec(code, module.__dict__)
        return module.Solution() if "class Solution" in code else module
    finally:
        signal.alarm(0)


def function_of(owner, name):
    try:
        found = hasattr(owner, name)
    except Exception:
        found = False
    function = getattr(owner, name) if found else None
    if function is None:
        raise LookupError(f"there is no {name}")
    return function


# Programs that read and print


class Stdin:
    """What `sys.stdin` is: no iteration, and reads of everything that begin at the start every time."""

    def __init__(self, text):
        self.text = text
        self.stream = io.StringIO(text)
        self.buffer = Buffer(text.encode("utf-8"))

    def read(self, *_):
        return self.text

    def readline(self, *args):
        return self.stream.readline(*args)

    def readlines(self, *_):
        return self.text.split("\n")

    def __getattr__(self, name):
        return getattr(self.stream, name)


class Buffer:
    def __init__(self, content):
        self.content = content

    def read(self, *_):
        return self.content

    def readline(self, *_):
        return self.content.split(b"\n")[0] + b"\n"


def call_with_stdin(function, text):
    from unittest.mock import mock_open

    real, opened = sys.stdin, builtins.open
    lines = iter(text.split("\n"))
    shown, reader = Stdin(text), mock_open(read_data=text)
    # Programs that have imported `stdin` by name hold the real one: it gives lines without their ends.
    methods = {
        "read": lambda *_: text,
        "readlines": lambda *_: text.split("\n"),
        "readline": lambda *_: next(lines),
    }
    for name, method in methods.items():
        setattr(real, name, method)
    sys.stdin, builtins.open = shown, reader
    try:
        function()
    except SystemExit:
        pass
    finally:
        sys.stdin, builtins.open = real, opened
        for name in methods:
            delattr(real, name)


def lines_of(text):
    return [line.strip() for line in text.strip().split("\n")]


def numbers_of(line):
    try:
        return [decimal.Decimal(word) for word in line.split()]
    except Exception:
        return None


def lines_match(printed, expected):
    if printed == expected:
        return True
    left = numbers_of(printed)
    if left is None:
        return False
    right = numbers_of(expected)
    return right is not None and left == right


def failure(error, given, expected):
    """What is recorded when a program raises. Its own `repr` may raise, too: then the whole run is broken."""
    code, message = BROKEN, "Runtime Error"
    if "timeoutexception" in repr(error).lower():
        code, message = OUT_OF_TIME, "Time Limit Exceeded"
    said = {
        "error": repr(error),
        "error_code": code,
        "error_message": message,
        "inputs": shortened(given),
        "expected": shortened(expected),
    }
    return Stopped(code, said)


def output_of(function, given, expected, seconds):
    """What the program prints for a test, and how long it took."""
    stdout, captured = sys.stdout, io.StringIO()
    captured.close = lambda _: None  # a program that closes its output is broken
    sys.stdout = captured
    try:
        started = time.time()
        call_with_stdin(function, given)
        elapsed = time.time() - started
        signal.alarm(0)
    except Exception as error:
        signal.alarm(0)
        raise failure(error, given, expected) from None
    finally:
        signal.alarm(0)
        faulthandler.disable()
        sys.stdout = stdout
    return captured.getvalue(), elapsed


def compare_output(printed, given, expected):
    lines, right = lines_of(printed), lines_of(expected)
    said = {
        "output": shortened(printed),
        "inputs": shortened(given),
        "expected": shortened(expected),
        "error_code": WRONG,
    }
    if len(lines) != len(right):
        said["error_message"] = "Wrong answer: mismatched output length"
        raise Stopped(WRONG, said)
    for at, (line, wanted) in enumerate(zip(lines, right)):
        if not lines_match(line, wanted):
            said["error_message"] = (
                f"Wrong answer at output_line_idx={at}: {shortened(line)} != {shortened(wanted)}"
            )
            raise Stopped(WRONG, said)


def prepared(code, name, seconds):
    """Executes a program once and returns what is called for each test: its method, or its body as a function."""
    if name is None:
        return function_of(loaded(as_function(without_guard(code)), seconds), ENTRY)
    return function_of(loaded(PRELUDE + "\n\n" + code, seconds), name)


def grade_printing(code, inputs, outputs, seconds):
    function = prepared(code, None, seconds)
    results, total = [], 0
    for given, expected in zip(inputs, outputs):
        signal.alarm(seconds)
        faulthandler.enable()
        try:
            printed, elapsed = output_of(function, given, expected, seconds)
            compare_output(printed, given, expected)
        except Stopped as stopped:
            return results + [stopped.entry], stopped.said
        results.append(True)
        total += elapsed
    return results, {"execution time": total}


# Programs with a method


def grade_method(code, inputs, outputs, name, seconds):
    method = prepared(code, name, seconds)
    inputs = [[json.loads(line) for line in given.split("\n")] for given in inputs]
    outputs = [json.loads(expected) for expected in outputs]
    results, total = [], 0
    for given, expected in zip(inputs, outputs):
        signal.alarm(seconds)
        faulthandler.enable()
        try:
            started = time.time()
            answer = method(*given)
            total += time.time() - started
            signal.alarm(0)
            if isinstance(answer, tuple):
                answer = list(answer)
            same = answer == expected
            results.append(same)
            if not same:
                # An answer that cannot be shown counts as one more failure, after the wrong one.
                return results, {
                    "output": shortened(answer),
                    "inputs": shortened(given),
                    "expected": shortened(expected),
                    "error_code": WRONG,
                    "error_message": "Wrong Answer",
                }
        except Exception as error:
            signal.alarm(0)
            stopped = failure(error, given, expected)
            return results + [stopped.entry], stopped.said
        finally:
            signal.alarm(0)
            faulthandler.disable()
    return results, {"execution time": total}


def run_test(sample, test=None, debug=False, timeout=6):
    """Results of the tests up to the first failure, and what is said about it."""
    signal.signal(signal.SIGALRM, on_alarm)
    take_away()
    record = json.loads(sample["input_output"])
    name = record.get("fn_name")
    signal.alarm(timeout)
    try:
        if name is None:
            return grade_printing(test, record["inputs"], record["outputs"], timeout)
        return grade_method(test, record["inputs"], record["outputs"], name, timeout)
    except Exception as error:
        return [BROKEN], {"error_code": BROKEN, "error_message": f"Error during testing: {error}"}
    finally:
        signal.alarm(0)
