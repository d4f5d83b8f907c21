"""Polling once a minute or less: the step looks once and fails while it is too early, and its retry policy is the poll.

Between two attempts the run holds no worker and no slot, and the clock is in the journal: a crash loses nothing of the
wait. `attempts=None` polls for ever, `elapsed_max` for a time.
"""

import asyncio

import outlive
from outlive.testing import TestEngine

looks = 0


class NotReadyError(Exception):
    """It is too early."""


@outlive.step(
    name="patterns.fetch_report",
    retry=outlive.Retry(attempts=None, first=60, factor=1, jitter=0, on=(NotReadyError,), elapsed_max=24 * 3600),
)
async def fetch_report(day: str) -> str:
    global looks
    looks += 1
    if looks < 4:
        raise NotReadyError(day)
    return f"report of {day}"


@outlive.workflow(name="patterns.poll_rarely")
async def poll_rarely(day: str) -> str:
    began = outlive.now()
    report = await fetch_report(day)
    return f"{report} after {(outlive.now() - began).seconds // 60} minutes"


async def main() -> None:
    async with TestEngine() as engine:  # Time skips; with `Engine` the same takes three minutes.
        run = await engine.start(poll_rarely, "monday")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# report of monday after 3 minutes
