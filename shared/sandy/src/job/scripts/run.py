# Starts a small job, whose files come with this command, and waits for a while until it ends. Returns its status as
# `look` does, then its results as `harvest` does if it is over. Does not start it again.
import io

# Time between two checks whether the job is over; doubled up to the maximum.
CHECK_S = 0.01
CHECK_MAX_S = 0.03


def main(job, limit_ms, stale_s, wait_ms, bundle, *asked):
    os.makedirs("jobs/" + job, exist_ok=True)
    place = job_folder(job)
    if place is None:
        return say("failed", "the_job_has_no_folder")
    fcntl.flock(place, fcntl.LOCK_EX)
    top = os.open(".", FOLDER)
    os.fchdir(place)
    if not os.path.lexists("lock"):
        unbundled(io.BytesIO(binascii.a2b_base64(bundle)))
    os.fchdir(top)
    begin(place, limit_ms)
    words, wait, until = status(job, stale_s), CHECK_S, time.monotonic() + int(wait_ms) / 1000
    while words[0] == "running" and time.monotonic() < until:
        time.sleep(min(wait, max(0, until - time.monotonic())))
        words, wait = status(job, stale_s), min(2 * wait, CHECK_MAX_S)
    say(*words)
    if words[0] == "over":
        send(place, *asked)
    say("end")
