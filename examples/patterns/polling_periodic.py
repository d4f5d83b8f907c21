"""Polling with steps that change from look to look, for as long as it takes: a child that goes on as new.

Each look may call other steps than the look before, so it is not a retry. The child keeps its journal short by going on
as a new generation, and its parent sees none of that.
"""

import asyncio

import outlive
from outlive.testing import TestEngine

LOOKS_PER_GENERATION = 3


@outlive.step(name="patterns.look_at_queue")
async def look_at_queue(look: int) -> int:
    return max(0, 7 - look)  # How many are ahead of us.


@outlive.workflow(name="patterns.queue_watch")
async def watch_queue(look: int) -> int:
    for _ in range(LOOKS_PER_GENERATION):
        look += 1
        ahead = await look_at_queue(look)
        if ahead == 0:
            return look
        await asyncio.sleep(60 * ahead)  # Durable, and longer while many are ahead.
    outlive.continue_as_new(look)


@outlive.workflow(name="patterns.poll_in_child")
async def poll_in_child(place: str) -> str:
    watch = await outlive.start(watch_queue, 0, detached=True, id=f"watch-{place}")
    return f"first in {place} after {await watch.result()} looks"


async def main() -> None:
    async with TestEngine() as engine:
        run = await engine.start(poll_in_child, "box-office")
        print(await run.result())
        print([found.id for found in await engine.list(id_prefix="watch-", order="created_at")])


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# first in box-office after 7 looks
# ['watch-box-office~gen1', 'watch-box-office~gen2', 'watch-box-office']
