# Unpacks the task's files into the environment's own folder: a container may change what is mounted there, so no two
# environments share files.
import shutil


def unbundle(path, target):
    with open(path, "rb") as bundle:
        files = json.loads(bundle.read(int(bundle.readline(20))))
        for file in files:
            place = os.path.join(target, file["path"])
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, file["mode"]), "wb") as out:
                left = file["bytes"]
                while left:
                    data = bundle.read(min(left, 1 << 20))
                    if not data:
                        raise Failed("engine", "the task's files are incomplete")
                    out.write(data)
                    left -= len(data)
            os.chmod(place, file["mode"])


def main(request, workspace):
    expect_open(workspace, request["project"])
    folder = folder_of(workspace, request["project"])
    task = os.path.join(folder, "task")
    shutil.rmtree(task, ignore_errors=True)
    os.makedirs(task)
    for name in request["folders"]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        os.chmod(os.path.join(folder, name), 0o777)
    unbundle(os.path.join(workspace, "jobs", request["upload"], "task.bundle"), task)
    return {"folder": folder}
