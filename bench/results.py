"""When a process learns how a run ended that another process runs.

`python -m bench.results`, or `make bench ARGS="--only results"`: on each store a worker runs workflows of one line, and
this process starts them one after the other and waits for each result. The time from the start to the result is
taken three times: in the worker's own process, by an engine without a worker, and over HTTP (`outlive serve`, which has
no worker either). The first is what a run takes; how much the others have above it is the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import outlive
from bench.database import fresh, postgres
from bench.figures import shown
from bench.http import percentile, serving

RUNS = 200
STORES = ("sqlite", "postgresql")
SETTLE_SECONDS = 1.0


@outlive.workflow
async def bench_result(number: int) -> int:
    """Ends at once."""
    return number


@contextmanager
def working(url: str) -> Iterator[None]:
    """A worker process on a store."""
    command = [sys.executable, "-m", "outlive.cli", "worker", "bench.results", "--store", url, "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.terminate()


async def measure(url: str, store: str, runs: int) -> None:
    """Print the three lines of one store."""
    async with outlive.Engine(url) as engine:
        own = await _times(lambda number: engine.start(bench_result, number), runs)
    shown(f"{store}: start to result, worker's own process, p50", percentile(own, 0.5), "ms", "none")
    with working(url):
        async with outlive.Engine(url, worker=False) as engine:
            there = await _times(lambda number: engine.start(bench_result, number), runs)
        _print(f"{store}: from another process", there, own)
        with serving(url) as (port, _):
            async with outlive.connect(f"http://127.0.0.1:{port}") as remote:
                over = await _times(lambda number: remote.start(bench_result, number), runs)
        _print(f"{store}: over HTTP", over, own)


def _print(name: str, times: list[float], own: list[float]) -> None:
    above = percentile(times, 0.5) - percentile(own, 0.5)
    shown(f"{name}, above that, p50", above, "ms", "< 10 ms")
    shown(f"{name}, p99", percentile(times, 0.99), "ms", "none")


async def _times(start: Callable[[int], Awaitable[Any]], runs: int) -> list[float]:
    await asyncio.sleep(SETTLE_SECONDS)  # The workers and listeners have begun.
    times = []
    for number in range(runs):
        began = time.perf_counter()
        assert await (await start(number)).result(timeout=60) == number
        times.append(time.perf_counter() - began)
    return times


def measure_all(stores: Sequence[str], *, directory: Path, postgres_url: str | None, runs: int = RUNS) -> None:
    """All of them, for `python -m bench`."""
    print("the result of a run of another process", flush=True)
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            asyncio.run(measure(url, store, runs))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.results", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--postgres-url", help="a private server unless given")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    stores = given.stores.split(",")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        measure_all(stores, directory=given.dir, postgres_url=url, runs=given.runs)


if __name__ == "__main__":
    main()
