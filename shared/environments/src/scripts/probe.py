# Finds out what engine the sandbox has.

# Label of an engine behind a filter that lets containers have no network.
NO_NETWORK = "bench-runner.network=none"
# A sandbox without an engine fails a whole run, so an engine that restarts, or a killed command, has time to recover.
PATIENCE_S, PAUSE_S = 8, 1


def answer(*args):
    """Repeats a command until it succeeds or the patience ends. Returns its last run."""
    until = time.monotonic() + PATIENCE_S
    while True:
        ran = docker(*args, limit_s=SHORT_S // 2, out_max=256 * 1024)
        if ran.code == 0 or ran.timed_out or time.monotonic() > until:
            return ran
        time.sleep(PAUSE_S)


def main(request, workspace):
    server = answer("version", "--format", "{{json .Server}}")
    if server.code != 0:
        kind = "no-engine" if not server.timed_out else "engine"
        raise Failed(kind, "the docker command reaches no engine", server.log())
    plugin = answer("compose", "version", "--short")
    if plugin.code != 0:
        kind = "no-engine" if not plugin.timed_out else "engine"
        raise Failed(kind, "the docker command has no compose plugin: install it in the sandbox", plugin.log())
    server = json.loads(server.out.text())
    names = [str(part.get("Name", "")) for part in server.get("Components") or []]
    is_podman = any("podman" in name.lower() for name in names)
    # Podman's service has no BuildKit, whatever plugins the docker command has.
    has_kit = not is_podman and docker("buildx", "version").code == 0
    labels = asked("info", "--format", "{{json .Labels}}").strip()
    return {
        "engine": "podman" if is_podman else "docker",
        "version": str(server.get("Version") or "unknown")[:64],
        "architecture": str(server.get("Arch") or "")[:64],
        "compose": plugin.out.text().strip()[:64],
        "builder": "buildkit" if has_kit else "classic",
        "has_network": NO_NETWORK not in (json.loads(labels or "null") or []),
        "workspace": workspace,
        "host_workspace": os.environ.get("SANDY_HOST_VOLUME") or workspace,
    }
