"""How long it takes until the runs of 10,000 schedules have started that are due in the same second.

`python -m bench.schedules --workers 1,3` prints a line for each store and number of workers, each worker a process: the
seconds from the tick until the last run was in the store, and until the last run had ended, while the same workers run
them. The schedules are daily ones in a time zone, each with a name of its own, and every one of them must have started
exactly one run.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import outlive
from bench.database import fresh, postgres
from outlive._features.schedules.deciding import first_look
from outlive._features.schedules.in_code import target_of
from outlive._features.schedules.schedule import ScheduleState, StoredSchedule, schedule_data
from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.model.instant import microseconds_of
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive._kernel.store.schedules import ScheduleChange
from outlive.engine.url import store_for
from outlive.types import WorkerOptions

SCHEDULES = 10_000
ZONE = "Europe/Stockholm"
AHEAD_SECONDS = 5.0
"""How long before the tick the workers must be there."""
GIVE_UP_SECONDS = 120.0
AT_ONCE = 1_000


@outlive.workflow
async def scheduled(day: str) -> str:
    """What the schedules start."""
    return day


async def work(url: str) -> None:
    """A worker, until it is killed."""
    async with outlive.Engine(url, worker=WorkerOptions(lease_seconds=30)):
        print("ready", flush=True)
        await asyncio.get_running_loop().create_future()


async def put_schedules(store: Store, count: int, tick: datetime) -> None:
    """Write them in bulk."""
    local = tick.astimezone(ZoneInfo(ZONE))
    schedule = outlive.cron(f"{local.minute} {local.hour} * * *", tz=ZONE, args={"day": outlive.tick.date})
    target = target_of("bench", scheduled.spec, schedule)
    cursor = microseconds_of(tick - timedelta(hours=1))
    stored = StoredSchedule(schedule=schedule, target=target, state=ScheduleState(cursor=cursor))
    data, next_at = schedule_data(stored), first_look("bench", stored)
    names = [f"digest-{number}" for number in range(count)]
    for begin in range(0, count, AT_ONCE):
        await store.change_schedules(
            [
                ScheduleChange(name=name, revision=0, next_revision=1, next_at=next_at, data=data)
                for name in names[begin : begin + AT_ONCE]
            ]
        )


@contextmanager
def fleet(url: str, workers: int) -> Iterator[None]:
    """So many workers, each a process."""
    command = [sys.executable, "-m", "bench.schedules", "--work", url]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def measure(url: str, *, count: int) -> tuple[float, float]:
    """Seconds until all runs were started, and until all have ended."""
    store = store_for(url, clock=SystemClock().now)
    await store.open()
    tick = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    if tick - datetime.now(UTC) < timedelta(seconds=AHEAD_SECONDS):
        tick += timedelta(minutes=1)
    await put_schedules(store, count, tick)
    await asyncio.sleep((tick - datetime.now(UTC)).total_seconds())
    began = time.perf_counter()
    started = await wait_for(store, runs_that(), count, began)
    ended = await wait_for(store, runs_that("succeeded"), count, began)
    await asyncio.sleep(1)
    total = await store.count_runs(runs_that(), limit=count * 2)
    assert total == count, f"{count:,} schedules have started {total:,} runs"
    await store.close()
    return started, ended


def runs_that(*statuses: str) -> RunFilter:
    """Runs of the schedules."""
    return RunFilter(workflow="scheduled", statuses=tuple(RunStatus(status) for status in statuses))


async def wait_for(store: Store, wanted: RunFilter, count: int, began: float) -> float:
    """Seconds until so many runs are there."""
    while time.perf_counter() - began < GIVE_UP_SECONDS:
        if await store.count_runs(wanted, limit=count) >= count:
            return time.perf_counter() - began
        await asyncio.sleep(0.05)
    raise SystemExit(f"not all runs were there after {GIVE_UP_SECONDS:.0f} s")


def print_lines(
    stores: Sequence[str], fleets: Sequence[int], *, count: int, directory: Path, postgres_url: str | None
) -> None:
    """Measure, and print a line for each."""
    for store in stores:
        for workers in fleets:
            with fresh(store, directory=directory, postgres_url=postgres_url) as url, fleet(url, workers):
                started, ended = asyncio.run(measure(url, count=count))
            line = (
                f"{store}: {count:,} schedules, {workers} worker(s): started in {started:.2f} s, ended in {ended:.2f} s"
            )
            print(line, flush=True)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--workers", default="1,3", help="numbers of workers, by comma")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(given.work))
        return
    stores, fleets = given.stores.split(","), [int(workers) for workers in given.workers.split(",")]
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        print_lines(stores, fleets, count=given.schedules, directory=given.dir, postgres_url=url)


if __name__ == "__main__":
    main()
