# Removes everything that an environment has: containers, networks, volumes, files, and the builder's lock. Later operations
# of the environment start nothing.
import shutil

ROUNDS_MAX = 5
ROUND_S = 0.3


def of_project(project):
    """Returns the commands that remove what is there."""
    mine = ["--filter", "label=%s=%s" % (PROJECT_LABEL, project)]
    lock = ["--filter", "label=bench-runner.lock.holder=%s" % project]
    found = []
    for flags in (mine, lock):
        for (container,) in rows("ps", "--all", "--quiet", "--no-trunc", *flags):
            found.append(("rm", "--force", "--volumes", container))
    for (network,) in rows("network", "ls", "--quiet", "--no-trunc", *mine):
        found.append(("network", "rm", network))
    for (volume,) in rows("volume", "ls", "--quiet", *mine):
        found.append(("volume", "rm", "--force", volume))
    return found


def main(request, workspace):
    project, removed = request["project"], 0
    folder = folder_of(workspace, project)
    os.makedirs(folder, exist_ok=True)
    os.close(os.open(os.path.join(folder, "removed"), os.O_WRONLY | os.O_CREAT, 0o600))
    for turn in range(ROUNDS_MAX):
        found = of_project(project)
        if not found:
            break
        for command in found:
            removed += docker(*command).code == 0
        # What an operation was creating when it was stopped may appear late.
        time.sleep(ROUND_S)
    else:
        if of_project(project):
            raise Failed("engine", "not everything of the environment could be removed")
    for name in os.listdir(folder):
        if name != "removed":
            path = os.path.join(folder, name)
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    return {"removed": removed}
