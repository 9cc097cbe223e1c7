# Ends a job: by its wrapper, which notes it; else by hand. One that was not started will not be. With the word `halted` the
# wrapper notes that a program has stopped it.
import time


def signalled(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def of_session(session):
    if session <= 1:
        return []
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return [-session]
    found = ((pid, process(pid)) for pid in pids)
    return [pid for pid, told in found if told and told[2] == session and told[0] != b"Z" and pid != os.getpid()]


def main(job, why="stopped"):
    os.makedirs("jobs/" + job, exist_ok=True)
    place = job_folder(job)
    if place is None:
        return say("stopped")
    try:
        os.mkdir("lock", 0o700, dir_fd=place)
        return say("stopped")
    except FileExistsError:
        pass
    pid, start, session = wrapper_of(place)
    if is_alive(pid, start):
        signalled([pid], signal.SIGUSR1 if why == "halted" else signal.SIGTERM)
        for _ in range(700):
            # The wrapper may itself have been stopped by the job, and again.
            signalled([pid], signal.SIGCONT)
            if not is_alive(pid, start):
                break
            time.sleep(0.01)
        else:
            signalled([pid], signal.SIGKILL)
    for _ in range(50):
        left = of_session(session)
        if not left:
            break
        signalled(left, signal.SIGKILL)
        time.sleep(0.01)
    say("stopped")


guarded(main, 9)
