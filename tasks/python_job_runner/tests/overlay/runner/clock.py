"""A clock that moves only when it is told to."""

import heapq
import itertools


class Timer:
    """A call in the future. It stays in the clock until it fires or is cancelled."""

    def __init__(self, clock, when, function):
        self.when = when
        self.function = function
        self._clock = clock

    def cancel(self):
        self._clock.discard(self)


class Clock:
    def __init__(self):
        self.now = 0
        self._timers = set()
        self._queue = []
        self._numbers = itertools.count()

    def call_at(self, when, function):
        """Calls a function at a time; at the next move of the clock if that time is over."""
        timer = Timer(self, when, function)
        self._timers.add(timer)
        heapq.heappush(self._queue, (when, next(self._numbers), timer))
        return timer

    def discard(self, timer):
        self._timers.discard(timer)

    @property
    def pending(self):
        """Number of timers that wait."""
        return len(self._timers)

    def next_time(self):
        """Returns the time of the earliest timer, `None` without one."""
        while self._queue and self._queue[0][2] not in self._timers:
            heapq.heappop(self._queue)
        return max(self._queue[0][0], self.now) if self._queue else None

    def move(self, when):
        """Moves to a time and fires the timers that are due."""
        self.now = when
        due = []
        while self._queue and self._queue[0][0] <= when:
            timer = heapq.heappop(self._queue)[2]
            if timer in self._timers:
                due.append(timer)
        for timer in due:
            if timer in self._timers:
                self._timers.discard(timer)
                timer.function()
