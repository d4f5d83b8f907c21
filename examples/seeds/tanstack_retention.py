"""TanStack: how long runs that have ended stay.

The page names what they stay for (results, webhooks that are repeated, debugging, audits) and leaves the deleting
to a store or an admin job. Here it is an option of the engine: the workers delete, in small transactions, and
write an archive first if they are to. An open run is never deleted.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

import outlive
from outlive.testing import TestEngine


@outlive.workflow
async def task(number: int) -> str:
    if number == 13:
        raise ValueError("broken")
    return "done"


KEEP = outlive.retention.Keep("task", succeeded=timedelta(days=7), failed=timedelta(days=90), archive="archive")


def archives() -> int:
    return len(list(Path("archive").glob("runs-*.jsonl.gz")))


async def main() -> None:
    async with TestEngine(retention=[KEEP]) as engine:  # it skips the days; in production it is outlive.Engine
        await (await engine.start(task, 7, id="good-1")).result()
        try:
            await (await engine.start(task, 13, id="bad-1")).result()
        except outlive.errors.RunFailedError as error:
            print(error)
        await engine.skip(days=8)
        print("after 8 days:", [run.id for run in await engine.list()])
        await engine.skip(days=90)
        print("after 98 days:", [run.id for run in await engine.list()])
        print("archives:", archives())
        again = await engine.start(task, 7, id="good-1")  # forgotten: the id begins a new run
        print(await again.result(), len(await again.history()), "events")


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# run bad-1 failed: ValueError: broken
# after 8 days: ['bad-1']
# after 98 days: []
# archives: 2
# done 2 events
