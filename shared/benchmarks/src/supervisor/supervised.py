"""Parts that supervisors of programs in sandboxes share: users, processes, files, and signed results.

A supervisor is this text and its own, as one file. It removes its files before a program starts.
"""

import ctypes
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import types

START_MAX = 60
OTHER_USER = 65534
STRAGGLER_ROUNDS = 50
RESERVE = 1 << 20
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


class Unsafe(Exception):
    """Programs could read the memory of this process."""


def control(option, value):
    try:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def prepare():
    """Keeps programs from the memory of this process, and gives it the processes that they leave."""
    if sys.version_info < (3, 10):
        sys.exit(f"Python 3.10 or later is needed, this is {sys.version.split()[0]}")
    control(PR_SET_DUMPABLE, 0)
    control(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def other_user(folder):
    """Returns the user to run programs as, if this process can switch to it and it can run Python in the folder."""
    if os.getuid() != 0:
        return {}
    user = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []}
    try:
        os.chmod(".", 0o700)
        os.chown(folder, OTHER_USER, OTHER_USER)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-I", "-B", "-c", "import json, unittest.mock; open('probe', 'w').close()"]
        done = subprocess.run(command, cwd=folder, timeout=START_MAX, check=False, **quiet, **user)
        if done.returncode == 0:
            return user
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    try:
        os.chown(folder, 0, 0)
    except OSError:
        pass
    return {}


def children_of(pid):
    """Returns all child processes of a process."""
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in filter(str.isdigit, names):
        try:
            stat = pathlib.Path("/proc", name, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 1 and fields[1] == str(pid):
            found.append(int(name))
    return found


def end_children():
    """Kills all processes that programs left, even those that left their session."""
    for _ in range(STRAGGLER_ROUNDS):
        children = children_of(os.getpid())
        if not children:
            return
        for child in children:
            for kill in (os.killpg, os.kill):
                try:
                    kill(child, signal.SIGKILL)
                except OSError:
                    pass
            try:
                os.waitpid(child, 0)
            except OSError:
                pass


def removed(path):
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)
    except FileNotFoundError:
        pass


def write_signed(path, content, key):
    text = json.dumps(content)
    inner = hashlib.sha256(key + f"{path}\n{text}".encode("ascii")).digest()
    code = hashlib.sha256(key + inner).hexdigest()
    temporary = f"{path}.tmp"
    removed(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="ascii") as file:
        json.dump({"text": text, "code": code}, file)
        file.flush()
        os.fsync(file.fileno())
    if os.path.isdir(path):
        removed(path)
    os.rename(temporary, path)


def taken(name):
    """Returns the text of a file and removes it."""
    content = pathlib.Path(name).read_bytes()
    os.remove(name)
    return content.decode("utf-8")


def module_of(name, source):
    module = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return module


