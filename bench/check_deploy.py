"""How long `outlive check-deploy` takes for many open runs.

`python -m bench.check_deploy` fills a SQLite file with open runs (10,000 of 100 events), replays them with the code
that wrote them and with code that contradicts them, and prints a line for each. `--store` names another, empty store.
`--profile` replays in this process instead and prints where the time goes.

The runs are copies of one that a worker has brought to its signal: the same events, sealed for a tree of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

import outlive
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import AnyEvent, RunCreated
from outlive._kernel.journal.fold import Fold
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Change, Store
from outlive.engine.url import store_for
from outlive.engine.view import view_of
from outlive.testing import TestEngine
from outlive.testing.deploy import DeployCheck, engine_in

RUNS, EVENTS = 10_000, 100
AT_ONCE = 200
SHIFTED = "BENCH_SHIFTED"
"""In the environment: whether this is the code that contradicts the journals."""


@outlive.step
async def bench_deploy_step(number: int) -> dict[str, int]:
    """Gives a small object."""
    return {"number": number, "square": number * number}


@outlive.step
async def bench_deploy_other() -> None:
    """Is not in the journals."""


@outlive.workflow
async def bench_deploy(steps: int) -> str:
    """Many steps, then a signal."""
    if os.environ.get(SHIFTED):  # outlive: ignore
        await bench_deploy_other()
    for step in range(steps):
        await bench_deploy_step(step)
    return await outlive.wait_for_signal("go", str)


async def record(events: int) -> list[AnyEvent]:
    """The journal of one run that waits for its signal."""
    async with TestEngine() as engine:
        # Its creation and its suspension are events too.
        run = await engine.start(bench_deploy, events - 2)
        await engine.settle()
        return await view_of(engine).journal(run.id)


def copy_of(run_id: str, nonce: int, events: list[AnyEvent]) -> Change:
    """The creation of a tree with this journal."""
    created = events[0]
    assert isinstance(created, RunCreated)
    fold, salt = Fold(run_id), salt_of(nonce)
    own = [replace(created, nonce=nonce), *events[1:]]
    for event in own:
        fold.apply(event)
    rows = [seal(event, salt=salt, seq=seq) for seq, event in enumerate(own)]
    return Change(journal=0, after=-1, rows=rows, runs=[fold.root])


async def fill(store: Store, runs: int, events: list[AnyEvent]) -> None:
    """Copies of one run."""
    for begin in range(0, runs, AT_ONCE):
        numbers = range(begin, min(runs, begin + AT_ONCE))
        await store.commit([copy_of(f"run-{number}", number + 1, events) for number in numbers])


async def check(url: str, *, profile: bool) -> None:
    """Replay all of it, and print how long that took."""
    app = f"{__name__ if __name__ != '__main__' else 'bench.check_deploy'}"
    engine, started_at = engine_in(app, url), time.perf_counter()
    if profile:
        with cProfile.Profile() as profiler:
            report = await DeployCheck(url).with_code_of(engine)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    else:
        report = await DeployCheck(url).with_app(engine, app)
    seconds = time.perf_counter() - started_at
    rate = report.checked / seconds
    print(f"{report.checked:,} runs, {report.harmed:,} diverge: {seconds:.1f} s, {rate:,.0f} runs/s")


async def main(runs: int, events: int, url: str | None, *, profile: bool) -> None:
    """Fill, and replay twice."""
    with tempfile.TemporaryDirectory() as folder:
        place = url or f"sqlite:{Path(folder)}/runs.db"
        store = store_for(place, clock=SystemClock().now)
        await store.open()
        journal = await record(events)
        await fill(store, runs, journal)
        await store.close()
        print(f"{runs:,} open runs of {len(journal)} events in {place.partition(':')[0]}")
        await check(place, profile=profile)
        os.environ[SHIFTED] = "1"
        await check(place, profile=profile)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--store", help="An empty store.")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    asyncio.run(main(given.runs, given.events, given.store, profile=given.profile))
