"""TanStack: a schedule, each tick of which starts one run, with an id that follows from the tick.

The page's `digest`, every 15 minutes, with the overlap policy `skip`, which is enforced here. Two workers share
the store, and each tick has one run. A tick is a fresh run, so there is no workflow that sleeps in a loop for
ever.
"""

import asyncio
from datetime import datetime
from itertools import pairwise

import outlive
from outlive.testing import TestEngine

EVERY_15_MINUTES = outlive.every(minutes=15, name="digest-every-15m", overlap="skip", args={"batch_size": 100})


@outlive.step
async def send_digest(batch_size: int) -> str:
    return f"sent {batch_size}"


@outlive.workflow(schedule=EVERY_15_MINUTES)
async def digest(batch_size: int) -> str:
    return await send_digest(batch_size)


async def main() -> None:
    # A TestEngine skips the time; in production it is outlive.Engine, and the quarters of an hour are real.
    async with (
        TestEngine("sqlite:digest.db", schedules=True) as engine,
        TestEngine("sqlite:digest.db", schedules=True, clock=engine.clock) as other,
    ):
        assert other.clock is engine.clock
        await engine.skip(hours=1)
        runs = await engine.list(workflow="digest", order="created_at")
        print([await engine.get(run.id).result() for run in runs])
        ticks = [datetime.fromisoformat(run.id.removeprefix("digest-every-15m@")) for run in runs]
        print({str(later - earlier) for earlier, later in pairwise(ticks)}, {tick.second for tick in ticks})
        schedule = await engine.schedules.get("digest-every-15m")
        print("the next one after", schedule.next_fires[0] - ticks[-1])


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# ['sent 100', 'sent 100', 'sent 100', 'sent 100']
# {'0:15:00'} {0}
# the next one after 0:15:00
