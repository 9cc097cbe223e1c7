# Puts files into a container, as root, by a tar stream.
import io, tarfile

# Tries to make the folder if the engine seems to fail.
ATTEMPTS, PAUSE_S = 3, 1


def archive(bundle, target):
    """Makes a tar file of a bundle. Returns the names of its files."""
    names = []
    with open(bundle, "rb") as source, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for file in json.loads(source.read(int(source.readline(20)))):
            entry = tarfile.TarInfo(file["path"])
            entry.size, entry.mode, entry.uid, entry.gid = file["bytes"], file["mode"], 0, 0
            data = source.read(entry.size)
            if len(data) != entry.size:
                raise Failed("engine", "the files are incomplete")
            tar.addfile(entry, io.BytesIO(data))
            names.append(file["path"])
    return names


def main(request, workspace):
    expect_open(workspace, request["project"])
    container, folder = request["container"], request["folder"]
    names = archive("files.bundle", "files.tar")
    # The folder may be a link by now, which must not be followed: its name is removed, not what it points to.
    script = 'rm -rf -- "$1" && mkdir -p -- "$1"' if request["replace"] else 'mkdir -p -- "$1"'
    for _ in range(ATTEMPTS):
        made = docker("exec", "--user", "0", container, "sh", "-c", script, "sh", folder)
        if made.code == 0:
            break
        expect_running(container)
        if not is_engine_fault(made):
            break
        time.sleep(PAUSE_S)
    if made.code != 0:
        # What the shell prints can look like a fault of the engine, which runs the container.
        raise Failed("start", "the folder `%s` could not be made in the container" % folder, made.log())
    with open("files.tar", "rb") as tar:
        made = docker("cp", "-", "%s:%s" % (container, folder), limit_s=request["limit_s"], stdin=tar)
    os.unlink("files.tar")
    if made.code != 0:
        expect_running(container)
        # Errors quote names of files, which an agent may have made.
        names = " ".join(names).lower()
        faults = [fault for fault in ENGINE_FAULTS if fault in made.log().lower() and fault not in names]
        kind = "engine" if made.timed_out or faults else "start"
        raise Failed(kind, "files could not be put into `%s`" % folder, made.log())
    return {}
