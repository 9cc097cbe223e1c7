"""Runs programs for the tests of a programming task.

A test file imports this module as `lab`. Its code runs in a process that the answer's programs can't reach: they get
arguments, input and files, and are judged by their output and the files that they leave.

    import lab

    class Totals(lab.Case):
        def test_empty_input_has_no_total(self):
            self.write("orders.csv", "sku,count\\n")
            done = self.program("python3", "report.py", "orders.csv")
            self.assertEqual(done.status, 0, done)
            self.assertEqual(done.stdout, "total 0\\n")

Each test has a copy of the built workspace as its folder. `{bin}` and `{build}` in an argument are the folders for what
the build commands made.
"""

import json
import os
import selectors
import shutil
import signal
import stat
import subprocess
import time
import unittest

OUTPUT_MAX = 8 << 20
FILE_MAX = 16 << 20
SHOWN_MAX = 2000
DEFAULT_SECONDS = 10.0
POLL_SECONDS = 0.05

# Set by the supervisor.
host = None


def scale(seconds):
    """Returns a time limit on this host, which may be slower than the one that ran the reference."""
    return seconds * host.time_scale


class OutOfTime(KeyboardInterrupt):
    """The time of all tests together is over. `unittest` takes every other exception for a test's own."""


class Result:
    """A program that has ended: `status` (negative for a signal), `stdout` and `stderr` as texts, `seconds`."""

    def __init__(self, argv, status, stdout, stderr, seconds):
        self.argv = argv
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds

    def json(self):
        """Returns the standard output as JSON."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"the standard output is no JSON: {self}") from None

    def __str__(self):
        def shown(text):
            return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text)} characters)"

        return f"{' '.join(self.argv)} ended with status {self.status}; stdout: {shown(self.stdout)!r}; stderr: {shown(self.stderr)!r}"


class Raised(Exception):
    """An error that a driver answered with: its `kind` and `message`."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Process:
    """A program that runs while the test talks to it, line by line."""

    def __init__(self, case, argv, env, seconds):
        self.argv = argv
        self.seconds = seconds
        self._was_ended = False
        self._process = host.start(argv, case.folder, env)
        self._out = b""
        self._err = b""
        self._open = {self._process.stdout: "_out", self._process.stderr: "_err"}
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(stream.fileno(), False)

    def send(self, line):
        """Sends a line; the line's end is added."""
        self._feed((line + "\n").encode("utf-8"), time.monotonic() + scale(self.seconds))

    def end_input(self):
        """Closes the program's standard input."""
        if not self._process.stdin.closed:
            self._process.stdin.close()

    def line(self, seconds=None):
        """Returns the next line of the standard output, without its end."""
        deadline = time.monotonic() + scale(seconds or self.seconds)
        while b"\n" not in self._out:
            if self._process.stdout not in self._open:
                raise AssertionError(f"{self._name()} ended its output{self._tail()}")
            if not self._read(deadline):
                raise self._late("printed no line in time")
        line, _, self._out = self._out.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def wait(self, seconds=None):
        """Closes the input, waits for the end, and returns the `Result` with the output that `line` didn't take."""
        self.end_input()
        began = time.monotonic()
        deadline = began + scale(seconds or self.seconds)
        while self._open:
            now = time.monotonic()
            if now >= deadline:
                self.kill()
                raise self._late("did not end in time")
            # Processes that the program left may keep its output open.
            if not self._read(min(deadline, now + POLL_SECONDS)) and self._process.poll() is not None:
                break
        return self._result(began, deadline)

    def kill(self, number=signal.SIGKILL):
        """Sends a signal to the program."""
        if self._process.poll() is None:
            self._was_ended = True
            self._process.send_signal(number)

    def _result(self, began, deadline):
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._late("closed its output but did not end") from None
        self._note(status)
        out, err = (text.decode("utf-8", "replace") for text in (self._out, self._err))
        result = Result(self.argv, status, out, err, time.monotonic() - began)
        host.log(str(result))
        return result

    def _feed(self, data, deadline):
        stdin = self._process.stdin
        with selectors.DefaultSelector() as waiting:
            waiting.register(stdin, selectors.EVENT_WRITE)
            while data:
                self._read(time.monotonic())
                if not waiting.select(min(0.05, max(0.0, deadline - time.monotonic()))):
                    if time.monotonic() >= deadline:
                        raise self._late("doesn't read its input")
                    continue
                try:
                    data = data[os.write(stdin.fileno(), data) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    # Programs may end without reading all input. What they print then counts.
                    return

    def _read(self, deadline):
        """Reads what is there, and waits for something until the deadline. Returns false if nothing came."""
        if not self._open:
            return True
        with selectors.DefaultSelector() as waiting:
            for stream in self._open:
                waiting.register(stream, selectors.EVENT_READ)
            events = waiting.select(max(0.0, deadline - time.monotonic()))
        for key, _ in events:
            try:
                piece = os.read(key.fd, 1 << 16)
            except BlockingIOError:
                continue
            name = self._open[key.fileobj]
            setattr(self, name, getattr(self, name) + piece)
            if len(getattr(self, name)) > OUTPUT_MAX:
                self.kill()
                raise AssertionError(f"{self._name()} printed more than {OUTPUT_MAX} bytes")
            if not piece:
                del self._open[key.fileobj]
        return bool(events)

    def _note(self, status):
        if not self._was_ended:
            host.note_status(status)

    def _late(self, what):
        host.was_late = True
        return AssertionError(f"{self._name()} {what}{self._tail()}")

    def _name(self):
        return " ".join(self.argv)

    def _tail(self):
        end = time.monotonic() + 0.2
        while self._open and self._read(end):
            pass
        status = self._process.poll()
        ended = "" if status is None else f"; it ended with status {status}"
        if status is not None:
            self._note(status)
        err = self._err.decode("utf-8", "replace")[-SHOWN_MAX:]
        return f"{ended}; stderr: {err!r}"

    def _close(self):
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            try:
                stream.close()
            except OSError:
                pass


class Driver(Process):
    """A program that answers requests, one JSON object per line.

    A request is `{"op": NAME, ...arguments}`. The answer is `{"result": VALUE}`, or `{"error": KIND, "message": TEXT}`.
    """

    def call(self, op, /, **arguments):
        """Sends a request and returns the result. Raises `Raised` for an error."""
        self.send(json.dumps({"op": op, **arguments}))
        line = self.line()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "error" in answer:
            raise Raised(answer["error"], answer.get("message", ""))
        if not isinstance(answer, dict) or "result" not in answer:
            raise AssertionError(f"{self._name()} answered {op} with {line[:SHOWN_MAX]!r}{self._tail()}")
        return answer["result"]


class Case(unittest.TestCase):
    """A group of tests. Each test has a folder of its own, a copy of the built workspace."""

    maxDiff = 4000

    @property
    def folder(self):
        """The test's folder, made when it is first needed."""
        if self.__dict__.get("_folder") is None:
            self._folder = host.copy_workspace()
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def program(self, *argv, stdin="", env=None, seconds=DEFAULT_SECONDS):
        """Runs a program to its end and returns its `Result`. Fails the test if it takes longer than `seconds`."""
        process = self.process(*argv, env=env, seconds=seconds)
        data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
        if data:
            process._feed(data, time.monotonic() + scale(seconds))
        return process.wait()

    def process(self, *argv, env=None, seconds=DEFAULT_SECONDS):
        """Starts a program. Each wait for it takes at most `seconds`."""
        return self._start(Process, argv, env, seconds)

    def driver(self, *argv, env=None, seconds=DEFAULT_SECONDS):
        """Starts a program that answers requests in JSON."""
        return self._start(Driver, argv, env, seconds)

    def _start(self, kind, argv, env, seconds):
        process = kind(self, [host.fill(str(part)) for part in argv], env or {}, seconds)
        self.addCleanup(host.end_children)
        self.addCleanup(process._close)
        return process

    def path(self, name):
        """Returns the path of a file in the test's folder."""
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """Writes a file into the test's folder, with the folders above it."""
        host.write_file(self.folder, name, content.encode("utf-8") if isinstance(content, str) else content)

    def read_bytes(self, name):
        """Returns the content of a file that the answer has or a program wrote. Links aren't followed."""
        try:
            descriptor = os.open(self.path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise AssertionError(f"{name} can't be read: {error.strerror}") from None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise AssertionError(f"{name} is no file")
            content = file.read(FILE_MAX + 1)
        if len(content) > FILE_MAX:
            raise AssertionError(f"{name} has more than {FILE_MAX} bytes")
        return content

    def read(self, name):
        """Returns the text of a file."""
        try:
            return self.read_bytes(name).decode("utf-8")
        except UnicodeDecodeError:
            raise AssertionError(f"{name} is no UTF-8 text") from None

    def exists(self, name):
        """Returns true if a file or a folder has this name."""
        return os.path.lexists(self.path(name))
