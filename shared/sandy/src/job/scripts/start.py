# Starts a job once, in the background, under a wrapper that outlives this command. The wrapper forks only the job, so
# that it keeps working if the job takes all processes or memory.
import fcntl, select, struct, time

KEPT_MAX = 1024 * 1024
TAIL = 64 * 1024
BEAT_S = 0.5
MERCY_S = 5.0
KILL_S = 3.0
DRAIN_S = 1.0
WATCH_S = 1.0
# Number of checks that must find the same process stopped. A program that stops its supervisor blocks its job; short
# stops are permitted.
HALTS_MAX = 5
ROOM = 64


def main(job, limit_ms):
    place = job_folder(job)
    descriptor, _ = (None, None) if place is None else file_in(place, "script.sh")
    if descriptor is None:
        return say("failed", "there_is_no_script")
    # The lock keeps `unpack` and `place` from changing files between this point and the script's start.
    fcntl.flock(place, fcntl.LOCK_EX)
    say(begin(place, limit_ms))


def begin(place, limit_ms):
    """Starts the job whose folder the caller has locked. Returns `started`, or `already`. Releases the lock."""
    try:
        os.mkdir("lock", 0o700, dir_fd=place)
    except FileExistsError:
        fcntl.flock(place, fcntl.LOCK_UN)
        return "already"
    fcntl.flock(place, fcntl.LOCK_UN)
    try:
        recorded, recording = os.pipe()
        child = os.fork()
        if child == 0:
            detached(place, int(limit_ms) / 1000, recording)
        os.close(recording)
        if os.waitpid(child, 0)[1] != 0:
            raise OSError(11, "no process is left")
    except OSError:
        # Nothing was started, so the caller may try again.
        os.rmdir("lock", dir_fd=place)
        raise
    # The wrapper closes its end when `stop` can find the job.
    os.read(recorded, 1)
    os.close(recorded)
    return "started"


def detached(place, limit_s, recording):
    code = 1
    try:
        signal.alarm(0)
        os.setsid()
        if os.fork():
            code = 0
        else:
            os.fchdir(place)
            Wrapper(os.getcwd(), limit_s, recording).run()
    finally:
        os._exit(code)


class OutputTail:
    """Keeps the end of a stream in a file of limited size."""

    def __init__(self, name):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.size, self.tail, self.file = 0, b"", None
        try:
            self.file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            pass

    def take(self):
        """Reads once. Returns False at the end of the stream."""
        try:
            data = os.read(self.reader, TAIL)
        except BlockingIOError:
            return True
        if not data:
            return False
        self.tail = (self.tail + data)[-TAIL:]
        if self.file is not None:
            try:
                if self.size + len(data) > KEPT_MAX:
                    os.ftruncate(self.file, 0)
                    data, self.size = self.tail, 0
                self.size += os.pwrite(self.file, data, self.size)
            except OSError:
                pass  # The disk is full. The job must not be blocked.
        return True


class Wrapper:
    def __init__(self, path, limit_s, recording):
        self.path = path
        self.recording = recording
        self.began = time.monotonic()
        self.until = self.began + limit_s
        self.is_stopped = False
        self.is_halted = False
        self.halts = {}
        self.ended = None
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, recording)
        os.closerange(recording + 1, 1024)
        # Reserve space for the record, which must be written even if the disk is full.
        self.note = self.prepared()
        self.fence = fence()
        self.streams = [OutputTail("out"), OutputTail("err")]

    def prepared(self):
        try:
            note = os.open("rc.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.pwrite(note, b" " * ROOM, 0)
            return note
        except OSError:
            return None

    def run(self):
        woken, waker = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGUSR1, self.halt)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        become_subreaper()
        gate, opened = os.pipe()
        self.main = self.spawn(gate, opened)
        own = process(os.getpid())
        self.put("pid", "%d %d %d\n" % (os.getpid(), own[3] if own else 0, self.main))
        self.beat()
        # The script starts once its processes are recorded: it might end this process at once.
        os.write(opened, b"1")
        for descriptor in (gate, opened, self.recording):
            os.close(descriptor)
        beat_at = time.monotonic() + BEAT_S
        watch_at = time.monotonic() + WATCH_S
        open_streams = list(self.streams)
        while self.ended is None and not self.is_stopped and not self.is_halted:
            now = time.monotonic()
            if now >= self.until:
                break
            if now >= beat_at:
                self.beat()
                beat_at = now + BEAT_S
            if now >= watch_at:
                self.watch()
                watch_at = time.monotonic() + WATCH_S
            self.turn(open_streams, woken, min(beat_at, self.until) - now)
        is_late = self.ended is None and not self.is_stopped and not self.is_halted
        if self.ended is None:
            self.send_signal(signal.SIGTERM)
            until = time.monotonic() + MERCY_S
            while self.ended is None and time.monotonic() < until:
                self.turn(open_streams, woken, until - time.monotonic())
        until = time.monotonic() + KILL_S
        while self.send_signal(signal.SIGKILL) and time.monotonic() < until:
            self.turn(open_streams, woken, 0.005)
        until = time.monotonic() + DRAIN_S
        while open_streams and time.monotonic() < until:
            self.turn(open_streams, None, until - time.monotonic())
        if is_late:
            how = "timed-out"
        elif self.is_halted:
            how = "halted"
        elif self.is_stopped:
            how = "signal 15"
        elif os.WIFSIGNALED(self.ended):
            how = "signal %d" % os.WTERMSIG(self.ended)
        else:
            how = "exited %d" % os.WEXITSTATUS(self.ended)
        self.write_record("%s %d" % (how, int((time.monotonic() - self.began) * 1000)))

    def stop(self, *_):
        self.is_stopped = True

    def halt(self, *_):
        self.is_halted = True

    def watch(self):
        """Ends the job if one of its processes is found stopped several times, even if it runs in between."""
        halted = {(pid, info[3]) for pid, info in (self.processes() or {}).items() if is_halted(info)}
        self.halts = {which: self.halts.get(which, 0) + (which in halted) for which in halted | set(self.halts)}
        if len(self.halts) > 1000:
            self.halts = dict.fromkeys(halted, 1)
        self.is_halted = self.is_halted or any(count >= HALTS_MAX for count in self.halts.values())

    def spawn(self, gate, opened):
        """Forks the job's first process, which starts the script when a byte comes through the gate."""
        main = os.fork()
        if main:
            for stream in self.streams:
                os.close(stream.writer)
            return main
        try:
            os.setsid()
            os.close(opened)
            if not os.read(gate, 1):
                return None
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(self.streams[0].writer, 1)
            os.dup2(self.streams[1].writer, 2)
            self.fence()
            os.execvp("bash", ["bash", "script.sh"])
        finally:
            os._exit(127)

    def turn(self, open_streams, woken, seconds):
        """Waits for an event, reads output, and reaps children."""
        readers = [stream.reader for stream in open_streams] + ([] if woken is None else [woken])
        try:
            ready = select.select(readers, [], [], max(0, seconds))[0]
        except OSError:
            ready = []
        if woken in ready:
            try:
                os.read(woken, 4096)
            except OSError:
                pass
        for stream in list(open_streams):
            if stream.reader in ready and not stream.take():
                open_streams.remove(stream)
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.main:
                    self.ended = status
        except ChildProcessError:
            if self.ended is None:
                self.ended = 0x7F00

    def processes(self):
        """Returns the visible processes of the job; None if no processes are visible."""
        found = {}
        try:
            for name in os.listdir("/proc"):
                if name.isdigit():
                    info = process(int(name))
                    if info is not None:
                        found[int(name)] = info
        except OSError:
            pass
        if not found:
            return None
        own, ours, grew = os.getpid(), {os.getpid()}, True
        while grew:
            grew = False
            for pid, (_, above, session, _) in found.items():
                if pid not in ours and (above in ours or session == self.main):
                    ours.add(pid)
                    grew = True
        return {pid: found[pid] for pid in ours if pid != own and found[pid][0] not in (b"Z", b"X")}

    def send_signal(self, number):
        """Sends a signal to all processes of the job. Returns true if there were any."""
        alive = self.processes()
        if alive is None:
            try:
                os.killpg(self.main, number)
                return True
            except OSError:
                return False
        for pid in alive:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        return bool(alive)

    def restore_folder(self):
        """Restores the job's folder, since the job may have removed or replaced it."""
        try:
            here, there = os.stat("."), os.lstat(self.path)
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                if here.st_mode & 0o700 != 0o700:
                    os.chmod(".", 0o700)
                return
            os.rename(self.path, "%s.%d.%d" % (self.path, os.getpid(), time.monotonic_ns()))
        except OSError:
            pass
        os.makedirs(self.path + "/lock", exist_ok=True)
        os.chdir(self.path)

    def put(self, name, text, note=None):
        """Writes one of our own files atomically, and replaces whatever the job has put in its place."""
        try:
            self.restore_folder()
            temporary = name + ".tmp"
            if note is not None:
                try:
                    there, ours = os.lstat(temporary), os.fstat(note)
                    if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
                        note = None
                except OSError:
                    note = None
            if note is None:
                move_aside(temporary)
                note = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            os.pwrite(note, text.encode(), 0)
            if os.path.isdir(name):
                move_aside(name)
            os.rename(temporary, name)
        except OSError:
            pass

    def beat(self):
        try:
            self.restore_folder()
            os.utime("beat", follow_symlinks=False)
            if is_file(os.lstat("beat").st_mode):
                return
        except OSError:
            pass
        self.put("beat", "")

    def write_record(self, text):
        self.put("rc", text.ljust(ROOM - 1) + "\n", self.note)


def move_aside(name):
    try:
        os.rename(name, "%s.%d.%d" % (name, os.getpid(), time.monotonic_ns()))
    except OSError:
        pass


def become_subreaper():
    """Makes orphans of the job children of the wrapper, if the kernel permits it, so that it can end them."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except Exception:
        pass


# Numbers of system calls by machine: kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo setpriority sched_setparam
# sched_setscheduler sched_setaffinity sched_setattr prlimit64 ptrace process_vm_writev fcntl ioctl, and the kernel's
# number of the machine.
CALLS = {
    "x86_64": (62, 200, 234, 129, 297, 141, 142, 144, 203, 314, 302, 101, 311, 72, 16, 0xC000003E),
    "aarch64": (129, 130, 131, 138, 240, 140, 118, 119, 122, 274, 261, 117, 271, 25, 29, 0xC00000B7),
}
PIDFD_SEND_SIGNAL, PIDFD_OPEN, LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 424, 434, 444, 445, 446
# Right to move and link files between folders. Rules that don't mention it deny it.
LANDLOCK_REFER = 1 << 13
F_SETOWN, F_SETOWN_EX, OWNER_REQUESTS = 8, 15, (0x8901, 0x8902)


def fence():
    """Returns a function to call in the job's first process, which prevents the job from sending signals to this process or
    slowing it down. The kernel may refuse all of it: then `look` must detect what a job does to its wrapper."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        # Prevent processes of the same user from writing to the memory of this process.
        libc.prctl(4, 0, 0, 0, 0)
        program = filter_of(CALLS[os.uname().machine], os.getpid(), os.getpgrp())
        buffer = ctypes.create_string_buffer(program, len(program))
        program_struct = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    except Exception:
        return lambda: None

    def close(_buffer=buffer):
        try:
            number = ctypes.c_long
            libc.prctl(38, 1, 0, 0, 0)  # No new privileges, a precondition of the rest.
            if libc.syscall(number(LANDLOCK_CREATE), None, number(0), number(1)) >= 6:
                # Landlock restricts signals to the job's processes.
                scope = struct.pack("=3Q", LANDLOCK_REFER, 0, 2)
                rules = libc.syscall(number(LANDLOCK_CREATE), scope, number(len(scope)), number(0))
                if rules >= 0:
                    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
                    everywhere = struct.pack("=Qi", LANDLOCK_REFER, root)
                    if libc.syscall(number(LANDLOCK_ADD), number(rules), number(1), everywhere, number(0)) == 0:
                        libc.syscall(number(LANDLOCK_RESTRICT), number(rules), number(0))
                    os.close(root)
                    os.close(rules)
            libc.prctl(22, 2, program_struct, 0, 0)
        except Exception:
            pass

    return close


def filter_of(calls, pid, group):
    """Builds a filter of system calls (seccomp) that compares arguments with the ids of this process and its group, and -1."""
    kill, tkill, tgkill, queue, tgqueue, priority, param, scheduler, affinity, attributes, limit = calls[:11]
    trace, vm_write, fcntl, ioctl, machine = calls[11:]
    # Call, and arguments with values: refused if each argument has one of its values.
    rules = [(call, {0: (pid,)}) for call in (tkill, tgkill, queue, tgqueue, PIDFD_OPEN, param, scheduler, affinity)]
    rules += [(call, {0: (pid,)}) for call in (attributes, limit, vm_write)]
    rules += [(call, {1: (pid,)}) for call in (tgkill, tgqueue, priority, trace)]
    rules += [
        (kill, {0: (pid, -1, -group)}),
        (priority, {0: (1, 2)}),  # of a group, of a user
        (fcntl, {1: (F_SETOWN,), 2: (pid, -group)}),
        (fcntl, {1: (F_SETOWN_EX,)}),
        (ioctl, {1: OWNER_REQUESTS}),
    ]
    allow, refuse, missing = 0x7FFF0000, 0x00050001, 0x00050026

    def load(at):
        return struct.pack("=HBBI", 0x20, 0, 0, at)

    def skip(kind, yes, no, value):
        return struct.pack("=HBBI", kind, yes, no, value & 0xFFFFFFFF)

    def give(outcome):
        return struct.pack("=HBBI", 0x06, 0, 0, outcome)

    # 32-bit programs have other numbers for the same calls: their calls fail as if they did not exist.
    steps = [load(4), skip(0x15, 1, 0, machine), give(missing), load(0), skip(0x35, 0, 1, 0x40000000), give(missing)]
    steps += [skip(0x15, 0, 1, PIDFD_SEND_SIGNAL), give(missing)]
    for call, arguments in rules:
        body = [give(refuse)]
        for argument, values in sorted(arguments.items(), reverse=True):
            # Compare the low half of the argument, and skip the rest if it has none of the values.
            compared = [skip(0x15, len(values) - at, 0, value) for at, value in enumerate(values)]
            body = [load(16 + 8 * argument), *compared, struct.pack("=HBBI", 0x05, 0, 0, len(body)), *body]
        steps += [load(0), skip(0x15, 0, len(body), call), *body]
    return b"".join([*steps, give(allow)])
