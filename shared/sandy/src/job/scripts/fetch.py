# Downloads a file in the background, one download at a time; `place` reports the progress. Continues a partial
# download.
import fcntl, hashlib, time

TRIES = 5
NO_CURL = "curl is missing"


def main(job, path, sha, length, url, limit_s, wait_ms):
    place = job_folder(job)
    if place is None:
        return say("failed", "the_job_has_no_folder")
    os.fchdir(place)
    # Whoever has this descriptor holds the lock: this command, then the background process.
    get = os.open(".bench-get-" + sha[:32], os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(get, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return say("getting")
    os.ftruncate(get, 0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            if os.fork():
                code = 0
            else:
                in_background(get, path, sha, int(length), url, int(limit_s), int(wait_ms) / 1000)
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError(11, "no process is left")
    say("getting")


def in_background(get, path, sha, length, url, limit_s, wait_s):
    signal.alarm(limit_s + 60)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    until = time.monotonic() + limit_s
    try:
        why = downloaded(path, sha, length, url, until, wait_s)
    except Exception as error:
        why = "%s %s" % (type(error).__name__, error)
    if why:
        os.pwrite(get, why.encode("ascii", "replace")[:200], 0)
    else:
        os.unlink(".bench-get-" + sha[:32])


def downloaded(path, sha, length, url, until, wait_s):
    part, done = ".bench-part-" + sha[:32], ".bench-done-" + sha[:32]
    for tried in range(TRIES):
        if tried:
            time.sleep(min(wait_s * 2**tried, max(0, until - time.monotonic())))
        if size_of(part) > length:
            os.unlink(part)
        if size_of(part) < length or length == 0:
            why = by_curl(part, length, url, until)
            if why is NO_CURL:
                why = by_urllib(part, length, url, until)
        if size_of(part) == length:
            if sha_of(part) == sha:
                above = os.path.dirname(path)
                if above:
                    os.makedirs(above, exist_ok=True)
                os.rename(part, path)
                os.close(os.open(done, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                return None
            why = "its bytes do not match its checksum"
        if size_of(part) >= length:
            os.unlink(part)
        if time.monotonic() >= until:
            return "the download timed out"
    return why or "the file is shorter than expected"


def size_of(name):
    try:
        return os.lstat(name).st_size
    except FileNotFoundError:
        return -1


def sha_of(name):
    sha = hashlib.sha256()
    with open(name, "rb") as file:
        for data in iter(lambda: file.read(1 << 20), b""):
            sha.update(data)
    return sha.hexdigest()


def by_curl(part, length, url, until):
    seconds = str(max(1, int(until - time.monotonic())))
    resumed = ["-C", str(size_of(part))] if size_of(part) > 0 else []
    child = os.fork()
    if child == 0:
        try:
            import resource

            # An endless response must not fill the disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (length + 1, length + 1))
            asked = ["--proto", "=http,https", "--max-redirs", "10", "--connect-timeout", "20", "--max-time", seconds]
            slow = ["--speed-limit", "1000", "--speed-time", "60"]
            os.execvp("curl", ["curl", "-q", "-g", "-fsSL", *asked, *slow, *resumed, "-o", part, "--url", url])
        finally:
            os._exit(127)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    if code in (126, 127):
        return NO_CURL
    if code in (33, 36) and resumed:
        os.unlink(part)  # The download cannot be continued.
    return "curl ended with %d" % code


def by_urllib(part, length, url, until):
    from urllib.request import Request, urlopen

    there = max(0, size_of(part))
    request = Request(url, headers={"Range": "bytes=%d-" % there} if there else {})
    try:
        with urlopen(request, timeout=60) as answer:
            if there and answer.status != 206:
                there = 0
            with open(part, "ab" if there else "wb") as file:
                for data in iter(lambda: answer.read(1 << 16), b""):
                    file.write(data)
                    if file.tell() > length or time.monotonic() > until:
                        break
    except OSError as error:
        return "%s %s" % (type(error).__name__, error)
    return None
