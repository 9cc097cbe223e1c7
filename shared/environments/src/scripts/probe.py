# Finds out what engine the sandbox has.
def main(request, workspace):
    server = docker("version", "--format", "{{json .Server}}", out_max=256 * 1024)
    if server.code != 0:
        kind = "no-engine" if not server.timed_out else "engine"
        raise Failed(kind, "the docker command reaches no engine", server.log())
    compose = docker("compose", "version", "--short")
    if compose.code != 0:
        raise Failed("no-engine", "the docker command has no compose plugin: install it in the sandbox", compose.log())
    server = json.loads(server.out.text())
    names = [str(part.get("Name", "")) for part in server.get("Components") or []]
    is_podman = any("podman" in name.lower() for name in names)
    # Podman's service has no BuildKit, whatever plugins the docker command has.
    has_kit = not is_podman and docker("buildx", "version").code == 0
    return {
        "engine": "podman" if is_podman else "docker",
        "version": str(server.get("Version") or "unknown")[:64],
        "compose": compose.out.text().strip()[:64],
        "builder": "buildkit" if has_kit else "classic",
        "workspace": workspace,
        "host_workspace": os.environ.get("SANDY_HOST_VOLUME") or workspace,
    }
