# What every command has. Standard library only, and little of it: it is started for each command anew.
# Answers are lines of words behind a mark that only the asker knows; what a job's programs print is none.
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
    """A folder that no link leads to, made usable where the job took our rights away; None when it is none."""
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
    return None if jobs is None else folder(job, jobs)


def file_in(place, path):
    """A regular file that no link leads to. Gives (descriptor, length), (None, True) for something else, (None, False)."""
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
        return None, True
    return descriptor, status.st_size


def words_in(place, name):
    """The words of one of our own small files, or none."""
    descriptor, size = file_in(place, name)
    if descriptor is None or size > 200:
        return []
    return os.pread(descriptor, 200, 0).decode("ascii", "replace").split()


def process(pid):
    """State, parent, session and start of a process, as the kernel tells; None when there is none."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as told:
            fields = told.read(4096).rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[3]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def is_halted(told):
    """Whether a signal or a debugger has stopped it."""
    return told is not None and told[0] in (b"T", b"t")


def is_alive(pid, start):
    """Whether this very process still runs: its number may belong to another one by now."""
    if pid <= 1:
        return False
    if process(os.getpid()) is None:
        # Nothing can be told of processes here.
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False
    found = process(pid)
    return found is not None and found[0] not in (b"Z", b"X") and found[3] == start


def wrapper_of(place):
    """Number, start and the job's session, as the wrapper noted them. A job may have changed that."""
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
