"""A million records, a hundred at a time: a window of runs that slides over them.

Each record is a run of its own, on any worker. The window starts the next one as soon as one has ended, and goes on as
a new generation now and then, with the runs that are still under way. (If each record is one step,
`engine.start_batch` does this for you.)
"""

import asyncio
from dataclasses import dataclass, field

import outlive

WIDTH = 3
STARTS_PER_GENERATION = 4


@dataclass
class Window:
    records: int
    next: int = 0
    done: int = 0
    open: list[str] = field(default_factory=list)


@outlive.step(name="patterns.handle_record")
async def handle_record(number: int) -> int:
    await asyncio.sleep(0.001 * (number % 3))
    return number


@outlive.workflow(name="patterns.record")
async def record(number: int) -> int:
    return await handle_record(number)


@outlive.workflow(name="patterns.window")
async def slide(window: Window) -> int:
    waiting = {asyncio.create_task(outlive.get(run_id, int).result(), name=run_id) for run_id in window.open}
    last = window.next + STARTS_PER_GENERATION
    while window.done < window.records:
        while len(waiting) < WIDTH and window.next < min(last, window.records):
            run = await outlive.start(record, window.next, detached=True, id=f"record-{window.next}")
            waiting.add(asyncio.create_task(run.result(), name=run.id))
            window.next += 1
        if window.next == last < window.records:
            window.open = sorted(task.get_name() for task in waiting)
            outlive.continue_as_new(window)
        ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        window.done += len(ended)
        outlive.publish(done=window.done)
    return window.done


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(slide, Window(records=10), id="import")
        print(await run.result(), "records,", await run.published())
        print(await engine.count(workflow="patterns.record", status="succeeded"), "runs")


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# 10 records, {'done': 10}
# 10 runs
