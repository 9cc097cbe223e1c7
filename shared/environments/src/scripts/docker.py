# The beginning of every program of this crate: runs the docker command, with limits, and reports failures by kind.
import json, os, re, signal, subprocess, threading, time

# Variables that the docker command gets. It must see nothing else of the sandbox: compose puts variables into containers.
KEPT = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG")
OWN_LABEL = "bench-runner.environment"
PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"
# Time limit of docker commands that only ask or change one thing.
SHORT_S = 30
# Time that the engine has to start a command in a container, before the command's own time begins.
START_S = 20
# Time that a docker command has to end after SIGTERM.
MERCY_S = 2
# Shortest and longest interval at which a running docker command is watched.
WATCH_S, WATCH_MAX_S = 5, 30
LOG_MAX = 16 * 1024
# Texts of an engine that doesn't work, or not at the moment. A task whose build prints one of them is tried again.
ENGINE_FAULTS = (
    "cannot connect to the docker daemon",
    # Of the filter in front of an engine that has ended or hangs.
    "can't connect to the container engine",
    "the container engine did not answer",
    "the sandbox is stopping",
    "error during connect",
    "no space left on device",
    "connection reset by peer",
    "unexpected eof",
    "toomanyrequests",
    "tls handshake timeout",
    "i/o timeout",
    "temporary failure in name resolution",
    "server misbehaving",
    "context deadline exceeded",
)
# What precedes the reason in the errors of the filter in front of the engine, for requests that it refuses every time.
REFUSAL = "refused by the sandbox host: "
# Status of `docker compose` whose plugin was killed: the plugin itself never ends with it.
PLUGIN_KILLED = 255
# How the docker command ends its error if no plugin answers its question what it is: errors of compose don't end so.
NO_PLUGIN = re.compile(r"(Run|See) 'docker --help'( for more information)?\.?\s*\Z")


class Failed(Exception):
    """A failure with its kind: engine, no-engine, build, start, unhealthy, gone, limit, project, refused."""

    def __init__(self, kind, why, log="", **more):
        super().__init__(why)
        self.record = {"failed": kind, "why": why[:1000], "log": log[-LOG_MAX:], **more}


class Kept:
    """Keeps the beginning and the end of a stream, each half of the limit."""

    def __init__(self, most):
        self.half, self.head, self.tail, self.size = max(1, most // 2), b"", b"", 0

    def add(self, data):
        self.size += len(data)
        room = self.half - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail = (self.tail + data[max(room, 0) :])[-self.half :]

    def record(self):
        head = self.head.decode("utf-8", "replace")
        tail = self.tail.decode("utf-8", "replace")
        return {"head": head, "tail": tail, "omitted": self.size - len(self.head) - len(self.tail)}

    def text(self):
        return (self.head + self.tail).decode("utf-8", "replace")


class Ran:
    def __init__(self, code, out, err, timed_out):
        self.code, self.out, self.err, self.timed_out = code, out, err, timed_out

    def log(self):
        # The reason of a failure is the end of the errors, and logs keep their end.
        return self.out.text() + self.err.text()


def variables(more):
    return {**{name: os.environ[name] for name in KEPT if name in os.environ}, **more}


def reader(stream, take):
    def work():
        for data in iter(lambda: os.read(stream.fileno(), 65536), b""):
            take(data)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def docker(
    *args, limit_s=SHORT_S, out_max=LOG_MAX, err_max=LOG_MAX, more=None, stdin=None, take=None, on_limit=None, watch=None, begun=None
):
    """Runs a docker command. At its time limit, or when `watch` returns true, calls `on_limit` and ends it.

    The time limit begins when the event `begun` is set, or after START_S."""
    out, err = Kept(out_max), Kept(err_max)
    try:
        child = subprocess.Popen(
            ["docker", *args],
            env=variables(more or {}),
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Failed("no-engine", "there is no docker command in the sandbox") from None
    readers = [reader(child.stdout, take or out.add), reader(child.stderr, err.add)]
    if begun:
        latest = time.monotonic() + START_S
        while child.poll() is None and time.monotonic() < latest and not begun.wait(0.1):
            pass
    until = time.monotonic() + limit_s
    timed_out = not waited(child, until, watch)
    if timed_out:
        if on_limit:
            on_limit()
        for number, wait_s in ((signal.SIGTERM, MERCY_S), (signal.SIGKILL, None)):
            if child.poll() is None:
                os.killpg(child.pid, number)
            try:
                child.wait(wait_s)
                break
            except subprocess.TimeoutExpired:
                pass
    for thread in readers:
        thread.join(MERCY_S)
    if child.returncode < 0 and not timed_out:
        # The command itself was killed, which no task can do.
        raise Failed("engine", "docker %s was ended by signal %d" % (args[0], -child.returncode), err.text())
    return Ran(child.returncode, out, err, timed_out)


def compose(project, *args, **more):
    """Runs a compose command of a project. The plugin, a process of its own, being killed isn't the project's fault."""
    ran = docker("compose", "--project-name", project, *args, **more)
    if not ran.timed_out and (ran.code == PLUGIN_KILLED or (ran.code and NO_PLUGIN.search(ran.err.text()))):
        raise Failed("engine", "the compose plugin of the docker command was killed or is missing", ran.log())
    return ran


def waited(child, until, watch):
    """Waits for a process. Returns false if it must be ended."""
    interval = WATCH_S
    while True:
        left = max(until - time.monotonic(), 0)
        try:
            child.wait(min(left, interval) if watch else left)
            return True
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until or watch():
                return False
            # What is watched costs the engine something, and matters less in a command that takes long.
            interval = min(1.5 * interval, WATCH_MAX_S)


def is_engine_fault(ran):
    text = ran.log().lower()
    return ran.timed_out or any(fault in text for fault in ENGINE_FAULTS)


def refusal_in(ran):
    """Returns the reason for which the filter in front of the engine refused a request of a command that failed."""
    _, found, reason = ran.err.text().rpartition(REFUSAL) if ran.code else ("", "", "")
    return reason.split("\n")[0].strip() if found else None


def asked(*args, **more):
    """Runs a short docker command that succeeds if the engine works. Returns its output."""
    ran = docker(*args, **more)
    if ran.code != 0:
        raise Failed("engine", "docker %s failed" % args[0], ran.log())
    return ran.out.text()


def rows(*args):
    """Returns the lines of a list, split at tabs."""
    return [line.split("\t") for line in asked(*args, out_max=4 << 20).splitlines() if line]


def container_state(container):
    """Returns state and whether it ran out of memory; None if the container is gone."""
    form = "{{.State.Status}}\t{{.State.OOMKilled}}\t{{.State.ExitCode}}"
    ran = docker("container", "inspect", "--format", form, container)
    if ran.code == 0:
        status, oom, code = ran.out.text().strip().split("\t")
        return {"status": status, "out_of_memory": oom == "true", "exit_code": int(code)}
    # Only the engine can say that a container is gone: anything else, such as a service that was killed, is its own failure.
    if "no such container" in ran.log().lower():
        return None
    raise Failed("engine", "docker inspect failed", ran.log())


def expect_running(container):
    state = container_state(container)
    if state is None or state["status"] != "running":
        why = "the container is gone" if state is None else "the container has stopped (%(status)s, exit code %(exit_code)d)" % state
        raise Failed("gone", why, out_of_memory=bool(state and state["out_of_memory"]))


def folder_of(workspace, project):
    return os.path.join(workspace, "environments", project)


def expect_open(workspace, project):
    """Fails if the environment was removed: a late operation must not start anything again."""
    if os.path.lexists(os.path.join(folder_of(workspace, project), "removed")):
        raise Failed("removed", "the environment was removed")


def outcome(main, *args):
    try:
        return {"done": main(*args)}
    except Failed as failed:
        return failed.record
    except (OSError, ValueError, KeyError) as error:
        return {"failed": "engine", "why": "%s: %s" % (type(error).__name__, error), "log": ""}
