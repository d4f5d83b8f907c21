"""Asynkron: two hosts, one lease, and a host that is killed.

The page's two diagrams. Host A claims an instance and renews its lease while it works, for longer than a lease
lasts; host B claims nothing meanwhile. Then host A is killed with SIGKILL. B takes the instance over with a higher
version (`epoch`), and the activity that had completed is not called again. Each write of a host says which state
it follows, so a host that lost its lease can save nothing; `SaveStateAsync` on the page takes no version.

This program is host B. It starts host A, a process of its own.
"""

import asyncio
import subprocess
import sys

import outlive

URL = "sqlite:hosts.db"
LEASE_SECONDS = 3


@outlive.step
async def first_activity() -> str:
    return "first"


@outlive.step
async def long_activity() -> str:
    me = outlive.current_step()
    print("long activity, version", me.epoch, flush=True)
    if me.epoch == 1:
        await asyncio.sleep(3600)
    return "long"


@outlive.workflow
async def orchestrator() -> list[str]:
    return [await first_activity(), await long_activity()]


def host(name: str) -> outlive.Engine:
    return outlive.Engine(URL, worker=outlive.types.WorkerOptions(name=name, lease_seconds=LEASE_SECONDS))


async def host_a() -> None:
    async with host("host-a") as engine:
        await (await engine.start(orchestrator, id="instance-1")).result()


async def main() -> None:
    async with host("host-b") as engine:
        other = await asyncio.to_thread(subprocess.Popen, [sys.executable, __file__, "host-a"])
        while not (await engine.list(id_prefix="instance-1") and (await engine.info("instance-1")).worker):
            await asyncio.sleep(0.05)
        await asyncio.sleep(LEASE_SECONDS + 0.5)
        print("longer than a lease, and it is still with", (await engine.info("instance-1")).worker, flush=True)
        other.kill()
        print("killed:", await asyncio.to_thread(other.wait), flush=True)
        print(await engine.get("instance-1").result())
        print([event.type for event in await engine.history("instance-1")])


if __name__ == "__main__":
    asyncio.run(host_a() if "host-a" in sys.argv else main())

# Prints:
# long activity, version 1
# longer than a lease, and it is still with host-a
# killed: -9
# long activity, version 2
# ['first', 'long']
# ['RunCreated', 'StepSucceeded', 'RunClaimed', 'StepSucceeded', 'RunSucceeded']
