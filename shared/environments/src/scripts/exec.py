# Runs a command in a container. At its time limit, kills the command's process group there: the engine itself would only
# stop to listen.
KILL_S = 10
# Status of `docker exec` whose connection to the engine broke; a command may also end with it.
CUT = 255


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
        self.kept, self.line, self.pid, self.is_begun = Kept(most), b"", None, False

    def add(self, data):
        if not self.is_begun:
            line, end, rest = (self.line + data).partition(b"\n")
            if not end and len(line) < 20:
                self.line = line
                return
            self.is_begun = True
            # Docker reports here, too, why it can't start a command.
            if line.isdigit() and len(line) < 10:
                self.pid, data = int(line), rest
            else:
                data = line + end + rest
        self.kept.add(data)

    def end(self):
        if not self.is_begun:
            self.kept.add(self.line)


def written_bytes(project):
    """Returns the largest number of bytes that one of the project's containers has in its own file system."""
    listed = docker("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=%s=%s" % (PROJECT_LABEL, project))
    containers = listed.out.text().split() if listed.code == 0 else []
    if not containers:
        return 0
    # Measuring reads the whole file system, so a slow engine leaves it to the next time.
    ran = docker("container", "inspect", "--size", "--format", "{{.SizeRw}}", *containers)
    return max((int(size) for size in ran.out.text().split() if size.isdigit()), default=0)


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


def run(request, limit_s):
    """Returns how the command ended, or fails if it was not run."""
    container, out, most, written = request["container"], Output(request["stdout_bytes_max"]), request["disk_bytes_max"], 0

    def is_disk_exceeded():
        nonlocal written
        written = written_bytes(request["project"])
        return written > most

    def kill():
        # Process ids come from the container: they can name nothing outside of it.
        if out.pid and out.pid > 1:
            docker("exec", "--user", "0", container, "sh", "-c", 'kill -KILL -- "-$1"', "sh", str(out.pid), limit_s=KILL_S)

    mark = os.urandom(16).hex()
    shell = ["sh", "-c", 'echo "$$"; exec "$@" # ' + mark, "sh"]
    args = [*exec_args(request), container, *shell, *request["command"]]
    began, since = time.monotonic(), int(time.time())
    watch = is_disk_exceeded if most else None
    ran = docker(
        *args, limit_s=limit_s, err_max=request["stderr_bytes_max"], take=out.add, on_limit=kill, watch=watch
    )
    out.end()
    if most and written > most:
        raise Failed("limit", "a container has written %d bytes, more than %d" % (written, most), limit="disk")
    elapsed_ms = int((time.monotonic() - began) * 1000)
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
    return run(request, request["limit_ms"] / 1000)
