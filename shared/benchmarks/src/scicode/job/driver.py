"""Runs the programs of a problem's steps, one after the other, and notes how each ended.

The programs are untrusted and run under the same user. What they can reach is kept out of the results as far as that goes:
everything that is needed later is in this process's memory before the first of them starts, each gets a folder of its own
with fresh copies, whatever they leave running is killed, and a result counts only under a seal that they cannot make.
"""

import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

RESULTS = "results.jsonl"
TAIL_BYTES = 2000
CHECK_SECONDS = 300
THREADS_MAX = 4
# Written before anything else, so that there is room for results when a program has filled the disk.
RESERVE_BYTES = 1 << 18

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

# Which versions are there. A module that is missing, or breaks when it is imported, is named with what it said.
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

# Whether the file with the right values can be opened and has those of every test, whole. Answers with what is wrong, or
# with nothing: a program whose values are not there would fail, however right it is.
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
    """Keeps this process's memory from its children, and gets their orphans back. Not every sandbox allows it."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (AttributeError, OSError):
        pass


class Results:
    """The lines so far, sealed. The file is written as a whole each time: what was done to it meanwhile is gone."""

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
    """Removes a file, or whatever was put in its place."""
    try:
        os.remove(path)
    except FileNotFoundError:
        pass
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def children():
    """Processes whose parent is this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The command's name may hold anything; what follows its last parenthesis does not.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def kill_the_rest(group):
    """Ends whatever a program left running."""
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
    for _ in range(200):
        try:
            left = children()
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
    """The end of what a program writes; the rest is read and dropped."""

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
    """What a program finds in its environment: the modules that tests use, and no screen."""
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
    """A folder for one program."""
    folder = tempfile.mkdtemp(prefix="step-", dir=os.getcwd())
    for part in ("tmp", "work"):
        os.mkdir(os.path.join(folder, part))
    for path, content in package.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    return folder


def run(folder, arguments, seconds):
    """Runs Python. Gives its exit code (None: time was up), what it marked, and the ends of its output."""
    mark_in, mark_out = os.pipe()
    os.set_blocking(mark_in, False)
    program = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=os.path.join(folder, "work"),
        env=environment(folder, mark_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(mark_out,),
        start_new_session=True,
    )
    os.close(mark_out)
    out, err = Tail(program.stdout), Tail(program.stderr)
    try:
        code = program.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        code = None
        program.kill()
        program.wait()
    kill_the_rest(program.pid)
    try:
        mark = os.read(mark_in, 1 << 16)
    except OSError:
        mark = b""
    os.close(mark_in)
    return code, mark, out.read(), err.read()


def identity(path):
    """Changes when the file does: no program can set the time of the last change of an inode."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def release(version):
    """The first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def program_of(job, parts, at):
    """The saved program of a step: import lines, the codes of the steps before it, its own."""
    earlier = b"\n".join(parts[:at])
    return job["dependencies"].encode() + b"\n" + earlier + b"\n\n" + parts[at]


def with_tests(program, step, targets):
    """The program with its tests behind it, as the official one writes it."""
    lines = ["", "", "from scicode.parse.parse import process_hdf5_to_tuple", ""]
    lines.append(f"targets = process_hdf5_to_tuple('{step['name']}', {len(step['tests'])}, '{targets}')")
    for at, test in enumerate(step["tests"]):
        lines += [f"target = targets[{at}]", "", test]
    # Says that the end was reached; without quotes and brackets, so that it ends nothing that was left open.
    lines += ["import scicode.parse.end", ""]
    return program + "\n".join(lines).encode("utf-8", "surrogatepass")


def look_at(targets, job, package):
    """What is wrong with the file with the right values, and whether that is certain; nothing where it is fit."""
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
    results = Results(secret)

    folder = lay_out(package)
    code, _, out, err = run(folder, ["-c", VERSIONS, *job["modules"]], CHECK_SECONDS)
    try:
        found, missing = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        found, missing = {}, {"python3": f"ended with code {code} while importing modules: {err[-300:]}"}
    broken = ""
    if not missing and any(release(found[name]) >= tuple(end) for name, end in job["below"].items()):
        # What the problem itself imports must be there; otherwise no program can pass.
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

    before = identity(targets)
    changed = False
    for at, step in enumerate(job["steps"]):
        if not step["asked"]:
            continue
        name = step["name"]
        if changed:
            results.add("step", [name, "fail", "targets-changed"], seconds=0, stderr="", sha256="")
            continue
        program = program_of(job, parts, at)
        started = time.monotonic()
        folder = None
        try:
            folder = lay_out(package)
            script = os.path.join(folder, f"{name}.py")
            with open(script, "wb") as file:
                file.write(with_tests(program, step, targets))
            code, mark, out, err = run(folder, [script], job["seconds"])
        except OSError as error:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            results.add("step", [name, "error", ""], seconds=0, stderr=str(error), sha256="")
            continue
        seconds = round(time.monotonic() - started, 3)
        shutil.rmtree(folder, ignore_errors=True)
        changed = identity(targets) != before
        if changed:
            result, note = "fail", "targets-changed"
        elif code is None:
            result, note = "time out", ""
        elif code == 0:
            result, note = "pass", "" if mark.endswith(b"end\n") else "early-exit"
        else:
            result, note = "fail", f"exit {code}"
        digest = hashlib.sha256(program).hexdigest()
        results.add("step", [name, result, note], seconds=seconds, stderr=err, sha256=digest)


main()
