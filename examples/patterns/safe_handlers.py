"""Asks that take time, served one after the other, in a run that lives for years.

The manager of a cluster hands out nodes. Each ask calls a step, so a lock keeps two of them from choosing one node.
Now and then the manager goes on as a new generation, when every ask that it has accepted is answered.
"""

import asyncio
from dataclasses import dataclass, field

import outlive

ASKS_PER_GENERATION = 2


@dataclass
class Cluster:
    free: list[str] = field(default_factory=lambda: ["node-1", "node-2", "node-3"])
    jobs: dict[str, str] = field(default_factory=dict)


@outlive.step(name="patterns.assign_node")
async def assign_node(node: str, job: str) -> str:
    await asyncio.sleep(0.001)  # A call to the cluster.
    return f"{job} runs on {node}"


@outlive.workflow(name="patterns.cluster")
async def manage_cluster(cluster: Cluster) -> dict[str, str]:
    lock, served = asyncio.Lock(), 0
    is_due, stop = asyncio.Event(), asyncio.create_task(outlive.wait_for_signal("shut down"))

    async def assign(ask: outlive.types.Ask[str]) -> None:
        async with lock:
            if ask.body in cluster.jobs:  # Asked twice under two keys: the node is given once.
                ask.reply(f"{ask.body} runs on {cluster.jobs[ask.body]}")
            elif not cluster.free:
                ask.fail(RuntimeError("no node is free"))
            else:
                node = cluster.jobs[ask.body] = cluster.free.pop(0)
                ask.reply(await assign_node(node, ask.body))

    async def serve() -> None:
        nonlocal served
        async with asyncio.TaskGroup() as group:
            async for ask in outlive.asks("assign", str):
                group.create_task(assign(ask))
                served += 1
                if served == ASKS_PER_GENERATION:
                    is_due.set()

    server, enough = asyncio.create_task(serve()), asyncio.create_task(is_due.wait())
    await asyncio.wait([stop, enough], return_when=asyncio.FIRST_COMPLETED)
    await outlive.wait_condition(lambda: not outlive.current_run().asks_open)
    server.cancel()
    if not stop.done():
        outlive.continue_as_new(cluster)
    return cluster.jobs


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(manage_cluster, Cluster(), id="cluster")
        print(*await asyncio.gather(*(run.ask("assign", job) for job in ("a", "b", "c"))), sep="\n")
        await run.signal("shut down")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# a runs on node-1
# b runs on node-2
# c runs on node-3
# {'a': 'node-1', 'b': 'node-2', 'c': 'node-3'}
