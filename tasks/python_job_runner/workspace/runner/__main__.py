"""The bench: drives an engine over JSON lines."""

import argparse
import asyncio
import json
import os
import sys

from .clock import Clock
from .engine import Engine
from .work import ControlledWork

SETTLE_ROUNDS = 200


class Bench:
    def __init__(self, slots):
        self.clock = Clock()
        self.events = []
        self.works = {}
        self.engine = Engine(self.clock, slots, self.events.append)

    def report(self, event):
        self.events.append({"event": event.pop("event"), "at": self.clock.now, **event})

    def taken_events(self):
        events, self.events[:] = list(self.events), []
        return events

    async def answer(self, command):
        try:
            value = await self.carry_out(command)
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error)}
        await settle()
        return {"result": {"value": value, "events": self.taken_events()}}

    async def carry_out(self, command):
        op = command.pop("op")
        if op == "batch":
            return [self.in_batch(each) for each in command["commands"]]
        if op == "advance":
            return await self.advance(command["by"])
        return self.at_once(op, command)

    def in_batch(self, command):
        try:
            return self.at_once(command.pop("op"), command)
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error)}

    def at_once(self, op, arguments):
        if op == "submit":
            return self.submit(arguments)
        if op == "cancel":
            return self.engine.cancel(arguments["id"])
        if op == "shutdown":
            return self.engine.shutdown(arguments["grace"])
        if op == "status":
            return {"now": self.clock.now, "jobs": self.engine.states(), "timers": self.clock.pending}
        if op in ("finish", "fail", "quit", "cleaned"):
            return getattr(self.works[arguments.pop("id")], op)(**arguments)
        raise ValueError(f"unknown op `{op}`")

    def submit(self, arguments):
        job_id = arguments.get("id")
        work = ControlledWork(job_id, arguments.pop("work", "plain"), self.report)
        self.engine.submit(arguments, work)
        self.works[job_id] = work

    async def advance(self, by):
        target = self.clock.now + by
        while (when := self.clock.next_time()) is not None and when <= target:
            self.clock.move(when)
            await settle()
        self.clock.now = target

    async def end(self):
        """Ends the engine. Returns the status of the bench."""
        abandoned = False if self.engine.closed else self.engine.abandon()
        await settle()
        tasks = len(asyncio.all_tasks()) - 1
        say({"tasks": tasks, "timers": self.clock.pending, "events": self.taken_events()})
        return 1 if abandoned else 0


async def settle():
    """Lets the loop run until nothing moves any more."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)


def say(answer):
    print(json.dumps(answer), flush=True)


async def main(slots):
    bench = Bench(slots)
    # Reading blocks the loop on purpose: between two commands nothing happens.
    for line in sys.stdin:
        say(await bench.answer(json.loads(line)))
    status = await bench.end()
    sys.stderr.flush()
    # Stubborn work would keep the loop from closing.
    os._exit(status)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="runner", description="Drives an engine over JSON lines.")
    parser.add_argument("--slots", type=int, default=2)
    asyncio.run(main(parser.parse_args().slots))
