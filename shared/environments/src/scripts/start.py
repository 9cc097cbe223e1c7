# Starts the containers of an environment, whose images exist.

# Exit code of the check of an image's shell.
NO_BASH = 79
# Names of the small init program in the errors of engines that lack it.
INIT_NAMES = ("docker-init", "container-init", "catatonit")


def up(request, limit_s):
    args = ["--file", "project.json", "up", "--detach", "--no-build", "--pull", "never"]
    return compose(request["project"], *args, "--wait", "--wait-timeout", str(limit_s), limit_s=limit_s)


def drop_init():
    """Removes `init` from the project: without it, ended processes stay as zombies, which is all."""
    with open("project.json", encoding="utf-8") as file:
        project = json.load(file)
    for service in project["services"].values():
        service.pop("init", None)
    with open("project.json", "w", encoding="utf-8") as file:
        json.dump(project, file)


def main(request, workspace):
    project = request["project"]
    expect_open(workspace, project)
    began = time.monotonic()
    ran = up(request, request["limit_s"])
    if ran.code != 0 and any(name in ran.log() for name in INIT_NAMES):
        drop_init()
        expect_open(workspace, project)
        ran = up(request, max(1, int(request["limit_s"] - (time.monotonic() - began))))
    if ran.timed_out:
        raise Failed("limit", "the start took longer than %(limit_s)d s" % request, ran.log(), limit="start-time")
    reason = refusal_in(ran)
    if reason:
        raise Failed("refused", reason, ran.log())
    if ran.code != 0:
        kind = "engine" if is_engine_fault(ran) else "start"
        raise Failed(kind, "the containers could not be started", ran.log())
    form = '{{.ID}}\t{{.Label "%s"}}' % SERVICE_LABEL
    found = rows("ps", "--no-trunc", "--filter", "label=%s=%s" % (PROJECT_LABEL, project), "--format", form)
    containers = {service: container for container, service in found}
    container = containers.get(request["service"])
    if container is None:
        raise Failed("start", "the container of service `%(service)s` stopped at once" % request, ran.log())
    if request["folders"]:
        # An image whose shell doesn't work must not look like one whose shell an agent has broken.
        script = 'if command -v bash > /dev/null 2>&1; then bash -c : || exit %d; fi; mkdir -p -- "$@" && chmod 777 -- "$@"'
        made = docker("exec", "--user", "0", container, "sh", "-c", script % NO_BASH, "sh", *request["folders"])
        if made.code != 0:
            expect_running(container)
            kind = "engine" if is_engine_fault(made) else "start"
            what = "its `bash` does not run" if made.code == NO_BASH else "the log folders could not be created"
            raise Failed(kind, "the container can't be used: %s" % what, made.log())
    return {"containers": containers}
