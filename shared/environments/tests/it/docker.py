#!/usr/bin/env python3
"""A docker command with a pretended engine, whose state is in this script's folder. Logs calls that change something."""
import json, os, shutil, subprocess, sys, time, uuid

AT = os.path.dirname(os.path.abspath(__file__))
ARGS = sys.argv[1:]


def path(*parts):
    return os.path.join(AT, *parts)


def log(*words):
    with open(path("calls.log"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"call": " ".join(words), "env": sorted(os.environ)}) + "\n")
    # A test can hold a call, or let it fail, always or once, with a text or a status, by a file with its name.
    while os.path.exists(path("hold-" + words[0])):
        time.sleep(0.01)
    if os.path.exists(path("fail-once-" + words[0])):
        os.rename(path("fail-once-" + words[0]), path("failed"))
        sys.exit(open(path("failed"), encoding="utf-8").read())
    if os.path.exists(path("fail-" + words[0])):
        text = open(path("fail-" + words[0]), encoding="utf-8").read()
        sys.exit(int(text) if text.isdecimal() else text)


def value(option):
    return ARGS[ARGS.index(option) + 1]


def values(option):
    return [ARGS[at + 1] for at, word in enumerate(ARGS) if word == option]


def image(name):
    return path("images", name.replace("/", "%"))


def containers():
    for name in sorted(os.listdir(path("containers"))):
        try:
            with open(path("containers", name, "labels"), encoding="utf-8") as file:
                yield name, json.load(file)
        except OSError:
            pass


def create(name, labels):
    place = path("containers", name)
    found = uuid.uuid4().hex * 2
    try:
        os.mkdir(place)
    except FileExistsError:
        sys.exit("Error response from daemon: the container name is already in use")
    with open(place + ".new", "w", encoding="utf-8") as file:
        json.dump({**labels, "id": found}, file)
    os.rename(place + ".new", os.path.join(place, "labels"))
    return found


def project():
    with open(value("--file"), encoding="utf-8") as file:
        return json.load(file)


def compose():
    if "version" in ARGS:
        return print("2.0.0")
    if "config" in ARGS:
        log("config")
        return print(open(path("config.json"), encoding="utf-8").read())
    name = value("--project-name")
    if "up" in ARGS:
        log("up")
        if os.path.exists(path("no-init")) and any(service.get("init") for service in project()["services"].values()):
            sys.exit('Error response from daemon: exec: "docker-init": executable file not found in $PATH')
        for service in project()["services"]:
            labels = {"com.docker.compose.project": name, "com.docker.compose.service": service}
            create("%s-%s-1" % (name, service), {**labels, **project()["services"][service]["labels"]})


def listed():
    if ARGS[0] != "ps":
        return
    wanted = [label.removeprefix("label=").split("=") for label in values("--filter")]
    for _, labels in containers():
        if all(labels.get(name[0]) is not None and labels[name[0]] == (name + [labels[name[0]]])[1] for name in wanted):
            row = labels["id"] if "--quiet" in ARGS else value("--format").replace("{{.ID}}", labels["id"])
            for name, text in labels.items():
                row = row.replace('{{.Label "%s"}}' % name, text)
            print(row)


def remove(found):
    log("rm")
    for name, labels in containers():
        if labels["id"] == found:
            os.rename(path("containers", name), path("gone-" + uuid.uuid4().hex))
            return
    sys.exit("Error: No such container: " + found)


def record(name, words, is_running):
    """Keeps what the engine's API says about a command."""
    os.makedirs(path("execs"), exist_ok=True)
    config = {"entrypoint": words[0], "arguments": words[1:]}
    with open(path("exec-" + name), "w", encoding="utf-8") as file:
        json.dump({"ProcessConfig": config, "Running": is_running, "CanRemove": not is_running}, file)
    os.rename(path("exec-" + name), path("execs", name))


def execute():
    at = next(at for at, word in enumerate(ARGS) if len(word) == 64)
    log("exec", *ARGS[at + 5 :])
    name, words = uuid.uuid4().hex, ARGS[at + 1 :]
    record(name, words, True)
    if os.path.exists(path("cut-exec")):
        os.remove(path("cut-exec"))
        child = subprocess.Popen(words, cwd=AT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        sys.stdout.buffer.write(child.stdout.readline())
        sys.stdout.flush()
        os._exit(255)
    # In place of the container's own shell.
    fake = path("fake-sh")
    code = subprocess.run([fake, *words[1:]] if os.path.exists(fake) else words, cwd=AT).returncode
    record(name, words, False)
    sys.exit(code)


def main():
    for folder in ("images", "containers"):
        os.makedirs(path(folder), exist_ok=True)
    match ARGS:
        case ["version", *_]:
            print(json.dumps({"Version": "1", "Components": [{"Name": "Engine"}]}))
        case ["info", *_]:
            print(open(path("labels"), encoding="utf-8").read() if os.path.exists(path("labels")) else "null")
        case ["buildx", *_]:
            sys.exit(1)
        case ["compose", *_]:
            compose()
        case ["build", *_]:
            log("build", value("--file"), ARGS[-1])
            open(image(value("--tag")), "w").close()
        case ["image", "inspect", "--format", _, name]:
            if not os.path.exists(image(name)):
                sys.exit("Error: No such image: " + name)
            print(1000)
        case ["image", "import", "-", name] | ["image", "pull", name]:
            log("pull", name)
            open(image(name), "w").close()
        case ["container", "create", *_]:
            log("lock")
            print(create(value("--name"), dict(label.split("=", 1) for label in values("--label"))))
        case ["container", "inspect", "--size", *_]:
            log("size")
            print(open(path("size"), encoding="utf-8").read() if os.path.exists(path("size")) else 0)
        case ["container", "inspect", *_, found]:
            log("inspect")
            if not any(labels["id"] == found for _, labels in containers()):
                sys.exit("Error: No such container: " + found)
            print("running\tfalse\t0")
        case ["rm", *_, found]:
            remove(found)
        case ["ps" | "network" | "volume", *_]:
            listed()
        case ["exec", *_]:
            execute()
        case ["cp", "-", target]:
            log("put", target.split(":")[1])
            os.makedirs(path("put"), exist_ok=True)
            subprocess.run(["tar", "-x", "-C", path("put")], check=True)
        case ["cp", source, "-"]:
            log("fetch", source.split(":")[1])
            # The fetched folder is `put`; a file in it may be fetched alone.
            name = os.path.basename(source)
            at, name = (path("put"), name) if os.path.exists(path("put/" + name)) else (AT, "put")
            subprocess.run(["tar", "-c", "-C", at, name], check=True)
        case _:
            sys.exit("not scripted: %s" % ARGS)


main()
