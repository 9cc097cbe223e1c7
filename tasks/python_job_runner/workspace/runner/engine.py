"""Starts jobs when their dependencies have succeeded and a slot is free."""

import asyncio

from .jobs import parse_spec

BLOCKED = "blocked"
READY = "ready"
RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"
SKIPPED = "skipped"


class Job:
    def __init__(self, spec, work):
        self.spec = spec
        self.work = work
        self.state = BLOCKED
        self.ended = asyncio.Event()
        self.task = None


class Engine:
    """Runs jobs. All methods are called in the event loop; `emit` is called with each event, a dict."""

    def __init__(self, clock, slots, emit):
        self.clock = clock
        self.jobs = {}
        self._slots = asyncio.Semaphore(slots)
        self._emit = emit

    def submit(self, fields, work):
        """Adds a job. `work(attempt)` returns the coroutine of an attempt."""
        spec = parse_spec(fields)
        if spec.id in self.jobs:
            raise ValueError(f"job `{spec.id}` exists already")
        for need in spec.needs:
            if need not in self.jobs:
                raise ValueError(f"unknown job `{need}`")
        job = self.jobs[spec.id] = Job(spec, work)
        job.task = asyncio.create_task(self._run(job))

    def states(self):
        """Returns the state of each job by its id."""
        return {job_id: job.state for job_id, job in self.jobs.items()}

    async def _run(self, job):
        for need in job.spec.needs:
            needed = self.jobs[need]
            await needed.ended.wait()
            if needed.state != SUCCEEDED:
                self._end(job, SKIPPED, f"needs {need}: {needed.state}")
                return
        job.state = READY
        async with self._slots:
            job.state = RUNNING
            self._tell("started", job, attempt=1)
            try:
                await job.work(1)
            except Exception as error:
                self._end(job, FAILED, str(error) or type(error).__name__)
            else:
                self._end(job, SUCCEEDED)

    def _end(self, job, state, error=None):
        job.state = state
        job.ended.set()
        details = {"state": state} if error is None else {"state": state, "error": error}
        self._tell("ended", job, **details)

    def _tell(self, event, job, **details):
        self._emit({"event": event, "at": self.clock.now, "id": job.spec.id, **details})
