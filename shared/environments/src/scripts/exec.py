# Runs a command in a container. At its time limit, kills the command's process group there: the engine itself would only
# stop to listen.
KILL_S = 10
# Status of `docker exec` whose connection to the engine broke; a command may also end with it.
CUT = 255
# Time to count the files of a container: 300,000 take a few seconds on an idle machine. Shorter than the time by which an
# operation may exceed its own limit.
COUNT_S = 30
# Number of counts in a row that may take longer.
COUNTS_MAX = 2
# Time in which an engine answers that isn't counting or removing many files.
PROMPT_S = 5
# What the filter in front of the engine says of a count that takes too long.
UNCOUNTED = "files were not counted within"


def exec_args(request):
    args = ["exec"]
    for option in ("user", "workdir"):
        if request.get(option):
            args += ["--" + option, request[option]]
    for name, value in request["env"].items():
        args += ["--env", "%s=%s" % (name, value)]
    return args


class Output:
    """Standard output of a command after its first line, which is its process id."""

    def __init__(self, most):
        self.kept, self.line, self.pid = Kept(most), b"", None
        self.begun, self.since = threading.Event(), time.monotonic()

    def add(self, data):
        if not self.begun.is_set():
            line, end, rest = (self.line + data).partition(b"\n")
            if not end and len(line) < 20:
                self.line = line
                return
            self.since = time.monotonic()
            self.begun.set()
            # Docker reports here, too, why it can't start a command.
            if line.isdigit() and len(line) < 10:
                self.pid, data = int(line), rest
            else:
                data = line + end + rest
        self.kept.add(data)

    def end(self):
        if not self.begun.is_set():
            self.kept.add(self.line)


def marker_of(workspace, project):
    """Returns the file with the number of counts of the project's files in a row that took too long."""
    return os.path.join(folder_of(workspace, project), "uncounted")


def uncounted(marker):
    try:
        with open(marker, encoding="ascii") as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return 0


def note_uncounted(marker, count):
    os.makedirs(os.path.dirname(marker), exist_ok=True)
    with open(marker, "w", encoding="ascii") as file:
        file.write(str(count))


def disk_excess(workspace, project, most):
    """Returns why a container of the project exceeds its disk limit; None if none does, or if the engine can't tell.

    That an engine has too much to count becomes a reason after two counts in a row, if it answered promptly before and
    after each of them. Otherwise the engine itself is slow."""
    marker = marker_of(workspace, project)
    listed = docker("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=%s=%s" % (PROJECT_LABEL, project), limit_s=PROMPT_S)
    containers = listed.out.text().split() if listed.code == 0 else []
    # Podman answers nothing else while it counts, also after its client has gone.
    if not containers or docker("container", "inspect", "--format", "{{.Id}}", *containers, limit_s=PROMPT_S).code != 0:
        return None
    late = uncounted(marker)
    if late >= COUNTS_MAX:
        return "a container has too many files to be counted within %d s" % COUNT_S
    ran = docker("container", "inspect", "--size", "--format", "{{.SizeRw}}", *containers, limit_s=COUNT_S)
    written = max((int(size) for size in ran.out.text().split() if size.isdigit()), default=0)
    if written > most:
        return "a container has written %d bytes, more than %d" % (written, most)
    refused = refusal_in(ran)
    if refused:
        return refused
    is_late = ran.timed_out or (ran.code != 0 and UNCOUNTED in ran.err.text())
    # An engine that fails says nothing about the files.
    if is_late or ran.code == 0:
        note_uncounted(marker, late + 1 if is_late else 0)
    return None


def is_cut(ran, container, mark, since):
    """Returns true if docker failed, and not the command. The texts alone could come from the command or from a shell that
    the agent replaced, and would have the task tried again."""
    is_fault = bool(ran.code) and is_engine_fault(ran)
    if ran.timed_out or not (is_fault or ran.code == CUT):
        return False
    state = state_of(container, mark, since)
    # An engine that runs the container says why it can't start a command; podman adds that its connection was reset.
    is_refused = any(text in ran.log().lower() for text in ("oci runtime", "exec failed"))
    return state == RUNNING or (state is None and is_fault and not is_refused)


def run(request, limit_s, workspace):
    """Returns how the command ended, or fails if it was not run."""
    container, out, most, excess = request["container"], Output(request["stdout_bytes_max"]), request["disk_bytes_max"], None

    def is_disk_exceeded():
        nonlocal excess
        excess = disk_excess(workspace, request["project"], most)
        return excess is not None

    def kill():
        # Process ids come from the container: they can name nothing outside of it.
        if out.pid and out.pid > 1:
            docker("exec", "--user", "0", container, "sh", "-c", 'kill -KILL -- "-$1"', "sh", str(out.pid), limit_s=KILL_S)

    mark = os.urandom(16).hex()
    shell = ["sh", "-c", 'echo "$$"; exec "$@" # ' + mark, "sh"]
    args = [*exec_args(request), container, *shell, *request["command"]]
    since = int(time.time())
    watch = is_disk_exceeded if most else None
    ran = docker(
        *args,
        limit_s=limit_s,
        err_max=request["stderr_bytes_max"],
        take=out.add,
        on_limit=kill,
        watch=watch,
        begun=out.begun,
    )
    out.end()
    if excess:
        raise Failed("limit", excess, limit="disk")
    elapsed_ms = int((time.monotonic() - out.since) * 1000)
    # A shell that the agent replaced says nothing, too, but it runs.
    if ran.timed_out and not out.begun.is_set() and state_of(container, mark, since) is None:
        expect_running(container)
        raise Failed("engine", "the engine did not start the command within %d s" % (START_S + limit_s), ran.log())
    if not ran.timed_out and (out.pid is None or ran.code == 137):
        expect_running(container)
    if is_cut(ran, container, mark, since):
        raise Failed("engine", "docker exec failed, or ended before its command", ran.log())
    return {
        "exit_code": None if ran.timed_out else ran.code,
        "started": out.pid is not None,
        "stdout": out.kept.record(),
        "stderr": ran.err.record(),
        "elapsed_ms": elapsed_ms,
    }


def main(request, workspace):
    expect_open(workspace, request["project"])
    return run(request, request["limit_ms"] / 1000, workspace)
