# Where a job stands: `none`, `running ELAPSED_MS`, `over …` as the wrapper noted it, or `vanished`.
import time


def main(job, stale_s):
    place = job_folder(job)
    if place is None:
        return say("none")
    try:
        began = os.lstat("lock", dir_fd=place).st_mtime
    except OSError:
        return say("none")
    pid, start, _ = wrapper_of(place)
    noted = words_in(place, "rc")
    # The note counts when the wrapper, which replaces any other, is done with it. That is at once.
    for _ in range(20):
        if not (noted and is_alive(pid, start)):
            break
        time.sleep(0.01)
    now = time.time()
    if is_alive(pid, start):
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
