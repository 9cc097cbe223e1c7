"""Lets an agent work on a task's project: lays it out, runs a command of the agent, and collects what the agent changed.

Runs in the folder of a job, as `agent.py layout`, `agent.py run` or `agent.py collect`. The text beside it that grades answers
makes the place, so that the agent's commands have the folders, environment and user of an answer's programs. Nothing here is
secret. An agent can change all of it in its own sandbox, so that callers trust no result.
"""

import hashlib
import json
import os
import pathlib
import selectors
import stat
import subprocess
import sys
import tempfile
import time
import types

# Seconds.
POLL = 0.05
DRAIN = 0.5
# Bytes.
PIECE = 1 << 16
ARGUMENT_MAX = 64 << 10
RESERVE = 64 << 10
# Nested folders that are searched for changes, as paths of tasks may have them.
DEPTH_MAX = 32
ENTRIES_MAX = 100_000
SKIPPED_MAX = 200

# What tools leave. The rules hold for new files only; a file of the task is collected wherever it is.
TOOL_FOLDERS = {".git", ".hg", ".svn", "__pycache__", ".cache", ".venv", "venv", ".tox", "node_modules", ".gradle", ".idea"}
TOOL_FILES = {".DS_Store"}
TOOL_ENDINGS = (".pyc", ".pyo", ".o", ".obj", ".a", ".so", ".class", ".rlib", ".orig", ".rej", ".swp")
# Name and beginning of the file by which tools mark a folder as a cache.
CACHE_TAG = "CACHEDIR.TAG"
CACHE_MARK = b"Signature: 8a477f597d28d172789f06886806bc55"


def supervisor():
    """Loads the text that grades answers, as a module."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py")
    module = types.ModuleType("supervisor")
    exec(compile(pathlib.Path(path).read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    return module


def read_json(name):
    return json.loads(pathlib.Path(name).read_text(encoding="utf-8"))


def write_result(content):
    temporary = "result.json.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        json.dump(content, file)
    os.replace(temporary, "result.json")


def root():
    """Returns the folder of the place, the same for all jobs of a sandbox."""
    jobs = hashlib.sha256(os.path.dirname(os.getcwd()).encode("utf-8", "replace")).hexdigest()
    return os.path.join(tempfile.gettempdir(), f"task-{jobs[:8]}")


def place(parts):
    return parts.Host(read_json("task.json"), None, root())


# Layout


def layout(parts):
    write_result({"folder": place(parts).folders["workspace"]})


# Commands


class Output:
    """The beginning and the end of an output, each up to a size."""

    def __init__(self, size):
        self.size = size
        self.head = b""
        self.tail = b""
        self.dropped = 0

    def add(self, piece):
        room = self.size - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        over = len(self.tail) - self.size
        if over > 0:
            self.dropped += over
            self.tail = self.tail[over:]


def argv_of(script, host):
    data = script.encode("utf-8", "replace")
    if len(data) <= ARGUMENT_MAX:
        return ["bash", "-c", script]
    # The kernel limits the length of an argument.
    path = os.path.join(host.folders["home"], ".command.sh")
    host.write_file(host.folders["home"], ".command.sh", data)
    return ["bash", path]


def run_command(parts, host, command):
    """Runs a command to its end, with all processes that it leaves."""
    began = time.monotonic()
    deadline = began + command["seconds"]
    output = Output(command["output_bytes"])
    status, is_late = None, False
    try:
        process = subprocess.Popen(
            argv_of(command["script"], host),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=host.folders["workspace"],
            env=host.environment({}),
            bufsize=0,
            start_new_session=True,
            **host.user,
        )
    except (OSError, ValueError, AssertionError) as error:
        output.add(f"the command can't be started: {error}\n".encode("utf-8", "replace"))
        status = 126
    else:
        try:
            pathlib.Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        except OSError:
            pass
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            ended_at = None
            while True:
                now = time.monotonic()
                left = deadline - now
                if process.poll() is not None:
                    ended_at = now if ended_at is None else ended_at
                    # Processes that the command left may go on writing.
                    if now - ended_at > DRAIN:
                        break
                elif left <= 0:
                    is_late = True
                    break
                is_readable = bool(waiting.get_map()) and waiting.select(max(0.0, min(POLL, left)))
                if is_readable:
                    piece = os.read(process.stdout.fileno(), PIECE)
                    if piece:
                        output.add(piece)
                    else:
                        waiting.unregister(process.stdout)
                    continue
                # They may also keep its output open without a word.
                if ended_at is not None:
                    break
                if not waiting.get_map():
                    time.sleep(max(0.0, min(POLL, left)))
        if not is_late:
            status = process.returncode
            status = 128 - status if status < 0 else status
        parts.end_children()
        process.stdout.close()
    return {
        "exit_code": status,
        "timed_out": is_late,
        "head": output.head.decode("utf-8", "replace"),
        "tail": output.tail.decode("utf-8", "replace"),
        "omitted": output.dropped,
        "elapsed_ms": int((time.monotonic() - began) * 1000),
    }


def forget_results():
    """Removes the results of earlier commands, which were read before the agent asked for this one."""
    own = os.path.basename(os.getcwd())
    for name in os.listdir(".."):
        if name.startswith("do-") and name != own:
            for file in ("result.json", "out", "err"):
                try:
                    os.remove(os.path.join("..", name, file))
                except OSError:
                    pass


def run(parts):
    parts.prepare()
    os.umask(0o022)
    command = read_json("command.json")
    forget_results()
    # Keeps room for the result, even if the command fills the disk.
    pathlib.Path("reserve").write_bytes(bytes(RESERVE + 6 * command["output_bytes"]))
    host = place(parts)
    result = run_command(parts, host, command)
    os.remove("reserve")
    write_result(result)
    try:
        # So that the next command can start what this one has built.
        host.make_programs_executable(("workspace", "bin", "build", "home"))
    except (OSError, AssertionError):
        pass


# Changes


class Changes:
    """What differs from the task's files, up to limits."""

    def __init__(self, about):
        self.originals = about["originals"]
        self.file_max = about["file_bytes_max"]
        self.room = about["bytes_max"]
        self.files_left = about["files_max"]
        self.found = {}
        self.seen = set()
        self.skipped = []
        self.more_skipped = 0
        self.end = "complete"

    def skip(self, path, why):
        if len(self.skipped) < SKIPPED_MAX:
            self.skipped.append({"path": path, "why": why})
        else:
            self.more_skipped += 1

    def add_file(self, full, path):
        """Adds a file if it is new or different. Returns false at the end of a limit."""
        is_original = path in self.originals
        name = path.rsplit("/", 1)[-1]
        if not is_original and (name in TOOL_FILES or name.endswith(TOOL_ENDINGS)):
            return True
        content = self.content(full, path)
        if content is None:
            return True
        self.seen.add(path)
        if is_original and hashlib.sha256(content).hexdigest() == self.originals[path]:
            return True
        text = text_of(content)
        if text is None:
            self.skip(path, "it is not a text")
            return True
        self.room -= len(content)
        self.files_left -= 1
        if self.room < 0 or self.files_left < 0:
            self.end = "too-large"
            return False
        self.found[path] = text
        return True

    def content(self, full, path):
        """Reads a regular file without following links."""
        try:
            descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            self.seen.add(path)
            self.skip(path, f"it can't be read: {error.strerror}")
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                self.skip(path, "it is no regular file")
                return None
            content = file.read(self.file_max + 1)
        if len(content) > self.file_max:
            self.seen.add(path)
            self.skip(path, f"it has {status.st_size} bytes, more than {self.file_max}")
            return None
        return content

    def walk(self, root):
        folders = [(root, "", 1)]
        entries = 0
        while folders:
            full, path, depth = folders.pop()
            try:
                with os.scandir(full) as found:
                    inside = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self.skip(path or ".", f"it can't be read: {error.strerror}")
                if isinstance(error, PermissionError):
                    # What is in the folder isn't known, so its files count as unchanged.
                    below = f"{path}/" if path else ""
                    self.seen.update(name for name in self.originals if name.startswith(below))
                continue
            for entry in inside:
                entries += 1
                if entries > ENTRIES_MAX:
                    self.end = "too-many"
                    return
                below = f"{path}/{entry.name}" if path else entry.name
                if not is_utf8(below):
                    shown = below.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                    self.skip(shown, "its name isn't UTF-8")
                    continue
                if entry.is_symlink():
                    # Packages are linked by this program.
                    is_own = (path == "" and entry.name == "workspace") or entry.name in TOOL_FOLDERS
                    if not is_own:
                        self.skip(below, "it is a link")
                elif entry.is_dir(follow_symlinks=False):
                    if self.is_tools(entry, below):
                        continue
                    if depth >= DEPTH_MAX:
                        self.skip(below, "it is nested too deeply")
                        continue
                    folders.append((entry.path, below, depth + 1))
                elif not self.add_file(entry.path, below):
                    return

    def is_tools(self, entry, path):
        """Returns true for a folder that tools make and the task doesn't have."""
        below = path + "/"
        if any(original.startswith(below) for original in self.originals):
            return False
        if entry.name in TOOL_FOLDERS:
            return True
        try:
            descriptor = os.open(os.path.join(entry.path, CACHE_TAG), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(descriptor, "rb") as file:
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(CACHE_MARK)) == CACHE_MARK


def is_utf8(name):
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def text_of(content):
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def collect():
    changes = Changes(read_json("collect.json"))
    workspace = os.path.join(root(), "workspace")
    if os.path.islink(workspace):
        changes.skip(".", "it is a link")
    else:
        changes.walk(workspace)
    write_result(
        {
            "end": changes.end,
            "files": changes.found,
            "removed": sorted(path for path in changes.originals if path not in changes.seen),
            "skipped": changes.skipped,
            "more_skipped": changes.more_skipped,
        }
    )


def main():
    action = sys.argv[1]
    if action == "collect":
        collect()
    else:
        {"layout": layout, "run": run}[action](supervisor())


if __name__ == "__main__":
    main()
