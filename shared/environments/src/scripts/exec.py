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


def is_still_running(container, pid):
    """Returns true if a command runs although docker says that it ended, or if the engine can't tell."""
    ran = docker("exec", "--user", "0", container, "sh", "-c", 'kill -0 "$1"', "sh", str(pid), limit_s=KILL_S)
    return ran.code == 0 or is_engine_fault(ran)


def can_run(container):
    """Returns true if the container runs commands. A shell that the agent replaced runs none, whatever it prints."""
    ran = docker("exec", "--user", "0", container, "sh", "-c", "echo $$", limit_s=KILL_S)
    return ran.code == 0 and ran.out.text().strip().isdigit()


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

    shell = ["sh", "-c", 'echo "$$"; exec "$@"', "sh"]
    args = [*exec_args(request), container, *shell, *request["command"]]
    began = time.monotonic()
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
    is_cut = not ran.timed_out and (ran.code == CUT or (ran.code and is_engine_fault(ran)))
    # Texts alone could come from the command, and would have the task tried again.
    if is_cut and out.pid and is_still_running(container, out.pid):
        raise Failed("engine", "docker exec ended before its command", ran.log())
    # An engine that runs the container says why it can't start a command; podman adds that its connection was reset.
    is_refused = any(text in ran.log().lower() for text in ("oci runtime", "exec failed"))
    if not ran.timed_out and out.pid is None and is_engine_fault(ran) and not is_refused and can_run(container):
        raise Failed("engine", "docker exec failed", ran.log())
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
