# The beginning of every command. Standard library only, and little of it, since each command starts anew.
# Answers are lines of words after a mark that only the caller knows, so that the output of a job's programs can't pass as
# an answer.
import os, signal, sys

MARK = sys.argv[1]
ARGS = sys.argv[2:]
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = PLAIN | os.O_DIRECTORY


def say(*words):
    sys.stdout.write(" ".join([MARK, *map(str, words)]) + "\n")


def is_file(mode):
    return mode & 0o170000 == 0o100000


def is_folder(mode):
    return mode & 0o170000 == 0o040000


def folder(name, above=None):
    """Opens a folder without following links, and restores our permissions if the job removed them. None if it is no folder."""
    for _ in range(2):
        try:
            return os.open(name, FOLDER, dir_fd=above)
        except PermissionError:
            try:
                if is_folder(os.lstat(name, dir_fd=above).st_mode):
                    os.chmod(name, 0o700, dir_fd=above)
            except OSError:
                return None
        except OSError:
            return None


def job_folder(job):
    jobs = folder("jobs")
    if jobs is None:
        return None
    try:
        return folder(job, jobs)
    finally:
        os.close(jobs)


def file_in(place, path):
    """Opens a regular file without following links. Returns (descriptor, length), or None with whether something exists."""
    parts = path.split("/")
    for part in parts[:-1]:
        place = folder(part, place)
        if place is None:
            return None, False
    try:
        if not is_file(os.lstat(parts[-1], dir_fd=place).st_mode):
            return None, True
        descriptor = os.open(parts[-1], PLAIN, dir_fd=place)
    except FileNotFoundError:
        return None, False
    except OSError:
        return None, True
    status = os.fstat(descriptor)
    if not is_file(status.st_mode):
        os.close(descriptor)
        return None, True
    return descriptor, status.st_size


def words_in(place, name):
    """Returns the words of one of our own small files; an empty list if there are none."""
    descriptor, size = file_in(place, name)
    if descriptor is None:
        return []
    try:
        return os.pread(descriptor, 200, 0).decode("ascii", "replace").split() if size <= 200 else []
    finally:
        os.close(descriptor)


def process(pid):
    """Returns state, parent, session and start time of a process; None if it does not exist."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            fields = stat.read(4096).rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[3]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def is_halted(info):
    """Returns true if a signal or a debugger has stopped the process."""
    return info is not None and info[0] in (b"T", b"t")


def is_alive(pid, start):
    """Returns true if this process is still running; compares the start time, since ids are reused."""
    if pid <= 1:
        return False
    if process(os.getpid()) is None:
        # Processes are not visible here.
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False
    found = process(pid)
    return found is not None and found[0] not in (b"Z", b"X") and found[3] == start


def wrapper_of(place):
    """Returns process id, start time and the job's session, as the wrapper recorded them. A job may have changed the record."""
    try:
        pid, start, session = map(int, words_in(place, "pid"))
        return pid, start, session
    except ValueError:
        return 0, 0, 0


def guarded(main, seconds):
    signal.alarm(seconds)
    try:
        main(*ARGS)
    except OSError as error:
        say("failed", (error.strerror or "unknown").replace(" ", "_"))
    sys.stdout.flush()
