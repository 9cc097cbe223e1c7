# Resolves the compose files of an environment with `docker compose config`. Starts nothing.
def main(request, workspace):
    project = request["project"]
    expect_open(workspace, project)
    folder = folder_of(workspace, project)
    task = os.path.join(folder, "task")
    at = os.path.normpath(os.path.join(task, request["folder"]))
    os.makedirs(at, exist_ok=True)
    base = os.path.join(folder, "base.json")
    with open(base, "w", encoding="utf-8") as file:
        file.write(request["base"].replace("@FOLDER@", json.dumps(at)[1:-1].replace("$", "$$")))
    files = [base, *(os.path.join(task, path) for path in request["files"])]
    args = ["--project-directory", at]
    for path in files:
        args += ["--file", path]
    config = Kept(2 * request["bytes_max"])
    ran = compose(project, *args, "config", "--format", "json", more=request["variables"], take=config.add)
    if ran.code != 0:
        kind = "engine" if ran.timed_out else "project"
        raise Failed(kind, "docker compose can't read the task's compose file", ran.log())
    if config.size > request["bytes_max"]:
        raise Failed("project", "the compose project has more than %(bytes_max)d bytes" % request)
    with open("config.json", "w", encoding="utf-8") as file:
        file.write(config.text())
    return {}
