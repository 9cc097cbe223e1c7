# Builds or pulls the images of an environment that the host doesn't have, one builder at a time.
POLL_S, POLL_MAX_S = 0.5, 5
# Errors of a host whose own limits a build or pull exceeds.
HOST_LIMITS = (
    ("the host's time limit of builds and pulls was exceeded", "build-time"),
    ("the host's disk limit of builds and pulls was exceeded", "image-size"),
)
# Error of podman's builder before 4.6 after it killed its own helper process, which happens now and then because the
# helper ends with the thread that started it (https://github.com/containers/podman/issues/17918).
BUILDER_DIED = "while running runtime: signal: killed"
# Maximum number of characters of a line in an error.
LINE_MAX = 300
# Maximum attempts to build an image if the builder dies.
ATTEMPTS = 3


def size(image):
    ran = docker("image", "inspect", "--format", "{{.Size}}", image)
    if ran.code != 0 and is_engine_fault(ran):
        raise Failed("engine", "docker image inspect failed", ran.log())
    return int(ran.out.text()) if ran.code == 0 else None


def literal(text):
    """Undoes the escape of compose, for a text that compose doesn't read."""
    return str(text).replace("$$", "$")


def classic_args(request, image, build):
    """Arguments for the classic builder. Compose would leave the containers of a failed build."""
    args = ["build", "--force-rm", "--tag", image["name"], "--memory", str(request["memory_bytes"])]
    for name, text in (build.get("args") or {}).items():
        args += ["--build-arg", "%s=%s" % (name, literal(text))] if text is not None else []
    for name, text in (build.get("labels") or {}).items():
        args += ["--label", "%s=%s" % (name, literal(text))]
    for option, key in (("--target", "target"), ("--network", "network"), ("--shm-size", "shm_size")):
        args += [option, literal(build[key])] if build.get(key) else []
    for option, key in (("--no-cache", "no_cache"), ("--pull", "pull")):
        args += [option] if build.get(key) else []
    for platform in (build.get("platforms") or [])[:1]:
        args += ["--platform", platform]
    context = literal(build["context"])
    inline = build.get("dockerfile_inline")
    path = "-" if inline else os.path.join(context, literal(build.get("dockerfile") or "Dockerfile"))
    return [*args, "--file", path, context], inline


def build_of(image):
    with open("project.json", encoding="utf-8") as file:
        return json.load(file)["services"][image["service"]]["build"]


def run_build(request, image, limit_s):
    if request["builder"] == "buildkit":
        args = ["--file", "project.json", "build", image["service"]]
        return compose(request["project"], *args, limit_s=limit_s, more={"DOCKER_BUILDKIT": "1"})
    args, inline = classic_args(request, image, build_of(image))
    with open("Dockerfile.inline", "w+", encoding="utf-8") as file:
        file.write(literal(inline or ""))
        file.seek(0)
        return docker(*args, limit_s=limit_s, more={"DOCKER_BUILDKIT": "0"}, stdin=file)


def refusal_of(request, workspace, image, reason):
    """Names the Dockerfile of a refused build by its path in the task."""
    line = re.match(r"([^\s:]+):(\d+): ", reason)
    if not image["is_built"] or not line:
        return "service `%s`: %s" % (image["service"], reason)
    build = build_of(image)
    if build.get("dockerfile_inline"):
        file = "dockerfile_inline of service %s" % image["service"]
    else:
        task = os.path.join(folder_of(workspace, request["project"]), "task")
        file = os.path.relpath(os.path.join(literal(build["context"]), line[1]), task)
    return "`%s` line %s: %s" % (file, line[2], reason[line.end() :])


def reason_of(ran):
    """The builder's error, and how the output of the command ended that failed."""
    errors = [line.strip() for line in ran.err.text().splitlines() if line.strip()]
    lines = [line.strip() for line in ran.out.text().splitlines()]
    steps = [number for number, line in enumerate(lines) if re.match(r"(STEP|Step) \d+/\d+ ?:", line)]
    if not steps and errors.count("------") > 1:
        # BuildKit repeats the output between two lines.
        second = len(errors) - 1 - errors[::-1].index("------")
        first = second - 1 - errors[:second][::-1].index("------")
        lines, steps = errors[first:second], [1]
    ended = [line for line in lines[steps[-1] + 1 :] if line and not line.startswith("-->")] if steps else []
    # Podman names its temporary folder, so that the same error would look like another one each time.
    reason = re.sub(r"/\S*/libpod_builder\d+/build", "the context", errors[-1])[:LINE_MAX] if errors else "no reason was given"
    # The output says why. Where a text is cut, it is cut at its end.
    return "the output ends with `%s`; %s" % (" / ".join(ended[-3:])[-LINE_MAX:], reason) if ended else reason


def builder_died(ran):
    # The docker command's own error is the end of its errors. Commands of a build write to its output.
    return ran.err.text().rstrip().endswith(BUILDER_DIED)


def produce(request, workspace, image, limit_s):
    """Builds or pulls one image."""
    if limit_s <= 0:
        raise Failed("limit", "the build took longer than %(limit_s)d s" % request, limit="build-time")
    until = time.monotonic() + limit_s
    if image["is_built"]:
        for _ in range(ATTEMPTS):
            expect_open(workspace, request["project"])
            ran = run_build(request, image, until - time.monotonic())
            if ran.timed_out or ran.code == 0 or not builder_died(ran):
                break
    else:
        ran = docker("image", "pull", image["name"], limit_s=limit_s)
    if ran.timed_out:
        raise Failed("limit", "the build took longer than %(limit_s)d s" % request, ran.log(), limit="build-time")
    for text, limit in HOST_LIMITS:
        if ran.code != 0 and text in ran.log():
            raise Failed("limit", text, ran.log(), limit=limit)
    reason = refusal_in(ran)
    if reason:
        raise Failed("refused", refusal_of(request, workspace, image, reason), ran.log())
    if ran.code != 0:
        what = "built" if image["is_built"] else "pulled"
        kind = "engine" if is_engine_fault(ran) or builder_died(ran) else "build"
        why = "the image of service `%s` could not be %s: %s" % (image["service"], what, reason_of(ran))
        raise Failed(kind, why, ran.log())
    found = size(image["name"])
    if found is None:
        raise Failed("engine", "the image `%s` is missing after its build" % image["name"], ran.log())
    if image["is_built"] and found > request["image_bytes_max"]:
        docker("image", "rm", image["name"])
        why = "the image has %d bytes, more than %d" % (found, request["image_bytes_max"])
        raise Failed("limit", why, limit="image-size")


def main(request, workspace):
    expect_open(workspace, request["project"])
    began, wait, lock, built, until = time.monotonic(), POLL_S, None, 0, None
    try:
        while True:
            missing = [image for image in request["images"] if size(image["name"]) is None]
            if not missing:
                return {"built": built, "waited_ms": int(((until or time.monotonic()) - began) * 1000) if lock else 0}
            if lock is None:
                left = request["lock_wait_s"] - (time.monotonic() - began)
                lock = acquire(request["project"], request["limit_s"] + 2 * SHORT_S, left)
                if lock is None:
                    if left < 0:
                        raise Failed("engine", "other builds have kept the builder for too long")
                    time.sleep(wait)
                    wait = min(2 * wait, POLL_MAX_S)
                    continue
                until = time.monotonic() + request["limit_s"]
                # Another builder may have built it while this one waited for the lock.
                continue
            produce(request, workspace, missing[0], until - time.monotonic())
            built += 1
    finally:
        if lock is not None:
            release(lock)
