"""Grades one answer to a programming task: builds its workspace and runs the task's tests.

Runs in the job's folder. `task.json` holds everything; this process removes it before a program of the answer starts, and
keeps the tests and the task's key in its memory, which programs of the answer can't read. `results.json` holds a text and
an authentication code, which requires the key. Programs run as another user if possible, otherwise as this one.
"""

import base64
import importlib.abc
import importlib.util
import json
import os
import pathlib
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

# Bytes.
LOG_MAX = 256 << 10
FAILURE_MAX = 4000
# Characters of an argument that the log shows.
SHOWN_MAX = 200

POLL_SECONDS = 0.05
# Variable with the folder of installed packages, which can only be read.
PACKAGES_VARIABLE = "SANDY_PACKAGES"
# Folder in the toolchain of Go with the compiled standard library, in the form of a build cache.
GO_CACHE = "std-cache"

# Reads the memory of its parent process, which must fail.
PROBE = """
import os, sys
try:
    open(f"/proc/{os.getppid()}/mem", "rb").close()
except OSError:
    sys.exit(0)
sys.exit(1)
"""


class Log:
    """Text of which the beginning and the end are kept."""

    def __init__(self, limit=LOG_MAX):
        self.half = limit // 2
        self.head = ""
        self.tail = ""
        self.dropped = 0

    def add(self, text):
        room = self.half - len(self.head)
        if room > 0 and not self.tail:
            self.head += text[:room]
            text = text[room:]
        self.tail += text
        if len(self.tail) > 2 * self.half:
            self.dropped += len(self.tail) - self.half
            self.tail = self.tail[-self.half :]

    def text(self):
        tail, dropped = self.tail, self.dropped
        if len(tail) > self.half:
            dropped += len(tail) - self.half
            tail = tail[-self.half :]
        middle = f"\n[{dropped} characters left out]\n" if dropped else ""
        return self.head + middle + tail


def needs_go(task):
    return task["runner"] == "go" or any(argv[0] == "go" for argv in task["build"])


class Unloadable(Exception):
    """The task's test files can't be loaded."""


class Host:
    """The place where programs of the answer run: folders, environment, user, and the processes that are left."""

    def __init__(self, task, lab, root=None):
        """Makes the place in a new folder, or in `root`. What is there already stays as it is."""
        self.lab = lab
        self.task = task
        self.was_killed = False
        self.was_late = False
        self.time_scale = 1.0
        self.end_children = end_children
        self.output = Log()
        is_new = root is None or not os.path.isdir(root)
        if is_new and root is not None:
            os.mkdir(root, 0o700)
        # In TMPDIR, which another user can access, too.
        self.root = root or tempfile.mkdtemp(prefix="task-")
        self.user = other_user(self.root)
        self.has_own_user = bool(self.user)
        self.folders = {name: self.folder(name) for name in ("workspace", "bin", "build", "home")}
        if not is_new:
            return
        for path, file in task["files"].items():
            self.write_file(self.folders["workspace"], path, decode(file), file.get("x", False))
        if task["runner"] != "lab" and not os.path.lexists(os.path.join(self.folders["workspace"], "workspace")):
            # Tests may name files as they lie in the task's own folder.
            os.symlink(".", os.path.join(self.folders["workspace"], "workspace"))
        self.place_packages()
        self.seed_go_cache()

    def place_packages(self):
        """Makes the packages that the task declares known to package managers."""
        packages = self.task["packages"]
        for path, text in packages["files"].items():
            self.write_file(self.root, os.path.relpath(self.fill_folders(path), self.root), self.fill_folders(text).encode("utf-8"))
        for path, target in packages["links"].items():
            link = os.path.join(self.folders["workspace"], path)
            if os.path.isdir(os.path.dirname(link)) and not os.path.lexists(link):
                os.symlink(self.fill_folders(target), link)

    def fill_folders(self, text):
        """Fills in the folders of packages and of the programs' home."""
        text = text.replace("{packages}", os.environ.get(PACKAGES_VARIABLE, "/nonexistent"))
        return text.replace("{home}", self.folders["home"])

    def package_variables(self):
        return {name: self.fill_folders(value) for name, value in self.task["packages"]["variables"].items()}

    def seed_go_cache(self):
        """Fills Go's build cache with links to the compiled standard library, if the toolchain has it."""
        program = shutil.which("go")
        source = program and os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), GO_CACHE)
        if not source or not os.path.isdir(source) or not needs_go(self.task):
            return
        target = self.folder("go-cache")
        for name in os.listdir(source):
            if not os.path.isdir(os.path.join(source, name)):
                continue
            os.mkdir(os.path.join(target, name), 0o755)
            self.give(os.path.join(target, name))
            for entry in os.listdir(os.path.join(source, name)):
                os.symlink(os.path.join(source, name, entry), os.path.join(target, name, entry))
        # Says that the cache was trimmed just now, so that Go doesn't remove links to old files.
        self.write_file(target, "trim.txt", str(int(time.time())).encode("ascii"))

    def folder(self, name):
        path = os.path.join(self.root, name)
        try:
            os.mkdir(path, 0o755)
        except FileExistsError:
            return path
        self.give(path)
        return path

    def give(self, path):
        if self.has_own_user:
            os.chown(path, OTHER_USER, OTHER_USER, follow_symlinks=False)

    def write_file(self, folder, path, content, is_executable=False):
        if os.path.isabs(path) or ".." in path.split("/"):
            raise ValueError(f"{path} leads out of the folder")
        target = os.path.join(folder, path)
        above = folder
        for part in path.split("/")[:-1]:
            above = os.path.join(above, part)
            try:
                os.mkdir(above, 0o755)
            except FileExistsError:
                if os.path.islink(above):
                    raise AssertionError(f"{path} leads through a link") from None
                continue
            self.give(above)
        removed(target)
        # Programs in sandboxes can't change modes, so that the mode is set when the file is made.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(target, flags, 0o755 if is_executable else 0o644), "wb") as file:
            file.write(content)
        self.give(target)

    def copy_workspace(self):
        """Returns a new copy of the built workspace."""
        target = tempfile.mkdtemp(prefix="test-", dir=self.root)
        self.give(target)
        for above, folders, files in os.walk(self.folders["workspace"]):
            there = os.path.join(target, os.path.relpath(above, self.folders["workspace"]))
            for name in folders:
                source = os.path.join(above, name)
                if os.path.islink(source):
                    os.symlink(os.readlink(source), os.path.join(there, name))
                else:
                    os.mkdir(os.path.join(there, name), 0o755)
                    self.give(os.path.join(there, name))
            for name in files:
                copy_file(os.path.join(above, name), os.path.join(there, name), self.give)
        return target

    def fill(self, text):
        for name in ("bin", "build"):
            text = text.replace("{" + name + "}", self.folders[name])
        return text

    def environment(self, own):
        env = {
            "PATH": f"{self.folders['bin']}:{os.environ.get('PATH', os.defpath)}",
            "LANG": "C.UTF-8",
            "HOME": self.folders["home"],
            "TMPDIR": self.folders["home"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "GOCACHE": os.path.join(self.root, "go-cache"),
            "GOPATH": os.path.join(self.folders["home"], "go"),
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
            "GOTELEMETRY": "off",
            "CGO_ENABLED": "0",
            "CARGO_HOME": os.path.join(self.folders["home"], "cargo"),
            "CARGO_NET_OFFLINE": "true",
            "CARGO_TARGET_DIR": self.folders["build"],
            # A project is built once: without what only a second build or a debugger needs, that takes half the time.
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
            "CARGO_TERM_COLOR": "never",
        }
        for name in ("RUSTUP_HOME", "RUSTUP_TOOLCHAIN"):
            if name in os.environ:
                env[name] = os.environ[name]
        packages = self.package_variables()
        env.update(packages)
        env.update(self.task.get("env") or {})
        env.update(own)
        # A path of the task's own doesn't replace that of its packages.
        path = packages.get("PYTHONPATH")
        if path and path not in env["PYTHONPATH"].split(os.pathsep):
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [path, env["PYTHONPATH"]]))
        return env

    def start(self, argv, folder, own_env, pass_fds=()):
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=os.path.join(folder, self.task.get("working_dir") or "."),
                env=self.environment(own_env),
                bufsize=0,
                start_new_session=True,
                pass_fds=pass_fds,
                **self.user,
            )
        except (OSError, ValueError) as error:
            raise AssertionError(f"{' '.join(argv)} can't be started: {error}") from None
        try:
            # If memory runs out, the program is killed first.
            pathlib.Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        except OSError:
            pass
        return process

    def run(self, argv, deadline, own_env=None, pass_fds=(), kept=None):
        """Runs a program in the workspace to its end, and logs its output, which is also added to `kept`.

        Returns its status; `None` if the deadline came first. Processes that it leaves are ended.
        """
        self.log("$ " + " ".join(part if len(part) < SHOWN_MAX else part[:SHOWN_MAX] + "…" for part in argv))
        process = self.start(argv, self.folders["workspace"], own_env or {}, pass_fds)
        process.stdin.close()
        status = None
        with selectors.DefaultSelector() as waiting:
            for stream in (process.stdout, process.stderr):
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map() and time.monotonic() < deadline:
                events = waiting.select(POLL_SECONDS)
                # Processes that the program left may keep its output open.
                if not events and process.poll() is not None:
                    break
                for key, _ in events:
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        waiting.unregister(key.fileobj)
                        continue
                    text = piece.decode("utf-8", "replace")
                    self.output.add(text)
                    if kept is not None:
                        kept.append(text)
        try:
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        process.stdout.close()
        process.stderr.close()
        end_children()
        if status is not None:
            self.note_status(status)
        return status

    def note_status(self, status):
        # Tests that kill a program don't ask for its status as a sign of trouble: this is only a hint in the verdict.
        if status in (-signal.SIGKILL, 128 + signal.SIGKILL):
            self.was_killed = True

    def log(self, text):
        self.output.add(text + "\n")

    def make_programs_executable(self, names=("bin", "build")):
        """Replaces programs that a linker wrote but couldn't make executable, in some of the folders."""
        for name in names:
            for above, _, files in os.walk(self.folders[name]):
                for path in (os.path.join(above, file) for file in files):
                    if not os.path.islink(path) and not os.access(path, os.X_OK) and is_program(path):
                        copy_file(path, path + ".run", self.give, 0o755)
                        os.replace(path + ".run", path)


def decode(file):
    return file["text"].encode("utf-8") if "text" in file else base64.b64decode(file["base64"])


def is_program(path):
    """Returns true for an ELF program, which `ld` makes as a position-independent one (type 3) or not (2)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        start = file.read(18) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    return start[:4] == b"\x7fELF" and start[16] in (2, 3) and not path.endswith((".so", ".rlib", ".rmeta"))


def copy_file(source, target, give, mode=None):
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return  # A link, or a file that the build removed.
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode & 0o777 if mode is None else mode
        out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
        with os.fdopen(out, "wb") as copy:
            shutil.copyfileobj(file, copy)
    give(target)


# Build


def build(host, task, deadline):
    """Runs the build commands. Returns what the failed one left; `None` if all succeeded."""
    for argv in task["build"]:
        argv = [host.fill(part) for part in argv]
        try:
            status = host.run(argv, deadline)
        except AssertionError as error:
            host.log(str(error))
            status = 127
        if status != 0:
            return {"argv": argv, "status": status}
        host.make_programs_executable()
    return None


def time_limit(task):
    """Returns the time limit of the build and the tests on this host, in seconds, and the reason for it."""
    own, known = task["timeout_seconds"], task["calibration"]
    if not known["host_ms"]:
        return own, "the task's own; its proof doesn't tell the speed of the host that ran the reference"
    try:
        path = os.path.join(os.environ.get(PACKAGES_VARIABLE, "/nonexistent"), known["speed_file"])
        here = float(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))[known["language"]])
    except (OSError, ValueError, TypeError, KeyError):
        return own, "the task's own; the speed of this host wasn't measured"
    ratio = round(here / known["host_ms"], 2)
    where = f"this host needs {ratio} times the time of the one that ran the reference"
    if ratio <= 1:
        return own, f"the task's own; {where}"
    limit = min(round(own * ratio, 1), known["limit_max"])
    return limit, f"raised from {own} s; {where}"


# Tests


class TestFiles(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports test files from memory, so that no program of the answer can read them."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        if name in self.sources:
            return importlib.util.spec_from_loader(name, self, origin=f"tests/{name}.py")
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(self.sources[name], f"tests/{name}.py", "exec", dont_inherit=True), module.__dict__)


class Recorder(unittest.TestResult):
    """Records each test's outcome under its name."""

    def __init__(self, host):
        super().__init__()
        self.host = host
        self.outcomes = {}
        self.began = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.host.log(f"=== {test.id()}")

    def record(self, test, outcome, text=""):
        name = test.id()
        earlier = self.outcomes.get(name)
        if earlier is not None and earlier["outcome"] != "passed":
            return
        seconds = round(time.monotonic() - self.began, 3)
        self.outcomes[name] = {"outcome": outcome, "seconds": seconds, "text": text[-FAILURE_MAX:]}
        self.host.log(f"--- {outcome} in {seconds} s" + (f"\n{text}" if text else ""))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.record(test, "passed")

    @unittest.result.failfast
    def addFailure(self, test, err):
        self.record(test, "failed", failure_text(err))

    @unittest.result.failfast
    def addError(self, test, err):
        self.record(test, "failed", failure_text(err))

    def addSkip(self, test, reason):
        self.record(test, "failed", f"the test was skipped: {reason}")

    def addExpectedFailure(self, test, err):
        self.record(test, "failed", "the test is marked as failing")

    def addUnexpectedSuccess(self, test):
        self.record(test, "failed", "the test is marked as failing")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.record(test, "failed", f"{subtest._subDescription()}: {failure_text(err)}")


def failure_text(err):
    kind, error, trace = err
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith("tests/")]
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    message = str(error) if issubclass(kind, AssertionError) else f"{kind.__name__}: {error}"
    return place + message


def loaded_tests(task, lab):
    """Returns the tests in the task's test files, which are loaded into this process."""
    sources = {}
    for path, file in task["tests"].items():
        if path.endswith(".py") and "/" not in path:
            sources[path.removesuffix(".py")] = decode(file).decode("utf-8")
    data = {path: decode(file) for path, file in task["tests"].items() if not path.endswith(".py")}
    lab.data = data.__getitem__
    sys.modules["lab"] = lab
    sys.meta_path.insert(0, TestFiles(sources))
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(
        loader.loadTestsFromName(name) for name in sorted(sources) if name.startswith("test_")
    )
    if task["only"] is not None:
        suite = unittest.TestSuite(test for test in flattened(suite) if test.id() in task["only"])
    if loader.errors:
        raise Unloadable(loader.errors[0].strip().splitlines()[-1])
    return suite


def flattened(suite):
    for test in suite:
        yield from flattened(test) if isinstance(test, unittest.TestSuite) else [test]


def outside_tests(host, suite, deadline):
    """Runs the tests in this process. Returns the outcomes by name, and whether the time was up."""
    lab = host.lab
    recorder = Recorder(host)
    recorder.failfast = host.task["stops_at_failure"]

    def late(_number, _frame):
        raise lab.OutOfTime

    signal.signal(signal.SIGALRM, late)
    # A signal whose exception a test swallows comes again.
    signal.setitimer(signal.ITIMER_REAL, max(0.1, deadline - time.monotonic()), 1)
    is_late = False
    try:
        suite.run(recorder)
    except lab.OutOfTime:
        is_late = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        end_children()
    return recorder.outcomes, is_late


def graded(task, lab, inside):
    suite = loaded_tests(task, lab) if task["runner"] == "lab" else None
    host = Host(task, lab)
    lab.host = host
    check_isolation(host)
    try:
        began = time.monotonic()
        limit, reason = time_limit(task)
        host.time_scale = limit / task["timeout_seconds"]
        deadline = began + limit
        failed_build = build(host, task, deadline)
        build_output, host.output = host.output.text(), Log()
        build_seconds = time.monotonic() - began
        results = {
            "build_seconds": round(build_seconds, 3),
            "build_output": build_output,
            "limit_seconds": limit,
            "limit_reason": reason,
        }
        if suite is None and failed_build is None:
            outcomes, failed_build, is_late = inside.run(task["runner"], host, task["args"], deadline)
            if failed_build:
                results["build_output"] = host.output.text()
        elif failed_build is None:
            outcomes, is_late = outside_tests(host, suite, deadline)
        if failed_build:
            return {**results, "build": failed_build, "was_killed": host.was_killed}
        return {
            **results,
            "tests": outcomes,
            "timed_out": is_late,
            "was_late": host.was_late,
            "was_killed": host.was_killed,
            "test_seconds": round(time.monotonic() - began - build_seconds, 3),
            "test_output": host.output.text(),
            "apart": host.has_own_user,
            "python": ".".join(map(str, sys.version_info[:3])),
        }
    finally:
        end_children()
        shutil.rmtree(host.root, ignore_errors=True)


def check_isolation(host):
    """Makes sure that programs can't read the memory of this process."""
    probe = [sys.executable, "-I", "-B", "-c", PROBE]
    for user in (host.user, {**host.user, "preexec_fn": drop_capabilities}):
        host.user = user
        done = subprocess.run(probe, cwd=host.root, timeout=START_MAX, check=False, **host.user)
        if done.returncode == 0:
            return
    raise Unsafe


def main():
    prepare()
    os.umask(0o022)
    task = json.loads(taken("task.json"))
    key = bytes.fromhex(task.pop("key"))
    lab, inside = module_of("lab", taken("lab.py")), module_of("inside", taken("inside.py"))
    removed("supervisor.py")
    # Reserves space for the results, even if a program fills the disk.
    pathlib.Path("reserve").write_bytes(bytes(RESERVE))
    write_signed("started.json", {}, key)
    try:
        results = graded(task, lab, inside)
    except Unsafe:
        results = {"unsafe": True}
    except Unloadable as error:
        results = {"problem": str(error)[:FAILURE_MAX]}
    except Exception as error:
        traceback.print_exc()
        results = {"crash": f"{type(error).__name__}: {error}"[:FAILURE_MAX]}
    removed("reserve")
    write_signed("results.json", results, key)


if __name__ == "__main__":
    main()
