"""Work that commands control."""

import asyncio


class Permanent(Exception):
    """A failure that another attempt wouldn't repair."""


class ControlledWork:
    """The work of one job. Each call runs an attempt."""

    def __init__(self, job_id, kind, report):
        if kind not in ("plain", "cleanup", "stubborn"):
            raise ValueError(f"unknown work `{kind}`")
        self.job_id = job_id
        self.kind = kind
        self._report = report
        self._outcome = None
        self._cleaned = None

    async def __call__(self, attempt):
        self._outcome = asyncio.get_running_loop().create_future()
        try:
            self._tell(attempt, "began")
            while True:
                try:
                    await asyncio.shield(self._outcome)
                    return
                except asyncio.CancelledError:
                    if self._outcome.cancelled() or self.kind == "plain":
                        raise
                    self._tell(attempt, "cancelled")
                    if self.kind == "cleanup":
                        await self._clean(attempt)
                        raise
        finally:
            self._outcome.cancel()
            self._outcome = None

    async def _clean(self, attempt):
        self._cleaned = asyncio.get_running_loop().create_future()
        try:
            await self._cleaned
            self._tell(attempt, "cleaned")
        except asyncio.CancelledError:
            self._tell(attempt, "interrupted")
            raise
        finally:
            self._cleaned = None

    def _tell(self, attempt, what):
        self._report({"event": "work", "id": self.job_id, "attempt": attempt, "what": what})

    # Commands

    def finish(self):
        self._running(self._outcome).set_result(None)

    def fail(self, error, permanent=False):
        self._running(self._outcome).set_exception((Permanent if permanent else RuntimeError)(error))

    def quit(self):
        self._running(self._outcome).cancel()

    def cleaned(self, error=None):
        future = self._running(self._cleaned)
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(RuntimeError(error))

    def _running(self, future):
        if future is None or future.done():
            raise ValueError(f"the work of `{self.job_id}` doesn't wait for this")
        return future
