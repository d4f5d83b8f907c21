"""TanStack: a durable timer, and a host that only now and then runs the engine.

A sleep is a wake-up time in the store. The page's host calls `runtime.sweep({maxTimers: 25})`, which claims the timers
that are due and says what it did. Here that is `engine.work(...)`, or `outlive worker app.py --until-idle` in a cron
line: it does what is due, releases everything, and says when the next run is due. Between two sweeps no process is
needed.
"""

import asyncio
from datetime import UTC, datetime

import outlive

URL = "sqlite:timers.db"


@outlive.step
async def remind(what: str) -> str:
    return f"remember: {what}"


@outlive.workflow
async def reminder(what: str) -> str:
    await asyncio.sleep(1.2)  # ctx.sleep; three days would be the same
    return await remind(what)


async def sweep() -> outlive.types.WorkDone:
    done = await outlive.Engine(URL).work("20s", until_idle=True, runs_max=25)
    print(done.ended_by, "runs:", done.runs_taken, "timers:", done.timers_fired, "succeeded:", done.runs_succeeded)
    return done


async def main() -> None:
    async with outlive.Engine(URL, worker=False) as engine:  # a request: it only starts the run
        await engine.start(reminder, "the milk", id="reminder-1")
        first = await sweep()  # the host's first call: the run goes to sleep
        print(await engine.get("reminder-1").status(), "and due:", first.next_due_at is not None)
        assert first.next_due_at
        await asyncio.sleep((first.next_due_at - datetime.now(UTC)).total_seconds())
        await sweep()  # its next call, by the clock
        print(await engine.get("reminder-1").result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# idle runs: 1 timers: 0 succeeded: 0
# waiting and due: True
# idle runs: 1 timers: 1 succeeded: 1
# remember: the milk
