"""Runs the programs of a problem's steps one after the other and records how each ended.

The programs are untrusted and run as the same user. The results are protected from them as far as possible: everything
that is needed later is in this process's memory before the first program starts, each program gets its own folder with
fresh copies, processes that it leaves running are killed, and a result only counts with a seal that programs can't
make.

In isolated mode, expected values and comparisons stay in this process and its forks, whose memory programs can't read:
`split.py` splits the tests, `send.py` sends a program's values, `grade.py` compares them. In official mode, and for
tests that can't be split, a program shares its process with its tests.
"""

import ast
import ctypes
import errno
import hashlib
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types

RESULTS = "results.jsonl"
TAIL_BYTES = 2000
CHECK_SECONDS = 300
THREADS_MAX = 4
# Written first, so that there is space for results even if a program fills the disk.
RESERVE_BYTES = 1 << 18

# Interval for checking an isolated program, and maximum time for its last comparisons after its end.
TICK = 0.02
COMPARE_SECONDS = 300
MESSAGE_CHARS = 1000

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
CAPABILITIES_MAX = 64

# These numbers are the same on all architectures.
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_READ_FILE = 1 << 2
# Right to move and link files between folders. Rules that don't mention it deny it. Kernels have it since version 2.
LANDLOCK_REFER = 1 << 13
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1

SECCOMP_MODE_FILTER = 2
SECCOMP_ALLOW = 0x7FFF0000
SECCOMP_ENOSYS = 0x00050000 | errno.ENOSYS

# Prints the versions of modules, and the errors of modules that are missing or can't be imported.
VERSIONS = """
import importlib, json, platform, sys
found = {"python": platform.python_version()}
missing = {}
for name in sys.argv[1:]:
    try:
        found[name] = str(getattr(importlib.import_module(name), "__version__", ""))
    except BaseException as error:
        missing[name] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps([found, missing]))
"""

# Prints why the file with the expected values is unusable: it can't be opened, or values of a test are missing or
# unreadable. Prints nothing if it is usable. Without its values, even a right program would fail.
TARGETS = """
import json, sys
import h5py

def load(member):
    if isinstance(member, h5py.Group):
        for key in member.keys():
            load(member[key])
    else:
        member[()]

def look():
    try:
        file = h5py.File(sys.argv[1], "r")
    except Exception as error:
        return f"cannot be opened as HDF5: {type(error).__name__}: {error}"
    for name, tests in json.loads(sys.argv[2]):
        for number in range(1, tests + 1):
            path = f"{name}/test{number}"
            try:
                if not isinstance(file.get(path), h5py.Group):
                    return f"has no values for step {name}: there is no group {path}"
                load(file[path])
            except MemoryError:
                raise
            except Exception as error:
                return f"has no readable values for step {name} in {path}: {type(error).__name__}: {error}"
    return ""

print(json.dumps(look()[:400]))
"""


def protect():
    """Protects this process's memory from its children and adopts their orphans. Not every sandbox allows this."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def landlock_taker():
    """Returns a function that denies Landlock to the calling process and its descendants.

    A sandbox may allow Landlock to this driver only because `hide` needs it. Programs must not use it, because their
    domains hold kernel memory that isn't accounted for. The function does nothing if the kernel has no system call
    filters (seccomp), which a sandbox that denies Landlock to other commands needs itself.
    """
    # Checks whether the call number, without the bit for x32 calls, is in the range of the three Landlock calls.
    steps = [
        (0x20, 0, 0, 0),
        (0x54, 0, 0, 0xBFFFFFFF),
        (0x35, 0, 2, SYS_LANDLOCK_CREATE_RULESET),
        (0x25, 1, 0, SYS_LANDLOCK_RESTRICT_SELF),
        (0x06, 0, 0, SECCOMP_ENOSYS),
        (0x06, 0, 0, SECCOMP_ALLOW),
    ]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(steps), ctypes.addressof(held))
    try:
        libc = ctypes.CDLL(None)
        prctl = libc.prctl
    except (AttributeError, OSError):
        return lambda: None

    def take(_held=held):
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0)

    return take


# Prepared before the first fork, so that nothing has to be loaded between a fork and its program.
take_landlock = landlock_taker()


class Results:
    """The sealed lines so far. Each write replaces the whole file, which undoes changes by programs."""

    def __init__(self, secret):
        self.secret = secret
        self.lines = []
        with open("reserve", "wb") as reserve:
            reserve.write(b"\0" * RESERVE_BYTES)

    def add(self, kind, sealed, **entry):
        text = "\n".join([kind, *sealed])
        seal = hashlib.sha256(f"{self.secret}\n{text}\n{self.secret}".encode("utf-8", "replace")).hexdigest()
        self.lines.append(json.dumps({"kind": kind, "sealed": sealed, **entry, "seal": seal}))
        try:
            self.write()
        except OSError:
            os.remove("reserve")
            self.write()

    def write(self):
        remove(RESULTS)
        with open(RESULTS + ".tmp", "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in self.lines))
        os.replace(RESULTS + ".tmp", RESULTS)


def remove(path):
    """Removes a file, or anything else at its path."""
    try:
        os.remove(path)
    except FileNotFoundError:
        pass
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def module_of(name, source):
    module = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def children():
    """Returns the child processes of this process."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The command name can contain any characters, but there is none after its last parenthesis.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def kill_the_rest(group, kept=None):
    """Kills all processes that a program left running, except the one that compares its values."""
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
    for _ in range(200):
        try:
            left = [process for process in children() if process != kept]
        except OSError:
            return
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            except OSError:
                pass


class Tail(threading.Thread):
    """Keeps the end of a program's output and discards the rest."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.text = b""
        self.start()

    def run(self):
        try:
            while piece := self.stream.read1(1 << 16):
                self.text = (self.text + piece)[-TAIL_BYTES:]
        except (OSError, ValueError):
            pass

    def read(self):
        self.join(5)
        return self.text.decode("utf-8", "replace")


def environment(folder, mark):
    """Returns the environment variables of a program: the path of the tests' modules, and no display."""
    values = dict(os.environ)
    threads = str(max(1, min(THREADS_MAX, len(os.sched_getaffinity(0)))))
    temporary = os.path.join(folder, "tmp")
    values.update(
        PYTHONPATH=os.path.join(folder, "package"),
        PYTHONDONTWRITEBYTECODE="1",
        MPLBACKEND="Agg",
        MPLCONFIGDIR=temporary,
        HDF5_USE_FILE_LOCKING="FALSE",
        HOME=folder,
        TMPDIR=temporary,
        OPENBLAS_NUM_THREADS=threads,
        OMP_NUM_THREADS=threads,
        SCICODE_MARK=str(mark),
    )
    return values


def lay_out(package):
    """Creates the folder of one program."""
    folder = tempfile.mkdtemp(prefix="step-", dir=os.getcwd())
    for part in ("tmp", "work"):
        os.mkdir(os.path.join(folder, part))
    for path, content in package.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    return folder


def run(folder, arguments, seconds, comparison=None):
    """Runs Python. Returns its exit code (None: time limit), its marks, and the ends of its output.

    With a comparison, the program gets the pipe for its values, is confined, and is killed if a value is wrong. It can
    never use Landlock.
    """

    def prepare():
        if comparison:
            comparison.confine()
        take_landlock()

    mark_in, mark_out = os.pipe()
    os.set_blocking(mark_in, False)
    values = environment(folder, mark_out)
    passed = (mark_out,)
    if comparison:
        values["SCICODE_VALUES"] = str(comparison.values)
        passed += (comparison.values,)
    program = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=os.path.join(folder, "work"),
        env=values,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=passed,
        start_new_session=True,
        preexec_fn=prepare,
    )
    os.close(mark_out)
    out, err = Tail(program.stdout), Tail(program.stderr)
    if comparison:
        comparison.close_values()
        code = comparison.wait_for(program, seconds)
    else:
        try:
            code = program.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = None
    if program.poll() is None:
        program.kill()
        program.wait()
    kill_the_rest(program.pid, comparison.process if comparison else None)
    try:
        mark = os.read(mark_in, 1 << 16)
    except OSError:
        mark = b""
    os.close(mark_in)
    return code, mark, out.read(), err.read()


# Comparisons that programs can't access


class Unsafe(Exception):
    """A program could read the memory of this process."""


def drop_capabilities(libc):
    """Drops the capabilities that let root read the memory of processes that don't allow it."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(CAPABILITIES_MAX):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())


def all_but(hidden):
    """Returns paths that together contain every file but this one."""
    paths, at = [], "/"
    for part in hidden.strip("/").split("/"):
        try:
            names = os.listdir(at)
        except OSError:
            # Folders that can't be listed may still be usable: those of Python's own files and of programs.
            names = [] if at != "/" else "usr lib lib64 bin sbin etc opt dev proc sys run var tmp home root nix srv".split()
        paths += [os.path.join(at, name) for name in names if name != part]
        at = os.path.join(at, part)
    paths += [sys.prefix, sys.base_prefix, *filter(None, sys.path)]
    # A link may point back to the hidden file.
    leads_there = lambda path: (hidden + "/").startswith(os.path.realpath(path).rstrip("/") + "/")
    return [path for path in dict.fromkeys(paths) if not leads_there(path)]


def hide(libc, hidden, folder):
    """Denies reading a file to this process and its children, if the kernel has Landlock."""
    version = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION)
    refer = LANDLOCK_REFER if version >= 2 else 0
    handled = ctypes.c_uint64(LANDLOCK_READ_FILE | refer)
    ruleset = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return
    for path in [*all_but(hidden), folder]:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        # Packed: 8 bytes of rights, 4 bytes of the descriptor.
        rights = LANDLOCK_READ_FILE | (refer if path == folder else 0)
        rule = rights.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
        libc.syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
        os.close(descriptor)
    libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def can_open(path):
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


class Comparisons:
    """Expected values and tests of the steps that can be split."""

    def __init__(self, job, package, targets, split, grade):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.grade = grade
        self.hidden = os.path.realpath(targets)
        self.steps = {}
        os.environ.update(MPLBACKEND="Agg", HDF5_USE_FILE_LOCKING="FALSE", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        install(package)
        # Modules that the tests import are loaded before a program runs, because it could change files that are
        # imported later.
        self.names = {"__name__": "__main__"}
        try:
            exec(job["dependencies"], self.names)
        except Exception:
            pass  # the programs fail with the same error
        reader = sys.modules["scicode.parse.parse"].process_hdf5_to_tuple
        headers = [step["header"] for step in job["steps"]]
        for step in filter(lambda step: step["asked"], job["steps"]):
            parts = split.split(job["dependencies"], headers, step["tests"])
            if parts is None:
                continue
            for statement in ast.walk(ast.parse(parts[1])):
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    try:
                        exec(compile(ast.Module([statement], []), "tests", "exec"), {})
                    except Exception:
                        pass  # the test fails with the same error
            try:
                values = reader(step["name"], len(step["tests"]), targets)
            except Exception:
                continue
            self.steps[step["name"]] = (*parts, values)

    def start(self, name, folder):
        return Comparison(self, name, folder)


def install(package):
    """Creates modules from the package's files in memory, because programs can change files on disk."""
    for path in sorted(package, key=lambda path: (path.count("/"), not path.endswith("__init__.py"))):
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")[1:]
        if parts[-1] in ("end", "send"):
            continue
        module = types.ModuleType(".".join(parts))
        if path.endswith("__init__.py"):
            module.__path__ = []
        sys.modules[module.__name__] = module
        exec(compile(package[path], path, "exec"), module.__dict__)
        if len(parts) > 1:
            setattr(sys.modules[".".join(parts[:-1])], parts[-1], module)


class Comparison:
    """Forked process that compares the values of one program as they arrive."""

    def __init__(self, comparisons, name, folder):
        self.comparisons = comparisons
        self.folder = folder
        self.driver = os.getpid()
        self.outcome = None
        _, source, values = comparisons.steps[name]
        values_in, self.values = os.pipe()
        self.outcome_in, outcome_out = os.pipe()
        self.status_in, self.status_out = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                os.close(self.values)
                names = {**comparisons.names, "targets": values}
                names["process_hdf5_to_tuple"] = lambda *_: values
                kind, message = comparisons.grade.graded(source, names, values_in)
                os.write(outcome_out, json.dumps([kind, message[:MESSAGE_CHARS]]).encode("ascii"))
            finally:
                os._exit(0)
        os.close(values_in)
        os.close(outcome_out)

    def confine(self):
        """Runs in the program's process, before the program."""
        libc, hidden = self.comparisons.libc, self.comparisons.hidden
        drop_capabilities(libc)
        if os.path.exists(hidden):
            hide(libc, hidden, self.folder)
        reached = [can_open(f"/proc/{process}/mem") for process in (self.driver, self.process)]
        os.write(self.status_out, b"m" if any(reached) else b"t" if can_open(hidden) else b"-")
        if any(reached):
            raise Unsafe

    def close_values(self):
        os.close(self.values)
        os.close(self.status_out)
        self.status_out = self.values = None
        self.status = os.read(self.status_in, 1)

    def look(self, seconds):
        """Waits for the outcome, for at most this time."""
        if self.outcome is None and select.select([self.outcome_in], [], [], seconds)[0]:
            text = os.read(self.outcome_in, 1 << 16)
            self.outcome = tuple(json.loads(text)) if text else ("error", "the comparison has ended")
        elif self.outcome is not None:
            time.sleep(seconds)

    def wait_for(self, program, seconds):
        """Returns the program's exit code; None after its time limit. As officially, a wrong value ends the program."""
        until = time.monotonic() + seconds
        while program.poll() is None:
            left = until - time.monotonic()
            if left <= 0:
                return None
            self.look(min(left, TICK))
            if self.outcome and self.outcome[0] in ("fail", "error"):
                program.kill()
                program.wait()
        return program.returncode

    def finish(self):
        """Returns the outcome after the program has ended and all processes have closed its pipe."""
        until = time.monotonic() + COMPARE_SECONDS
        while self.outcome is None and time.monotonic() < until:
            self.look(1)
        return self.outcome or ("time out", "the comparison takes too long")

    def close(self):
        try:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        except OSError:
            pass
        for descriptor in (self.values, self.status_out, self.status_in, self.outcome_in):
            if descriptor is not None:
                os.close(descriptor)


def run_isolated(script, folder, comparison, seconds):
    """Returns result, note and error output of a program whose values are compared in another process."""
    code, mark, out, err = run(folder, [script], seconds, comparison)
    if code is None:
        return "time out", "", err
    kind, message = comparison.finish()
    if kind == "fail":
        return "fail", "wrong value", message
    if kind in ("error", "time out"):
        return kind, "", message
    if code != 0:
        return "fail", f"exit {code}", err
    if kind == "ended":
        # Officially this is a pass: the program exited with code 0 before its tests were complete.
        return "fail", "early-exit", err
    return "pass", "" if mark.endswith(b"end\n") else "early-exit", err


def identity(path):
    """Returns values that change with the file: programs can't set the change time of an inode."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def release(version):
    """Returns the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def program_of(job, parts, at):
    """Returns the program of a step: import lines, the code of earlier steps, and its own code."""
    earlier = b"\n".join(parts[:at])
    return job["dependencies"].encode() + b"\n" + earlier + b"\n\n" + parts[at]


def with_tests(program, step, targets):
    """Returns the program followed by its tests, as the official program writes it."""
    lines = ["", "", "from scicode.parse.parse import process_hdf5_to_tuple", ""]
    lines.append(f"targets = process_hdf5_to_tuple('{step['name']}', {len(step['tests'])}, '{targets}')")
    for at, test in enumerate(step["tests"]):
        lines += [f"target = targets[{at}]", "", test]
    # Marks the end; without quotes and brackets, so that it doesn't close anything that was left open.
    lines += ["import scicode.parse.end", ""]
    return program + "\n".join(lines).encode("utf-8", "surrogatepass")


def with_sent_values(program, source):
    """Returns the program followed by its part of the tests, which sends values instead of comparing them."""
    lines = ["", "", "from scicode.parse.send import send as __send_to_grader", "", source]
    lines += ["import scicode.parse.end", ""]
    return program + "\n".join(lines).encode("utf-8", "surrogatepass")


def look_at(targets, job, package):
    """Returns the error in the file with the expected values, and whether it is certain; None if usable."""
    wanted = [[step["name"], len(step["tests"])] for step in job["steps"] if step["asked"]]
    folder = lay_out(package)
    code, _, out, err = run(folder, ["-c", TARGETS, targets, json.dumps(wanted)], CHECK_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    name = job["targets_name"]
    try:
        problem = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = (err.strip().splitlines() or [""])[-1][:300]
        ended = "took too long" if code is None else f"ended with code {code} {said}".strip()
        return ["unknown", f"looking for the right values in {name} {ended}"]
    return ["useless", " ".join(f"{name} {problem}".split())] if problem else None


def main():
    protect()
    secret = read("seal").decode()
    os.remove("seal")
    job = json.loads(read("job.json"))
    package = {path: read(path) for path in job["package"]}
    parts = [read(step["code"]) for step in job["steps"]]
    targets = os.path.abspath(job["targets"])
    split = grade = None
    if job["grading"] == "isolated":
        split, grade = (module_of(name, read(f"{name}.py")) for name in ("split", "grade"))
    results = Results(secret)

    folder = lay_out(package)
    code, _, out, err = run(folder, ["-c", VERSIONS, *job["modules"]], CHECK_SECONDS)
    try:
        found, missing = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        found, missing = {}, {"python3": f"ended with code {code} while importing modules: {err[-300:]}"}
    broken = ""
    if not missing and any(release(found[name]) >= tuple(end) for name, end in job["below"].items()):
        # The problem's own imports must work; otherwise no program can pass.
        code, _, _, err = run(folder, ["-c", job["dependencies"]], CHECK_SECONDS)
        if code != 0:
            broken = (err.strip().splitlines() or [f"exit code {code}"])[-1][:300]
    shutil.rmtree(folder, ignore_errors=True)
    sealed = [*(f"{name}={found[name]}" for name in sorted(found)), *(f"missing {name}" for name in sorted(missing))]
    if broken:
        sealed.append("broken")
    results.add("environment", sealed, versions=found, missing=missing, broken=broken, grader=job["grader"])
    if missing or broken:
        return
    problem = look_at(targets, job, package)
    if problem:
        results.add("targets", problem)
        return

    comparisons = Comparisons(job, package, targets, split, grade) if split else None
    isolated = comparisons.steps if comparisons else {}
    asked = [(at, step) for at, step in enumerate(job["steps"]) if step["asked"]]
    # Programs in official mode can read the expected values and leave them to later ones, so they run last.
    asked.sort(key=lambda entry: entry[1]["name"] not in isolated)
    if all(step["name"] in isolated for _, step in asked):
        remove(targets)
    before = identity(targets)
    changed = False
    for at, step in asked:
        name = step["name"]
        way = "isolated" if name in isolated else "official"
        if changed and way == "official":
            results.add("step", [name, "fail", "targets-changed", way], seconds=0, stderr="", sha256="")
            continue
        program = program_of(job, parts, at)
        started = time.monotonic()
        folder = comparison = None
        try:
            folder = lay_out(package)
            script = os.path.join(folder, f"{name}.py")
            if way == "isolated":
                with open(script, "wb") as file:
                    file.write(with_sent_values(program, isolated[name][0]))
                comparison = comparisons.start(name, folder)
                result, note, err = run_isolated(script, folder, comparison, job["seconds"])
                way = "readable" if comparison.status == b"t" else way
            else:
                with open(script, "wb") as file:
                    file.write(with_tests(program, step, targets))
                code, mark, out, err = run(folder, [script], job["seconds"])
                changed = identity(targets) != before
                if changed:
                    result, note = "fail", "targets-changed"
                elif code is None:
                    result, note = "time out", ""
                elif code == 0:
                    result, note = "pass", "" if mark.endswith(b"end\n") else "early-exit"
                else:
                    result, note = "fail", f"exit {code}"
        except subprocess.SubprocessError:
            # No code of the program has run.
            results.add("unsafe", [])
            return
        except OSError as error:
            results.add("step", [name, "error", "", way], seconds=0, stderr=str(error), sha256="")
            continue
        finally:
            if comparison:
                comparison.close()
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
        seconds = round(time.monotonic() - started, 3)
        digest = hashlib.sha256(program).hexdigest()
        results.add("step", [name, result, note, way], seconds=seconds, stderr=err, sha256=digest)


main()
