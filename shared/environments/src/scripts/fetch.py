# Fetches the regular files below a path of a container, from a tar stream, without unpacking it. Trusts no name and no
# size in it.
import base64, tarfile

PATH_MAX = 1024
STREAM_MAX = 1 << 30
# Size to which a log that is too long is shortened.
SHORT_MAX = 2 << 20
LOGS = (".txt", ".log", ".pane")
# Maximum size of a file that is looked for and kept whatever else there is.
FIRST_MAX = 4 << 20
# Maximum number of files, folders and everything else below the path.
ENTRIES_MAX = 20_000
# Tries to copy if the engine seems to fail.
ATTEMPTS, PAUSE_S = 3, 1


class Full(Exception):
    pass


class Stream:
    """The output of a command, up to a limit, within a time limit."""

    def __init__(self, source):
        self.source, self.left = source, STREAM_MAX

    def read(self, size):
        data = self.source.read(min(size, self.left + 1))
        self.left -= len(data)
        if self.left < 0:
            raise Full()
        return data


def clean(name):
    """Returns the path below the fetched one; an empty one for the fetched file itself, None if it isn't valid."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return None
    # The rule of files that are put into a container, since artifacts are.
    is_valid = ".." not in parts and size <= PATH_MAX and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name)
    return "/".join(parts[1:]) if is_valid else None


def read(source, size):
    data = source.read(size)
    if len(data) != size:
        raise tarfile.ReadError("it ends early")
    return data


def shortened(source, size):
    """Returns the beginning and the end of a file, with a line between them that says how much was left out."""
    half = SHORT_MAX // 2
    head, tail, left = read(source, half), b"", size - half
    while left > 0:
        data = read(source, min(left, 65536))
        left -= len(data)
        tail = (tail + data)[-half:]
    return head + b"\n[%d bytes were left out]\n" % (size - 2 * half) + tail


def collect(tar, request, files, skipped, cut):
    """Adds the files, and notes how much of which is left out. Returns true if others were left out as a whole."""
    room, is_cut, first, count = request["bytes_max"], False, request["first"], 0
    while (entry := tar.next()) is not None:
        # The archive would keep all of them.
        tar.members.clear()
        path, count = clean(entry.name), count + 1
        if count > ENTRIES_MAX:
            if not first:
                return True
            is_cut = True
            if path not in first:
                continue
        if entry.isdir():
            # A folder in place of a file that is looked for.
            if path in first:
                skipped.append({"path": path, "why": "not-a-file"})
            continue
        # Another name of an earlier file has no content of its own.
        same, omitted = earlier(entry, files, cut) if entry.type == tarfile.LNKTYPE else (None, 0)
        size = entry.size if same is None else len(same)
        is_file = (entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) or same is not None) and path is not None
        is_short = size <= request["file_bytes_max"]
        # A file that is fetched alone is named by the path.
        shortens = not is_short and request["shortens_logs"] and path is not None and (path or request["path"]).endswith(LOGS)
        kept = SHORT_MAX if shortens else size
        # Whatever else there is, these are found.
        is_wanted = path in first and kept <= FIRST_MAX
        has_room = is_wanted or (kept <= room and len(files) < request["files_max"])
        if is_file and (is_short or shortens) and has_room:
            if same is None:
                source = tar.extractfile(entry)
                same, omitted = (shortened(source, size), size - SHORT_MAX) if shortens else (read(source, size), 0)
            files.append((path, entry.mode & 0o777, same))
            if omitted:
                cut.append({"path": path, "omitted": omitted})
            room -= kept
        elif is_file and (is_short or shortens) or (len(skipped) >= request["files_max"] and path not in first):
            if not first:
                return True
            is_cut = True
        elif is_file:
            skipped.append({"path": path, "why": "too-long", "bytes": size})
        else:
            skipped.append({"path": (path or "?")[:200], "why": "not-a-file"})
    return is_cut


def earlier(link, files, cut):
    """Returns the content of the kept file that a hard link is another name of, and how much of it was left out; None if it was
    not kept."""
    target = clean(link.linkname)
    for path, _, data in files:
        if path == target:
            return data, next((one["omitted"] for one in cut if one["path"] == path), 0)
    return None, 0


def copied(request, until):
    """Copies from the container. Returns files, skipped ones and shortened ones, whether others were left out as a whole, and
    the end of the command."""
    files, skipped, cut, is_cut = [], [], [], False
    args = ["docker", "cp", "%(container)s:%(path)s" % request, "-"]
    child = subprocess.Popen(args, env=variables({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    err = Kept(LOG_MAX)
    errors = reader(child.stderr, err.add)
    timer = threading.Timer(max(0, until - time.monotonic()), child.kill)
    timer.start()
    try:
        with tarfile.open(fileobj=Stream(child.stdout), mode="r|") as tar:
            is_cut = collect(tar, request, files, skipped, cut)
    except Full:
        is_cut = True
    except (tarfile.TarError, EOFError):
        pass  # The command's exit code says why.
    finally:
        is_late = not timer.is_alive()
        timer.cancel()
    if is_cut or is_late:
        child.kill()
    child.stdout.close()
    code = child.wait()
    errors.join(MERCY_S)
    if is_late:
        raise Failed("limit", "fetching `%(path)s` took longer than %(limit_s)d s" % request, limit="fetch-time")
    return files, skipped, cut, is_cut, Ran(code, Kept(1), err, False)


def ends_early(request, files, skipped):
    """Returns true if the last file that is looked for was not reached. Podman copies in the order of names, and where it
    can't read on, because of a path or an attribute that no archive can have, it ends the stream as if that were all."""
    last = max(request["first"], default="")
    return last != "" and all(path != last for path, *_ in files) and all(one["path"] != last for one in skipped)


def find_first(request, until, files, skipped, cut):
    """Adds the files that are looked for and that were not reached, each from a copy of its own."""
    for name in request["first"]:
        if any(path == name for path, *_ in files) or any(one["path"] == name for one in skipped):
            continue
        room = request["bytes_max"] - sum(len(data) for *_, data in files)
        path = request["path"].rstrip("/") + "/" + name
        alone = dict(request, path=path, first=[""], files_max=1, bytes_max=room)
        found, passed, shorter, _, _ = copied(alone, until)
        files += [(name, mode, data) for path, mode, data in found if path == ""]
        cut += [dict(one, path=name) for one in shorter if one["path"] == ""]
        # The name of what isn't a file is not known.
        skipped += [dict(one, path=name) for one in passed if one["path"] in ("", "?")][:1]


def main(request, workspace):
    expect_open(workspace, request["project"])
    container, until = request["container"], time.monotonic() + request["limit_s"]
    for attempt in range(ATTEMPTS):
        files, skipped, cut, is_cut, ran = copied(request, until)
        if ran.code == 0 or is_cut:
            break
        is_there = container_state(container) is not None
        if not is_there:
            expect_running(container)
        if not is_engine_fault(ran):
            return {"found": False, "skipped": [], "shortened": [], "cut": False}
        if attempt + 1 == ATTEMPTS:
            # The engine works: it has just described the container. Files that change while they are copied, or whose names
            # are in its errors, look like its own failure.
            raise Failed("start", "`%(path)s` can't be copied from the container" % request, ran.log())
        time.sleep(PAUSE_S)
    if is_cut or ends_early(request, files, skipped):
        find_first(request, until, files, skipped, cut)
    header = json.dumps([{"path": path, "mode": mode, "bytes": len(data)} for path, mode, data in files]).encode()
    with open("fetched.b64", "wb") as out:
        out.write(base64.b64encode(b"%d\n" % len(header) + header + b"".join(data for _, _, data in files)))
    return {"found": True, "skipped": skipped, "shortened": cut, "cut": is_cut}
