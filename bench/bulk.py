"""What a retry of many runs costs: `python -m bench.bulk`, or `make bench ARGS="--only bulk"`.

The runs have failed at their second step. A program without their code asks, and a worker in this process does it: so
the time is that of `outlive runs retry --yes`, from the request to its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import outlive
from bench.database import fresh, postgres
from bench.figures import shown
from outlive._kernel.define.registry import Registry

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
    async with outlive.Engine(url) as engine, outlive.Engine(url, worker=False, _registry=Registry()) as client:
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


def measure_all(stores: Sequence[str], *, directory: Path, postgres_url: str | None, runs: int = RUNS) -> None:
    """All of them, for `python -m bench`."""
    logging.getLogger("outlive").setLevel(logging.CRITICAL)  # Each failure would be logged.
    print("a retry of many runs", flush=True)
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            took, internal = asyncio.run(measure(url, runs))
        shown(f"{store}: {runs:,} runs are retried", runs / took * 60, "/min", "> 2,000 /min")
        shown(f"{store}: runs of the engine's own for that", internal, "", "none")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    wanted = parser.parse_args()
    stores = wanted.stores.split(",")
    with postgres(wanted.postgres_url, is_needed="postgresql" in stores) as server:
        measure_all(stores, directory=wanted.dir, postgres_url=server, runs=wanted.runs)


if __name__ == "__main__":
    main()
