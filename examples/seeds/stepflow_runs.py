"""Stepflow: the metadata of runs, and results item by item.

The page's verbs: create, get and list runs, change a status, record the result of an item, get all of them in
order. A batch is a run with many inputs. Each item has an outcome of its own, durable as soon as it is there; one
that fails fails no other.
"""

import asyncio

import outlive


@outlive.workflow
async def half(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


@outlive.workflow
async def waits() -> None:
    await outlive.wait_for_signal("never")


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(waits, id="waits-1")  # create_run; twice is once
        again = await engine.start(waits, id="waits-1")
        print("created once:", run.id == again.id, await engine.count())
        await run.until("waiting")
        info = await engine.info("waits-1")  # get_run, with the worker that owns it
        print(info.workflow, info.status, info.parent_id, repr(info.worker))
        await engine.cancel("waits-1", reason="no longer wanted")  # update_run_status, and it reaches the run
        print(await run.until("cancelled"))

        batch = await engine.start_batch(half, [8, 3, 10], concurrency=2, id="halves")  # one item for each input
        for index, result in enumerate(await batch.results()):  # get_item_results, by index
            print(index, repr(result))
        print(await batch.result())

        print([it.id for it in await engine.list(status="cancelled")])  # list_runs(filters)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# created once: True 1
# waits waiting None ''
# <Run waits-1: waits@1, cancelled: no longer wanted>
# 0 4
# 1 ValueError('3 is odd')
# 2 5
# {'total': 3, 'succeeded': 2, 'failed': 1}
# ['waits-1']
