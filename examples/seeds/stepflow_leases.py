"""Stepflow: leases, orphans and a graceful shutdown.

The page's lease manager: acquire, renew, release, release all, heartbeat, look at a lease, list the orchestrators.
Here a worker does all of it, and a program only looks. Two orchestrators share a store; the first one owns a run
and gets SIGTERM (here: its engine is closed). It releases everything in one commit, and the second one goes on at
once, without waiting for a lease to run out.
"""

import asyncio

import outlive

URL = "sqlite:leases.db"


@outlive.step
async def prepare() -> str:
    return f"prepared in life {outlive.current_step().epoch}"


@outlive.step
async def hold() -> str:
    if outlive.current_step().epoch == 1:
        await asyncio.Event().wait()  # until its worker stops
    return f"finished in life {outlive.current_step().epoch}"


@outlive.workflow
async def long() -> list[str]:
    return [await prepare(), await hold()]


def orchestrator(name: str) -> outlive.Engine:
    return outlive.Engine(URL, worker=outlive.types.WorkerOptions(name=name, lease_seconds=30, grace_seconds=0))


async def main() -> None:
    async with orchestrator("orch-2") as second:
        async with orchestrator("orch-1") as first:
            run = await first.start(long, id="long-1")  # acquire_lease: the worker that is here takes it
            while [step.name for step in await run.steps()] != ["hold"]:
                await asyncio.sleep(0.01)
            for worker in sorted(await second.workers.list(), key=lambda it: it.name):  # list_orchestrators
                print(worker.name, worker.status, "owns", worker.runs)
            print("owner of long-1:", (await second.info("long-1")).worker)  # get_lease
        # Here orch-1 has stopped, as at SIGTERM, and has called what the page names release_all.
        print(await second.get("long-1").result())
        print([event.words for event in await second.history("long-1") if event.type == "RunClaimed"])


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# orch-1 live owns 1
# orch-2 live owns 0
# owner of long-1: orch-1
# ['prepared in life 1', 'finished in life 2']
# ['worker orch-2 took the run']
