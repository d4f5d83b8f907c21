"""How long a run that moves waits behind a burst of starts in its engine.

`python -m bench.bursts`, or `make bench ARGS="--only bursts"`: a run makes one short step after the other, while the
same engine is asked for many starts at once, and then runs a workflow that gathers many children. The figure is the
longest time between two ends of steps. What is started begins a day later: it is the starts that are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path

import outlive
from bench.database import fresh, postgres
from bench.figures import shown

STARTS = 100_000
CHILDREN = 50_000
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


@outlive.workflow
async def bench_gathering(count: int) -> int:
    """Has many children at once."""
    return sum(await asyncio.gather(*(bench_burst(number) for number in range(count))))


async def measure(url: str, store: str, starts: int, children: int) -> None:
    """Print the figures of one store."""

    async def start_all() -> None:
        await asyncio.gather(*(engine.start(bench_burst, number, delay=86_400) for number in range(starts)))

    async def gather_all() -> None:
        assert await (await engine.start(bench_gathering, children)).result() == sum(range(children))

    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {starts:,} starts at once", start_all, starts)
    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {children:,} children in one gather", gather_all, children)


async def _measure(engine: outlive.Engine, name: str, burst: Callable[[], Awaitable[None]], count: int) -> None:
    """Print how long a run waits while something happens."""
    ended.clear()
    run = await engine.start(bench_ticking)
    await asyncio.sleep(1)
    began = time.perf_counter()
    await burst()
    took = time.perf_counter() - began
    await asyncio.sleep(0.5)
    await engine.cancel(run.id)
    gaps = [after - before for before, after in pairwise(ended) if after > began]
    shown(name, count / took, "/s", "none")
    shown("  the longest pause of a run meanwhile", max(gaps), "s", "< 1 s")
    shown("  steps of that run meanwhile", len(gaps), "", "none")


def measure_all(
    stores: Sequence[str],
    *,
    directory: Path,
    postgres_url: str | None,
    starts: int = STARTS,
    children: int = CHILDREN,
) -> None:
    """All of them, for `python -m bench`."""
    print("bursts", flush=True)
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            asyncio.run(measure(url, store, starts, children))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.bursts", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--children", type=int, default=CHILDREN)
    parser.add_argument("--postgres-url", help="a private server unless given")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    stores = given.stores.split(",")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        measure_all(stores, directory=given.dir, postgres_url=url, starts=given.starts, children=given.children)


if __name__ == "__main__":
    main()
