# Ends a job: through its wrapper, which records the end; otherwise directly. A job that was not started will not start
# later. With the word `halted`, the wrapper records that a program has stopped it.
import time


def send_signal(pids, number):
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
    return [pid for pid, info in found if info and info[2] == session and info[0] != b"Z" and pid != os.getpid()]


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
        send_signal([pid], signal.SIGUSR1 if why == "halted" else signal.SIGTERM)
        for _ in range(700):
            # The job may have stopped the wrapper, and may do so again.
            send_signal([pid], signal.SIGCONT)
            if not is_alive(pid, start):
                break
            time.sleep(0.01)
        else:
            send_signal([pid], signal.SIGKILL)
    for _ in range(50):
        left = of_session(session)
        if not left:
            break
        send_signal(left, signal.SIGKILL)
        time.sleep(0.01)
    say("stopped")
