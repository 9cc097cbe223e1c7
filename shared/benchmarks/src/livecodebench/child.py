"""Runs a program in its own process and passes the results to the supervisor.

Started as `python3 -c TEXT PAYLOAD RESULT WORD` with three inherited file descriptors: the work as JSON, the pipe for
the results, and the secret word that must precede them, which is read after the program has ended.
"""

import json
import math
import os
import sys
import types

RESULT_BYTES_MAX = 1 << 20
TEXT_CHARS_MAX = 2000
NUMBER_MAX = 1000


def with_numpy_or_without():
    """Imports numpy, as the official program does without using it. Returns whether it exists; if not, adds a
    placeholder."""
    try:
        import numpy  # noqa: F401

        return True
    except ImportError:
        sys.modules["numpy"] = types.ModuleType("numpy")
        return False


def grader_of(work):
    has_numpy = with_numpy_or_without()
    grader = types.ModuleType(work["module"])
    sys.modules[work["module"]] = grader
    source = compile(work["source"], work["module"] + ".py", "exec", dont_inherit=True)
    exec(source, grader.__dict__)
    if not has_numpy:
        del sys.modules["numpy"]
    return grader.run_test, has_numpy


def entry(value):
    """Converts a result to JSON. Raises TypeError if that is not possible; the run then has no results."""
    if type(value).__module__ == "numpy":
        value = value.item(0) if getattr(value, "shape", ()) else value.item()
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value if abs(value) <= NUMBER_MAX else math.copysign(NUMBER_MAX, value)
    raise TypeError("a result is neither true nor false")


def said(metadata):
    return {
        name: value if type(value) in (int, float) else str(value)[:TEXT_CHARS_MAX]
        for name, value in metadata.items()
        if name in ("error", "error_code", "error_message", "execution time")
    }


def main():
    # Programs can replace the contents of modules, so functions that are needed later are saved here.
    read, write, leave, dumps = os.read, os.write, os._exit, json.dumps
    to_entry, to_said = entry, said
    payload, result, word = (int(descriptor) for descriptor in sys.argv[1:4])
    with os.fdopen(payload, "rb") as file:
        work = json.loads(file.read())
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(50000)
    run_test, has_numpy = grader_of(work)
    sample, code, timeout = {"input_output": work["record"]}, work["code"], work["timeout"]
    work = None
    sys.argv = ["-c"]
    write(result, b"numpy\n" if has_numpy else b"plain\n")
    status = 1
    try:
        results, metadata = run_test(sample, test=code, debug=False, timeout=timeout)
        report = {"results": [to_entry(value) for value in results], "metadata": to_said(metadata)}
        line = dumps(report).encode("ascii")
        if len(line) <= RESULT_BYTES_MAX:
            line = read(word, 64) + line + b"\n"
            while line:
                line = line[write(result, line) :]
            status = 0
    finally:
        leave(status)


if __name__ == "__main__":
    main()
