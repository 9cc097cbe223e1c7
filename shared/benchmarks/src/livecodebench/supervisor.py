"""Grades one program: decodes the tests, runs the program in its own process, and writes the results.

Runs in the job's folder. `task.json` describes the work. This process removes it, the tests and the program's file
before the program starts. Isolated mode (`isolated.py`, `compare.py`) keeps the expected outputs in this process, whose
memory the program's process can't read; official mode (`child.py`) passes them to the program's process. `results.json`
holds a text and an authentication code, which requires the task's key. The program runs as another user if possible,
otherwise as this one.
"""

import base64
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

# Seconds.
TICK = 0.2
# Bytes.
DECODED_MAX = 1 << 30
MESSAGES_MAX = 2 << 20
TESTS_MAX = 100_000
TEXT_CHARS_MAX = 2000


class Unreadable(Exception):
    """The tests don't match the format of the dataset."""


# Tests


def unpickled_text(content):
    """Returns the single string in a pickle. Supports only the opcodes that such a pickle consists of."""

    def take(length):
        nonlocal at
        if length > len(content) - at:
            raise Unreadable("the pickle ends too early")
        at += length
        return content[at - length : at]

    at, text = 0, None
    while True:
        code = take(1)
        if code == b"\x80":
            take(1)
        elif code == b"\x95":
            take(8)
        elif code in (b"\x8c", b"X", b"\x8d"):
            if text is not None:
                raise Unreadable("the pickle holds more than one text")
            width = {b"\x8c": 1, b"X": 4, b"\x8d": 8}[code]
            text = take(int.from_bytes(take(width), "little")).decode("utf-8", "surrogatepass")
        elif code == b"\x94" and text is not None:
            pass
        elif code in (b"q", b"r") and text is not None:
            take(1 if code == b"q" else 4)
        elif code == b"." and text is not None:
            return text
        else:
            raise Unreadable(f"the pickle holds code {code[0]:#04x}")


def inflated(content):
    stream = zlib.decompressobj()
    text = stream.decompress(content, DECODED_MAX)
    if stream.unconsumed_tail or not stream.eof:
        raise Unreadable(f"the compressed tests are cut off, or longer than {DECODED_MAX} bytes")
    return text


def decoded(text):
    """Returns the list in a column of tests: JSON, or base64 of a compressed pickle of JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(unpickled_text(inflated(base64.b64decode(text.encode("utf-8")))))
    except (ValueError, zlib.error, RecursionError) as error:
        raise Unreadable(f"the tests are neither JSON nor encoded JSON: {error}") from None


def tests_of(text, column):
    tests = decoded(text)
    if not isinstance(tests, list) or len(tests) > TESTS_MAX:
        raise Unreadable(f"{column} is no list of tests")
    for test in tests:
        if not isinstance(test, dict) or test.get("testtype") not in ("stdin", "functional"):
            raise Unreadable(f"{column} holds something that is no test")
        if not isinstance(test.get("input"), str) or not isinstance(test.get("output"), str):
            raise Unreadable(f"{column} holds a test without input or output")
    return tests


def record_of(tests, name):
    return {
        "inputs": [test["input"] for test in tests],
        "outputs": [test["output"] for test in tests],
        "fn_name": name,
    }


# The program's process


def pipe_holding(content):
    """Returns an anonymous file with this content, positioned at its start."""
    file = tempfile.TemporaryFile(dir=".")
    file.write(content)
    file.flush()
    file.seek(0)
    return file


def started(passed, folder, user):
    """Starts the program's process with these file descriptors."""
    child = taken("child.py")
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", child, *map(str, passed)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=passed,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder},
        start_new_session=True,
        **user,
    )
    for descriptor in passed:
        os.close(descriptor)
    try:
        # If memory runs out, the program is killed first.
        pathlib.Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:
        pass
    return process


class Messages:
    """Output of the process, read up to a limit."""

    def __init__(self, process, descriptor):
        self.process = process
        self.descriptor = descriptor
        self.content = b""
        self.is_over = False

    def wait(self, deadline, enough):
        """Waits until there is enough, the process has closed its output, or the time is up."""
        while not self.is_over and not enough(self.content) and len(self.content) <= MESSAGES_MAX:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            has_ended = self.process.poll() is not None
            ready, _, _ = select.select([self.descriptor], [], [], 0 if has_ended else min(left, TICK))
            if ready:
                piece = os.read(self.descriptor, 1 << 16)
                self.content += piece
                self.is_over = not piece
            elif has_ended:
                self.is_over = True


def end(process):
    """Kills the process and all its descendants, even those that left its session."""
    process.kill()
    end_children()


def report_in(messages, word, count):
    """Returns the report of the process, if the official program could produce it for this number of tests."""
    lines = messages.split(b"\n")
    if len(lines) != 3 or lines[2] or not lines[1].startswith(word):
        return None
    try:
        report = json.loads(lines[1][len(word) :])
        results, metadata = report["results"], report["metadata"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(results, list) or not isinstance(metadata, dict):
        return None
    has_passed = all(is_pass(result) for result in results)
    if len(results) > count + 1 or (has_passed and (len(results) != count or "error_code" in metadata)):
        return None
    return {"results": results, "metadata": metadata}


def is_pass(result):
    return isinstance(result, (bool, int, float)) and result > 0


def run(task, tests, code, source, compare):
    folder = tempfile.mkdtemp(prefix="program-")  # in TMPDIR, which another user can access, too
    user = other_user(folder)
    count = len(tests)
    official_wait = (task["timeout"] + 1) * count + 5
    wait = min(official_wait, task["wait_max"])
    if compare is None:
        report, said = run_officially(task, tests, code, source, wait, folder, user)
    else:
        report, said = run_isolated(task, tests, code, source, wait, folder, user, compare)
    return {
        **report,
        "grader": "isolated" if compare else task["module"],
        "tests": count,
        "wait": wait,
        "wait_cut": wait < official_wait,
        "python": ".".join(map(str, sys.version_info[:3])),
        "apart": bool(user),
        **said,
    }


def run_officially(task, tests, code, source, wait, folder, user):
    """Runs the program in one process with its tests and their comparison. Returns a report and facts about the run."""
    word = os.urandom(32).hex().encode("ascii")
    work = {
        "module": task["module"],
        "source": source,
        "record": json.dumps(record_of(tests, task["fn_name"])),
        "code": code,
        "timeout": task["timeout"],
    }
    descriptor, result_write = os.pipe()
    word_read, word_write = os.pipe()
    os.write(word_write, word)
    os.close(word_write)
    payload = pipe_holding(json.dumps(work).encode("ascii"))
    work = None
    process = started((os.dup(payload.fileno()), result_write, word_read), folder, user)
    payload.close()
    messages = Messages(process, descriptor)
    try:
        messages.wait(time.monotonic() + START_MAX, lambda content: b"\n" in content)
        greeting = messages.content.partition(b"\n")[0]
        if greeting not in (b"numpy", b"plain"):
            sys.exit(f"the runner did not start (exit status {process.poll()})")
        began = time.monotonic()
        messages.wait(began + wait, lambda content: content.count(b"\n") >= 2)
        elapsed = time.monotonic() - began
        # Data that a process writes right before it ends is available before its end is noticed.
        status = process.poll() if not messages.is_over else settled(process)
    finally:
        end(process)
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)
    report = report_in(messages.content, word, len(tests))
    if report is None:
        report = without_result(status, elapsed, wait)
    return report, {"elapsed": round(elapsed, 3), "numpy": greeting == b"numpy"}


def run_isolated(task, tests, code, source, wait, folder, user, compare):
    """Runs the program in a process that gets only the inputs, and compares in this one. Returns the same."""
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    process = started((request_read, reply_write), folder, user)
    elapsed = 0.0
    try:
        channel = compare.Channel(process, request_write, reply_read)
        channel.deadline = time.monotonic() + START_MAX
        try:
            greeting = channel.receive()
            has_numpy, is_isolated = greeting["numpy"], greeting["isolated"]
        except (compare.Gone, compare.TooLong, KeyError):
            sys.exit(f"the runner did not start (exit status {process.poll()})")
        if not is_isolated:
            raise Unsafe
        session = compare.Session(module_of("runner", source), channel, task, tests)
        began = time.monotonic()
        channel.deadline = began + wait
        try:
            results, metadata = session.run(code, source)
            report = {"results": results, "metadata": shortened(metadata)}
        except (compare.Gone, compare.TooLong):
            elapsed = time.monotonic() - began
            status = None if elapsed >= wait else settled(process)
            report = without_result(status, elapsed, wait)
        elapsed = time.monotonic() - began
    finally:
        end(process)
        os.close(request_write)
        os.close(reply_read)
        shutil.rmtree(folder, ignore_errors=True)
    return report, {"elapsed": round(elapsed, 3), "numpy": bool(has_numpy)}


def shortened(metadata):
    names = ("error", "error_code", "error_message", "execution time")
    said = {name: metadata[name] for name in names if name in metadata}
    return {name: value[:TEXT_CHARS_MAX] if isinstance(value, str) else value for name, value in said.items()}


def without_result(status, elapsed, wait):
    error = ended(status, elapsed, wait)
    return {"results": [-2], "metadata": {"error": error, "error_code": -5, "error_message": "TestRunnerError"}}


def settled(process):
    try:
        return process.wait(TICK)
    except subprocess.TimeoutExpired:
        return None


def ended(status, elapsed, wait):
    if status is None:
        return f"it was killed after {elapsed:.0f} s without a result" if elapsed >= wait else "it left no result"
    return f"it was ended by signal {-status}" if status < 0 else f"it left with status {status} and no result"


def main():
    prepare()
    os.umask(0o077)
    task = json.loads(taken("task.json"))
    key = bytes.fromhex(task.pop("key"))
    code = taken("program.txt")
    source = taken(task["module"] + ".py")
    public, private = taken("public.json"), taken("private.txt")
    compare = module_of("compare", taken("compare.py")) if task["isolated"] else None
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(50000)
    removed("supervisor.py")
    try:
        tests = tests_of(public, "public_test_cases") + tests_of(private, "private_test_cases")
    except Unreadable as error:
        write_signed("results.json", {"problem": re.sub(r"\s+", " ", str(error))[:300]}, key)
        return
    public = private = None
    # Reserves space for the results, even if the program fills the disk.
    pathlib.Path("reserve").write_bytes(bytes(RESERVE))
    write_signed("started.json", {"tests": len(tests)}, key)
    try:
        results = run(task, tests, code, source, compare)
    except Unsafe:
        results = {"unsafe": True}
    removed("reserve")
    write_signed("results.json", results, key)


if __name__ == "__main__":
    main()
