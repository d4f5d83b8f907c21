"""What a retry of many runs costs: `python -m bench.bulk` prints a line for each store.

The runs have failed at their second step. A program without their code asks, and a worker in this process does it: so
the time is that of `outlive runs retry --yes`, from the request to its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from pathlib import Path

import outlive
from bench.database import fresh, postgres
from outlive._define.registry import Registry

RUNS = 500
STARTS_AT_ONCE = 500


class World:
    """What the second step finds."""

    is_repaired = False


world = World()


@outlive.step
async def bench_bulk_first(number: int) -> int:
    """Works."""
    return number


@outlive.step
async def bench_bulk_second(number: int) -> int:
    """Works when it is repaired."""
    if not world.is_repaired:
        raise ValueError("not yet")
    return number


@outlive.workflow
async def bench_bulk(number: int) -> int:
    """Two steps."""
    return await bench_bulk_second(await bench_bulk_first(number))


async def measure(url: str, count: int) -> tuple[float, int]:
    """How many seconds the retry of so many runs takes, and how many runs the engine makes for it."""
    world.is_repaired = False
    async with outlive.Engine(url) as engine, outlive.Engine(url, worker=False, registry=Registry()) as client:
        for begin in range(0, count, STARTS_AT_ONCE):
            numbers = range(begin, min(count, begin + STARTS_AT_ONCE))
            runs = await asyncio.gather(*(engine.start(bench_bulk, number) for number in numbers))
            await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
        world.is_repaired = True
        began = time.perf_counter()
        found = await (await client.bulk.start("retry", workflow="bench_bulk")).result()
        took = time.perf_counter() - began
        assert (found.done, found.refused) == (count, 0), found
        return took, int(await engine.count(internal=True)) - int(await engine.count())


def main() -> None:
    """Measure, and print a line for each store."""
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    wanted = parser.parse_args()
    logging.getLogger("outlive").setLevel(logging.CRITICAL)  # Each failure would be logged.
    stores = wanted.stores.split(",")
    with postgres(wanted.postgres_url, is_needed="postgresql" in stores) as server:
        for store in stores:
            with fresh(store, directory=wanted.dir, postgres_url=server) as url:
                took, internal = asyncio.run(measure(url, wanted.runs))
            print(
                f"{store}: {wanted.runs:,} runs are retried in {took:.2f} s ({wanted.runs / took * 60:,.0f} a minute), "
                f"with {internal} runs of the engine's own",
                flush=True,
            )


if __name__ == "__main__":
    main()
