"""TanStack: the store in PostgreSQL, migrated at deploy time.

The page makes a store of a pool, applies a numbered SQL file with psql, and may rename the tables. Here the
address says where the tables are: all of them lie in one schema, whose name you choose. `outlive migrate` brings
it up to date; an engine does the same when it opens a store, and a worker whose user may not create tables says
what is missing. The migrations are numbered, recorded in the schema, and safe when several processes apply them at
once.
"""

import asyncio
import os
import subprocess
import sys

import outlive

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://localhost/app")


@outlive.step
async def double(number: int) -> int:
    return 2 * number


@outlive.workflow
async def doubling(number: int) -> int:
    return await double(number)


def store(schema: str) -> str:
    """`tables: {runs: "app_workflow_runs"}` on the page: two of them never meet."""
    return f"{DATABASE_URL}{'&' if '?' in DATABASE_URL else '?'}schema={schema}"


async def migrate(url: str) -> str:
    """What a deployment does first: `outlive migrate --store URL`."""
    command = [sys.executable, "-m", "outlive.cli", "migrate", "--store", url]
    done = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[0].partition(",")[0]


async def main() -> None:
    shop, other = store("app_workflow"), store("app_other")
    print(await migrate(shop))
    async with outlive.Engine(shop) as engine, outlive.Engine(other) as apart:
        print(await (await engine.start(doubling, 21, id="doubling-1")).result())
        print(await engine.count(), "run here,", await apart.count(), "there")
    async with outlive.Engine(shop, worker=False) as later:  # another process: the run is in the database
        print(await later.get("doubling-1").result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# the schema was 0
# 42
# 1 run here, 0 there
# 42
