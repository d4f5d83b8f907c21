"""TanStack: a durable timer, and a host that only now and then runs the engine.

A sleep is a wake-up time in the store. The page's host calls `runtime.sweep()`, which claims the timers that are
due. Here entering an engine is the sweep: its worker does what is due, and leaving the engine releases everything.
Between the two no process is needed. A process that lives on is its own sweep.
"""

import asyncio
from datetime import timedelta

import outlive

URL = "sqlite:timers.db"


@outlive.step
async def remind(what: str) -> str:
    return f"remember: {what}"


@outlive.workflow
async def reminder(what: str) -> str:
    await asyncio.sleep(1.2)  # ctx.sleep; three days would be the same
    return await remind(what)


async def main() -> None:
    async with outlive.Engine(URL) as engine:  # a host that starts the run, and ends
        run = await engine.start(reminder, "the milk", id="reminder-1")
        await run.until("waiting")
    async with outlive.Engine(URL, worker=False) as engine:  # no worker anywhere: the store knows what is due, and when
        info = await engine.info("reminder-1")
        print(info.status, repr(info.worker), info.wake_at - info.created_at >= timedelta(seconds=1.2))
    await asyncio.sleep(1.2)
    async with outlive.Engine(URL) as engine:  # the next host: a cron job, a function, a restarted process
        print(await engine.get("reminder-1").result())
        print([event.type for event in await engine.history("reminder-1")])


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# waiting '' True
# remember: the milk
# ['RunCreated', 'RunSuspended', 'RunClaimed', 'TimerFired', 'StepSucceeded', 'RunSucceeded']
