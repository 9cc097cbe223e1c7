# Returns the status of a job: `none`, `running ELAPSED_MS`, `over …` as the wrapper recorded it, `vanished`, or
# `halted` if the wrapper is stopped, which only a program of the job can have done.
import time

# Time to wait for the folder. If a job removed it, its wrapper creates another one at the next heartbeat, after half a
# second, or later on a busy machine.
AGAIN_S = 2.0
# Time after which a wrapper that is found stopped is looked at once more.
HALTED_AGAIN_S = 0.4


def place_and_begin(job):
    place = job_folder(job)
    try:
        return place, None if place is None else os.lstat("lock", dir_fd=place).st_mtime
    except OSError:
        return place, None


def elapsed_ms(began):
    return max(0, int((time.time() - began) * 1000))


def main(job, stale_s):
    say(*status(job, stale_s))


def status(job, stale_s):
    """Leaves no file open, since `run` calls it many times."""
    until = time.monotonic() + AGAIN_S
    while True:
        place, began = place_and_begin(job)
        try:
            if began is not None:
                return status_in(place, began, stale_s)
        finally:
            if place is not None:
                os.close(place)
        if time.monotonic() >= until:
            return ("none",)
        time.sleep(0.05)


def status_in(place, began, stale_s):
    pid, start, _ = wrapper_of(place)
    noted = words_in(place, "rc")
    # The wrapper's record counts once the wrapper has exited, which it does at once: it replaces any other record
    # before. Where processes are not visible, an exited wrapper may still seem to be running.
    sees = process(os.getpid()) is not None
    for _ in range(20):
        if not (noted and sees and is_alive(pid, start)):
            break
        time.sleep(0.01)
    if is_alive(pid, start) and is_halted(process(pid)):
        time.sleep(HALTED_AGAIN_S)
        if is_alive(pid, start) and is_halted(process(pid)):
            return ("halted",)
    if is_alive(pid, start) and (sees or not noted):
        return "running", elapsed_ms(began)
    noted = words_in(place, "rc")
    if noted:
        return "over", *noted
    last = began
    try:
        beat = os.lstat("beat", dir_fd=place)
        if is_file(beat.st_mode):
            last = max(last, beat.st_mtime)
    except OSError:
        pass
    # Read after the heartbeat, which would otherwise seem to come from the future.
    if 0 <= time.time() - last <= int(stale_s):
        return "running", elapsed_ms(began)
    return ("vanished",)
