"""One at a time for each account: runs that would get in each other's way line up at a run that is the lock.

The lock comes into being with the first run that wants it, and is gone when the last one has left.
"""

import asyncio

import outlive


@outlive.workflow(name="patterns.lock")
async def lock(account: str) -> int:
    served = 0
    while True:
        try:
            async with asyncio.timeout(5):  # Ends if no run asks for five seconds.
                holder = await outlive.wait_for_signal("want", str)
        except TimeoutError:
            return served
        await outlive.signal(holder, "yours")
        await outlive.wait_for_signal(f"release {holder}")
        served += 1


@outlive.step(name="patterns.want_lock")
async def want_lock(account: str) -> None:
    me = outlive.current_step()
    await outlive.current_engine().signal(f"lock-{account}", "want", me.run_id, key=me.run_id, start=(lock, account))


@outlive.step(name="patterns.book")
async def book(name: str) -> str:
    print(name, "in")
    await asyncio.sleep(0.002)
    print(name, "out")
    return name


@outlive.workflow(name="patterns.transfer")
async def transfer(account: str, name: str) -> str:
    await want_lock(account)
    await outlive.wait_for_signal("yours")
    try:
        return await book(name)
    finally:
        await outlive.signal(f"lock-{account}", f"release {outlive.current_run().id}")


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        runs = [await engine.start(transfer, "7", name) for name in ("first", "second")]
        await asyncio.gather(*(run.result() for run in runs))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# first in
# first out
# second in
# second out
