"""Stepflow: the three deployment patterns of the page, one flow on each.

A single node without durability, a single node with a file, and several orchestrators on one database with their
leases in etcd. The page says of the third one that it will come. The store is an address: no code changes from one
pattern to the next. In a file, these are the settings `store`, `worker.lease` and `recovery.*` of `outlive.toml`.
"""

import asyncio
import os

import outlive


@outlive.step
async def greet(name: str) -> str:
    return f"hello {name}"


@outlive.workflow
async def greeting(name: str) -> str:
    return await greet(name)


async def single_node() -> None:
    """Development and tests: fast, and gone with its process."""
    async with outlive.Engine("memory:") as engine:
        print("memory:", await (await engine.start(greeting, "tests")).result())


async def single_node_with_persistence() -> None:
    """A file with its schema made and kept up to date by itself (`autoMigrate`); a run outlives the engine."""
    url = "sqlite:state.db"
    async with outlive.Engine(url, worker=outlive.types.WorkerOptions(lease="none")) as engine:  # leaseManager: none
        await (await engine.start(greeting, "one node", id="greeting-1")).result()
    async with outlive.Engine(url, worker=False) as engine:
        print("sqlite:", await engine.get("greeting-1").result())


async def many_orchestrators(url: str, lease: str) -> None:
    """Orchestrators share the work, one owns each run, and the others take over what it loses."""
    worker = outlive.types.WorkerOptions
    async with (
        outlive.Engine(url, worker=worker(name="orch-1", lease=lease)) as first,
        outlive.Engine(url, worker=worker(name="orch-2", lease=lease)) as second,
    ):
        runs = [await engine.start(greeting, f"node {number}") for number, engine in enumerate([first, second], 1)]
        print("many:", [await run.result() for run in runs])
        print("many:", sorted((it.name, it.status) for it in await first.workers.list()))


async def main() -> None:
    await single_node()
    await single_node_with_persistence()
    # postgresql://db/flows and etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379/flows in production
    await many_orchestrators(os.environ.get("STORE", "sqlite:shared.db"), os.environ.get("LEASE", "store"))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# memory: hello tests
# sqlite: hello one node
# many: ['hello node 1', 'hello node 2']
# many: [('orch-1', 'live'), ('orch-2', 'live')]
