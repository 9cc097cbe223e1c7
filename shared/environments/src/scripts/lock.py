# The lock of a host's builder. A host may hand it out itself, for as long as a connection is open. On other hosts, it is a
# container that never runs: only the engine is common to the sandboxes of a host, and it gives a name to one container
# only. That lock has a lease, since a sandbox can be lost at any time.
import io, socket, tarfile

LOCK = "bench-runner-builder"
LOCK_IMAGE = "bench__lock:1"
HOLDER_LABEL = "bench-runner.lock.holder"
UNTIL_LABEL = "bench-runner.lock.until"
HOST_BUILDER = (
    b"POST /bench/builder HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
)
HELD = b"HTTP/1.1 101"


def host_builder(wait_s):
    """Returns a connection that holds the host's builder; None if this host doesn't hand it out."""
    address = os.environ.get("DOCKER_HOST", "")
    if not address.startswith("unix://"):
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(max(1, wait_s))
        connection.connect(address[len("unix://") :])
        connection.sendall(HOST_BUILDER)
        answer = b""
        while len(answer) < len(HELD):
            data = connection.recv(len(HELD) - len(answer))
            if not data:
                break
            answer += data
    except TimeoutError:
        connection.close()
        raise Failed("engine", "other builds have kept the builder for too long") from None
    except OSError:
        # The docker command will say what is wrong with the engine.
        answer = b""
    if answer == HELD:
        return connection
    connection.close()
    return None


def import_lock_image():
    if docker("image", "inspect", "--format", "{{.Id}}", LOCK_IMAGE).code == 0:
        return
    with open("empty.tar", "w+b") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            entry = tarfile.TarInfo("lock")
            archive.addfile(entry, io.BytesIO())
        file.seek(0)
        asked("image", "import", "-", LOCK_IMAGE, stdin=file)


def locks():
    """Returns id, holder and end of the lease."""
    form = '{{.ID}}\t{{.Label "%s"}}\t{{.Label "%s"}}' % (HOLDER_LABEL, UNTIL_LABEL)
    return rows("ps", "--all", "--no-trunc", "--filter", "label=" + HOLDER_LABEL, "--format", form)


def acquire(holder, lease_s, wait_s):
    """Returns the lock; None if another holder has it."""
    connection = host_builder(wait_s)
    if connection:
        return connection
    for found, other, until in locks():
        if other == holder:
            return found
        # Removal by id: a lock that another sandbox takes meanwhile has another id.
        if float(until or 0) < time.time():
            docker("rm", "--force", found)
    import_lock_image()
    labels = ["--label", "%s=%s" % (HOLDER_LABEL, holder), "--label", "%s=%d" % (UNTIL_LABEL, time.time() + lease_s)]
    ran = docker("container", "create", "--name", LOCK, *labels, LOCK_IMAGE, "/lock")
    if ran.code == 0:
        return ran.out.text().split()[-1]
    if is_engine_fault(ran):
        raise Failed("engine", "the builder's lock could not be created", ran.log())
    return None


def release(lock):
    if isinstance(lock, socket.socket):
        lock.close()
    else:
        docker("rm", "--force", lock)
