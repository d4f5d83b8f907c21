"""TanStack: a worker crashes, and another one claims its stale work.

A worker owns the runs that it moves, with a lease that it renews. This program is one worker; it starts another
one, a process of its own, which begins a run and dies by SIGKILL in its second step. Its lease is over (on one
machine the death is seen at once; elsewhere the lease runs out), and this worker goes on with the run. What is
written under a lease that was lost is refused, which the page leaves to idempotency.
"""

import asyncio
import os
import signal
import subprocess
import sys

import outlive

URL = "sqlite:leases.db"


@outlive.step
async def charge(order_id: str) -> str:
    print(f"charge {order_id}", flush=True)
    return f"receipt of {order_id}"


@outlive.step
async def ship(receipt: str) -> str:
    me = outlive.current_step()
    print(f"ship, {receipt}, epoch {me.epoch}", flush=True)
    if "crashes" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"shipped with {receipt}"


@outlive.workflow
async def purchase(order_id: str) -> str:
    return await ship(await charge(order_id))


async def work() -> None:
    async with outlive.Engine(URL, worker=outlive.types.WorkerOptions(name="worker-a")) as engine:
        await (await engine.start(purchase, "o-1", id="purchase-1")).result()


async def main() -> None:
    async with outlive.Engine(URL, worker=outlive.types.WorkerOptions(name="worker-b")) as engine:
        dead = await asyncio.to_thread(subprocess.run, [sys.executable, __file__, "crashes"])
        print("worker-a ended with", dead.returncode, flush=True)
        print(await engine.get("purchase-1").result())
        print([event.words for event in await engine.history("purchase-1") if event.type == "RunClaimed"])


if __name__ == "__main__":
    asyncio.run(work() if "crashes" in sys.argv else main())

# Prints:
# charge o-1
# ship, receipt of o-1, epoch 1
# worker-a ended with -9
# ship, receipt of o-1, epoch 2
# shipped with receipt of o-1
# ['worker worker-b took the run over, whose worker was lost']
