# Where a job stands: `none`, `running ELAPSED_MS`, `over …` as the wrapper noted it, `vanished`, or `halted` when the wrapper
# is stopped: by a program of the job, since nobody else sends signals there.
import time

# A job may have removed its folder. Its wrapper makes another, at the next beat.
AGAIN_S = 0.8


def place_and_begin(job):
    place = job_folder(job)
    try:
        return place, None if place is None else os.lstat("lock", dir_fd=place).st_mtime
    except OSError:
        return place, None


def main(job, stale_s):
    until = time.monotonic() + AGAIN_S
    place, began = place_and_begin(job)
    while began is None and time.monotonic() < until:
        time.sleep(0.05)
        place, began = place_and_begin(job)
    if began is None:
        return say("none")
    pid, start, _ = wrapper_of(place)
    noted = words_in(place, "rc")
    # The note counts when the wrapper, which replaces any other, is done with it. That is at once. Where nothing can be
    # told of processes, a wrapper that is done with it may still seem to be there.
    sees = process(os.getpid()) is not None
    for _ in range(20):
        if not (noted and sees and is_alive(pid, start)):
            break
        time.sleep(0.01)
    now = time.time()
    if is_alive(pid, start) and is_halted(process(pid)):
        time.sleep(AGAIN_S / 2)
        if is_alive(pid, start) and is_halted(process(pid)):
            return say("halted")
    if is_alive(pid, start) and (sees or not noted):
        return say("running", max(0, int((now - began) * 1000)))
    noted = words_in(place, "rc")
    if noted:
        return say("over", *noted)
    last = began
    try:
        beat = os.lstat("beat", dir_fd=place)
        if is_file(beat.st_mode):
            last = max(last, beat.st_mtime)
    except OSError:
        pass
    if 0 <= now - last <= int(stale_s):
        return say("running", max(0, int((now - began) * 1000)))
    say("vanished")


guarded(main, 8)
