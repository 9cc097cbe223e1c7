# Repeats the task's health check until it succeeds, or fails too often.
def main(request, workspace):
    began, failures = time.monotonic(), 0
    while True:
        expect_open(workspace, request["project"])
        at = time.monotonic()
        ended = run(request, request["timeout_ms"] / 1000, workspace)
        if ended["exit_code"] == 0:
            return {}
        is_starting = at - began < request["start_period_ms"] / 1000
        failures = 0 if is_starting else failures + 1
        if failures >= max(1, request["retries"]):
            how = "took too long" if ended["exit_code"] is None else "ended with exit code %d" % ended["exit_code"]
            log = "".join(ended[stream][part] for stream in ("stdout", "stderr") for part in ("head", "tail"))
            raise Failed("unhealthy", "the health check %s %d times" % (how, failures), log)
        wait_ms = request["start_interval_ms"] if is_starting else request["interval_ms"]
        time.sleep(wait_ms / 1000)
