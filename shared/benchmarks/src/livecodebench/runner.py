"""Runs one program against the tests of its problem, with the verdicts of the official runner.

`run_test` has the signature of the official program and replaces it if that could not be loaded. Isolated grading uses
parts of this module: `isolated.py` the parts that run a program, `compare.py` the parts that compare its output. The
benchmark's page describes their behavior, including its quirks: a program without a method becomes the body of a
function that is called once per test; a program with a method is executed once, and its method is called.

Nothing is imported from `__future__` here, because programs would inherit it.
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

# Names that a program can use without importing them, in order; later names hide earlier ones.
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

# Functions removed for programs. This is not protection, which is the sandbox's task: programs that use them fail as
# officially.
WITHOUT_OS = (
    "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace unlink "
    "fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir"
).split()
WITHOUT_SHUTIL = "rmtree move chown".split()
WITHOUT_MODULES = "ipdb joblib resource psutil tkinter".split()


class TimeoutException(Exception):
    """A test exceeded its time. The verdict depends on whether an exception contains this name."""


class Stopped(Exception):
    """The first failure, with the result of the test and its metadata."""

    def __init__(self, entry, said):
        super().__init__(entry)
        self.entry = entry
        self.said = said


def on_alarm(_signal, _frame):
    # Goes to the output of a program that continues regardless, which makes the output wrong.
    print("the time of this test is up")
    raise TimeoutException


def shortened(value):
    text = value if isinstance(value, str) else str(value)
    if len(text) <= TEXT_CHARS_MAX:
        return text
    half = TEXT_CHARS_MAX // 2
    return f"{text[:half]}...(truncated) ...{text[-half:]}"


def take_away():
    import unittest.mock  # noqa: F401  # slow, and not needed for comparing outputs

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
    """Replaces a final `if __name__ == '__main__':` by its body."""
    try:
        body = ast.parse(code).body
        last = body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == "__name__ == '__main__'":
            return ast.unparse(body[:-1]) + "\n" + ast.unparse(last.body)
    except BaseException:  # an alarm counts as a program that can't be parsed, too
        pass
    return code


def as_function(code):
    """Keeps imports at the top and moves everything else into a function. Invalid code stays unchanged."""
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
    """Executes a program once and returns the object that holds its functions."""
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
    """Replacement for `sys.stdin`: no iteration, and every read of the whole text begins at the start."""

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
    # Programs that import `stdin` by name hold the real one, which yields lines without their ends.
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
    """Returns the metadata of an exception in a program. If its `repr` raises, too, the whole run fails."""
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
    """Returns the program's output for a test, and the time it took."""
    stdout, captured = sys.stdout, io.StringIO()
    captured.close = lambda _: None  # programs may close their output
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
    """Executes a program once and returns the function to call per test: its method, or its body."""
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
                # An answer that can't be formatted counts as an additional failure after the wrong one.
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
    """Returns the results up to the first failure, and its metadata."""
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
