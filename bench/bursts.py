"""How long a run that moves waits behind a burst of starts in its engine.

`python -m bench.bursts`, or `make bench ARGS="--only bursts"`: a run makes one short step after the other, while the
same engine is asked for many starts at once. The figure is the longest time between two ends of steps. What is started
begins a day later: it is the starts that are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import outlive
from bench.database import fresh, postgres
from bench.http import shown

STARTS = 100_000
STORES = ("sqlite", "postgresql")
ended: list[float] = []


@outlive.step
async def bench_tick() -> None:
    """Says when it has ended."""
    ended.append(time.perf_counter())


@outlive.workflow
async def bench_ticking() -> None:
    """Makes steps until it is cancelled."""
    for _ in range(50_000):
        await bench_tick()


@outlive.workflow
async def bench_burst(number: int) -> int:
    """Is started many times, and later than the burst lasts."""
    return number


async def measure(url: str, store: str, starts: int) -> None:
    """Print the figures of one store."""
    ended.clear()
    async with outlive.Engine(url) as engine:
        run = await engine.start(bench_ticking)
        await asyncio.sleep(1)
        began = time.perf_counter()
        await asyncio.gather(*(engine.start(bench_burst, number, delay=86_400) for number in range(starts)))
        took = time.perf_counter() - began
        await asyncio.sleep(0.5)
        await engine.cancel(run.id)
    gaps = [after - before for before, after in pairwise(ended) if after > began]
    shown(f"{store}: {starts:,} starts at once", starts / took, "/s", "none")
    shown(f"{store}: the longest pause of a run meanwhile", max(gaps), "s", "< 1 s")
    shown(f"{store}: steps of that run meanwhile", len(gaps), "", "none")


def measure_all(stores: Sequence[str], *, directory: Path, postgres_url: str | None, starts: int = STARTS) -> None:
    """All of them, for `python -m bench`."""
    print("a burst of starts", flush=True)
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            asyncio.run(measure(url, store, starts))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.bursts", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--postgres-url", help="a private server unless given")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    stores = given.stores.split(",")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        measure_all(stores, directory=given.dir, postgres_url=url, starts=given.starts)


if __name__ == "__main__":
    main()
