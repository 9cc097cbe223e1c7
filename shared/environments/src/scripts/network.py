# Connects a container to a network, or disconnects it.
def is_connected(container, network):
    form = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}\n{{end}}"
    return network in asked("container", "inspect", "--format", form, container).split()


def main(request, workspace):
    expect_open(workspace, request["project"])
    container, network = request["container"], request["network"]
    expect_running(container)
    if is_connected(container, network) != request["connected"]:
        verb = "connect" if request["connected"] else "disconnect"
        aliases = [flag for alias in request["aliases"] for flag in ("--alias", alias)] if request["connected"] else []
        ran = docker("network", verb, *aliases, network, container)
        if is_connected(container, network) != request["connected"]:
            raise Failed("engine", "the network could not be switched", ran.log())
    return {}
