"""Asynkron: a self-contained database, in memory or in a file.

The page's `SqliteStateStore` with `Data Source=:memory:`, and the same runtime on a file. Its advice for a file is
built in here: write-ahead logging, a store that several worker processes share with leases, and a copy that is
made while they go on. An orchestrator is a workflow, an activity a step; a sub-orchestrator is a workflow that is
called.
"""

import asyncio
import subprocess
import sys

import outlive


@outlive.step
async def hello(city: str) -> str:
    return f"hello {city}"


@outlive.workflow
async def pair(first: str, second: str) -> list[str]:
    return await asyncio.gather(hello(first), hello(second))  # fan out, fan in


@outlive.workflow
async def cities() -> list[str]:
    return [await hello("Tokyo"), *await pair("Seattle", "London"), await hello("Tokyo")]  # the same call twice is two


async def main() -> None:
    async with outlive.Engine("memory:") as runtime:
        print(await (await runtime.start(cities)).result())

    url = "sqlite:functions.db"
    async with outlive.Engine(url) as host, outlive.Engine(url) as other:  # or two processes
        runs = [await host.start(cities, id="cities-1"), await other.start(cities, id="cities-2")]
        print([len(await run.result()) for run in runs], "greetings on", len(await host.workers.list()), "workers")
        command = [sys.executable, "-m", "outlive.cli", "backup", "copy.db", "--store", url]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    async with outlive.Engine("sqlite:copy.db", worker=False) as copy:
        print(await copy.count(status="succeeded", roots_only=True), "runs in a checked copy")


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# ['hello Tokyo', 'hello Seattle', 'hello London', 'hello Tokyo']
# [4, 4] greetings on 2 workers
# 2 runs in a checked copy
