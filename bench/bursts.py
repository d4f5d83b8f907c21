"""How long a run that moves waits behind a burst in its engine.

`python -m bench.bursts`, or `make bench ARGS="--only bursts"`: a run makes one short step after the other, while the
same engine is asked for many starts at once, runs workflows that gather many children and many steps, and is sent many
signals, to one run and to many. The figure is the longest time between two ends of steps. What is started with a delay
begins a day later: then it is the starts that are measured, and else what they bring about too.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import outlive
from bench.database import fresh, postgres
from bench.figures import shown
from outlive.types import RunHandle

AT_ONCE = 1_000
"""Runs that are started at once to be sent signals later."""


class Sizes(NamedTuple):
    """How large each burst is."""

    starts: int = 100_000
    children: int = 50_000
    steps: int = 50_000
    signals_to_one: int = 9_900
    signals_to_many: int = 30_000


SIZES = Sizes()
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


@outlive.step
async def bench_quick(number: int) -> int:
    """Ends at once."""
    return number


@outlive.workflow
async def bench_stepping(count: int) -> int:
    """Has many steps at once."""
    return sum(await asyncio.gather(*(bench_quick(number) for number in range(count))))


@outlive.workflow
async def bench_taking(count: int) -> int:
    """Takes so many signals."""
    return sum([await outlive.wait_for_signal("number", int) for _ in range(count)])


async def measure(url: str, store: str, sizes: Sizes) -> None:
    """Print the figures of one store."""
    starts, children, steps, to_one, to_many = sizes

    async def start_later() -> None:
        await asyncio.gather(*(engine.start(bench_burst, number, delay=86_400) for number in range(starts)))

    async def start_now() -> None:
        runs = await asyncio.gather(*(engine.start(bench_burst, number) for number in range(starts)))
        assert await runs[-1].result() == starts - 1

    async def gather_children() -> None:
        assert await (await engine.start(bench_gathering, children)).result() == sum(range(children))

    async def gather_steps() -> None:
        assert await (await engine.start(bench_stepping, steps)).result() == sum(range(steps))

    async def signal_one() -> None:
        await asyncio.gather(*(taker.signal("number", number) for number in range(to_one)))
        assert await taker.result() == sum(range(to_one))

    async def signal_many() -> None:
        await asyncio.gather(*(taker.signal("number", number) for number, taker in enumerate(takers)))
        assert await takers[-1].result() == to_many - 1

    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {starts:,} starts at once, for later", start_later, starts)
    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {starts:,} starts at once, for now", start_now, starts)
    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {children:,} children in one gather", gather_children, children)
    async with outlive.Engine(url) as engine:
        await _measure(engine, f"{store}: {steps:,} steps in one gather", gather_steps, steps)
    async with outlive.Engine(url) as engine:
        taker = await engine.start(bench_taking, to_one)
        await _measure(engine, f"{store}: {to_one:,} signals to one run", signal_one, to_one)
    async with outlive.Engine(url) as engine:
        takers: list[RunHandle[int]] = []
        while len(takers) < to_many:
            some = range(min(AT_ONCE, to_many - len(takers)))
            takers += await asyncio.gather(*(engine.start(bench_taking, 1) for _ in some))
        await _measure(engine, f"{store}: {to_many:,} signals to as many runs", signal_many, to_many)


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
    sizes: Sizes = SIZES,
) -> None:
    """All of them, for `python -m bench`."""
    print("bursts", flush=True)
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            asyncio.run(measure(url, store, sizes))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.bursts", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES))
    for name, size in SIZES._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    parser.add_argument("--postgres-url", help="a private server unless given")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    stores = given.stores.split(",")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        sizes = Sizes(*(getattr(given, name) for name in Sizes._fields))
        measure_all(stores, directory=given.dir, postgres_url=url, sizes=sizes)


if __name__ == "__main__":
    main()
