"""Polling every second or faster: the loop is in one step, and a heartbeat says that it lives.

Nothing is journaled for each look. If the worker dies, or the step falls silent for `heartbeat_timeout`, another
attempt goes on from what the last heartbeat saved.
"""

import asyncio

import outlive

ANSWERS = iter(["busy", "busy", "ready"])


@outlive.step(name="patterns.wait_until_ready", timeout=600, heartbeat_timeout=30)
async def wait_until_ready(service: str) -> int:
    me = outlive.current_step()
    looks = me.last_progress or 0
    while True:
        looks += 1
        me.heartbeat(looks)
        if next(ANSWERS) == "ready":
            return looks
        await asyncio.sleep(0.001)


@outlive.workflow(name="patterns.poll_often")
async def poll_often(service: str) -> str:
    return f"{service} was ready at look {await wait_until_ready(service)}"


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(poll_often, "the printer")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# the printer was ready at look 3
