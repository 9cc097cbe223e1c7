# Types into a terminal of a container by shell commands, waits after each of them, and captures the terminal.
HISTORY_MAX = 8 << 20
# Waits from which on the container's disk is checked at the end.
DISK_WAIT_S = 5
DEAD = 3


def shell(request, line, out_max=LOG_MAX, limit_s=SHORT_S):
    exec_request = {**request, "command": ["sh", "-c", line], "stdout_bytes_max": out_max, "stderr_bytes_max": LOG_MAX}
    return run({**exec_request, "disk_bytes_max": None}, limit_s, None)


def typed(request):
    """Types everything. Returns the number of keystrokes that reached the terminal."""
    for index, stroke in enumerate(request["strokes"]):
        began = time.monotonic()
        for line in stroke["commands"]:
            if shell(request, line, limit_s=stroke["limit_ms"] / 1000)["exit_code"] != 0:
                return index
        time.sleep(max(0, stroke["wait_ms"] / 1000 - (time.monotonic() - began)))
    return len(request["strokes"])


def captured(request):
    """Returns history and screen; None without a terminal. Of a history that is too long, the end remains."""
    mark = "%s-%s" % (request["mark"], os.urandom(12).hex())
    line = "%s >/dev/null 2>&1 || exit %d; %s; printf '\\n%%s\\n' '%s'; %s" % (
        request["check"], DEAD, request["history"], mark, request["screen"]
    )
    ended = shell(request, line, 2 * HISTORY_MAX)
    out = ended["stdout"]
    text = out["head"] + out["tail"] if out["omitted"] == 0 else out["tail"]
    history, found, screen = text.rpartition("\n%s\n" % mark)
    return (history, screen) if ended["exit_code"] == 0 and found else None


def main(request, workspace):
    expect_open(workspace, request["project"])
    began = time.monotonic()
    count = typed(request)
    waits_s = sum(stroke["wait_ms"] for stroke in request["strokes"]) / 1000
    most = request["disk_bytes_max"]
    if most and waits_s >= DISK_WAIT_S:
        excess = disk_excess(workspace, request["project"], most)
        if excess:
            raise Failed("limit", excess, limit="disk")
    seen = captured(request)
    return {
        "alive": seen is not None,
        "typed": count,
        "history": seen[0] if seen else "",
        "screen": seen[1] if seen else "",
        "elapsed_ms": int((time.monotonic() - began) * 1000),
    }
