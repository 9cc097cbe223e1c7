# Joins what was sent in pieces and puts it in place: one file, or a bundle of files. Returns `ready`, `started` if the
# job has started already, `missing …` with the numbers of the pieces to send (again), or `wrong` if the whole does not
# match its checksum. A piece is a text file in the working folder: the SHA-256 of its bytes and the bytes in base64.
import binascii, fcntl, hashlib

PIECE = 1024 * 1024
CODED_MAX = 65 + PIECE // 3 * 4 + 64


def piece_name(sha, index):
    return ".bench-up-%s-%d" % (sha[:32], index)


def piece(sha, index, length):
    name = piece_name(sha, index)
    try:
        descriptor = os.open(name, PLAIN)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as coded:
        text = coded.read(CODED_MAX) if is_file(os.fstat(descriptor).st_mode) else b""
    try:
        named, data = text.split(None, 1)
        data = binascii.a2b_base64(data)
    except ValueError:
        return None
    is_good = len(data) == length and hashlib.sha256(data).hexdigest().encode() == named
    return data if is_good else None


def create_file(path):
    """Creates a file below the current folder."""
    above = os.path.dirname(path)
    if above:
        os.makedirs(above, exist_ok=True)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "w+b")


def unbundled(bundle):
    count = int(bundle.readline(100))
    files = [bundle.readline(400).split() for _ in range(count)]
    for length, path in files:
        left = int(length)
        with create_file(path.decode()) as file:
            while left:
                data = bundle.read(min(left, PIECE))
                if not data:
                    raise OSError(5, "the bundle ends early")
                file.write(data)
                left -= len(data)


def main(job, path, sha, length):
    length = int(length)
    os.makedirs("jobs/" + job, exist_ok=True)
    place = job_folder(job)
    if place is None:
        return say("failed", "the_job_has_no_folder")
    # One command at a time, and none once the job has started.
    fcntl.flock(place, fcntl.LOCK_EX)
    top = os.open(".", FOLDER)
    os.fchdir(place)
    if os.path.lexists("lock"):
        return say("started")
    done = ".bench-done-" + sha[:32]
    if os.path.lexists(done):
        return say("ready")
    whole, missing = hashlib.sha256(), []
    count = (length + PIECE - 1) // PIECE
    part = ".bench-part-" + sha[:32]
    with create_file(part) as file:
        os.fchdir(top)
        for index in range(count):
            data = piece(sha, index, min(PIECE, length - index * PIECE))
            if data is None:
                missing.append(index)
            elif not missing:
                whole.update(data)
                file.write(data)
        os.fchdir(place)
        if missing:
            os.unlink(part)
            return say("missing", *missing)
        is_good = whole.hexdigest() == sha
        if is_good and path == "-":
            file.seek(0)
            unbundled(file)
    if is_good and path != "-":
        above = os.path.dirname(path)
        if above:
            os.makedirs(above, exist_ok=True)
        os.rename(part, path)
    else:
        os.unlink(part)
    if is_good:
        os.close(os.open(done, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.fchdir(top)
    for index in range(count):
        os.unlink(piece_name(sha, index))
    say("ready" if is_good else "wrong")
