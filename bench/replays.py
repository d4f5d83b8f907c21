"""What the replay of a long run costs, and what it costs the other runs of its worker.

`python -m bench.replays`, or `make bench ARGS="--only replays"`, for each store:

* the CPU of this process from the signal that wakes a run to its end, for conversations of 200 to 10,000 turns with
  results of 5 kB each, and how much more a turn costs in the longest than in one of 2,000;
* the rate of short runs while runs of 10,000 turns are replayed, beside their rate in the seconds between these
  replays, by the clock and for each second of CPU (the clock has the rest of the machine in it), and the longest turn
  of the event loop in both;
* a run that gave one list of 200,000 rows to each of 60 steps, in another worker: until it goes on.

The journals are written by the store's own verbs and not by a worker: a worker would encode the whole conversation for
each turn, 250 GB in 10,000 turns. The longest turn is in CPU of the loop's thread: on the clock the rest of the machine
would be in it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

import outlive
from bench.database import fresh, postgres
from bench.figures import shown
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import AnyEvent, RunCreated, StepSucceeded
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import Limits
from outlive._kernel.model.payload import Blob
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Change, Store
from outlive.engine.url import store_for
from outlive.engine.view import view_of
from outlive.testing import TestEngine
from outlive.types import WorkerOptions

TURNS = (200, 1_000, 2_000, 5_000, 10_000)
TURN_BYTES = 5_000
LONG_TURNS = 10_000
LONG_RUNS = 5
LANES = 20
QUIET_SECONDS = 2.0
STEPS, ROWS = 60, 200_000
SECONDS_MAX = 300.0
TICK_SECONDS = 0.001


@outlive.step
async def bench_turn(history: list[str]) -> str:
    """The next message of a conversation."""
    return f"{len(history)}".ljust(TURN_BYTES, ".")


@outlive.workflow
async def bench_talk(turns: int) -> int:
    """A conversation: each turn is given all messages so far."""
    history: list[str] = []
    for _ in range(turns):
        history.append(await bench_turn(history))
    await outlive.wait_for_signal("go", str)
    return len(history)


def rows_of(rows: int) -> list[dict[str, int | str]]:
    """A large value."""
    return [{"id": row, "name": f"customer {row}", "city": "Stockholm", "cents": row * 7} for row in range(rows)]


@outlive.step
async def bench_load(rows: int) -> list[dict[str, int | str]]:
    """A large result."""
    return rows_of(rows)


@outlive.step
async def bench_count(rows: list[dict[str, int | str]]) -> int:
    """Is given all rows."""
    return len(rows)


@outlive.workflow
async def bench_rows(steps: int, rows: int) -> int:
    """One large result, given to many steps."""
    loaded = await bench_load(rows)
    total = 0
    for _ in range(steps):
        total += await bench_count(loaded)
    await outlive.wait_for_signal("go", str)
    return total


@outlive.step
async def bench_one() -> int:
    """The step of a short run."""
    return 1


@outlive.workflow
async def bench_short() -> int:
    """A run among many others."""
    return await bench_one()


async def record_talk(turns: int) -> list[AnyEvent]:
    """The journal of a conversation of this length, which waits for its signal."""
    created, said, rest = await record(bench_talk, 1)
    return [_given(created, turns), *_calls(said, turns), rest]


async def record_rows() -> tuple[list[AnyEvent], Blob]:
    """The journal of a run that has given its rows to all steps, and the blob with the rows."""
    created, loaded, counted, rest = await record(bench_rows, 1, 1)
    assert isinstance(loaded, StepSucceeded)
    assert isinstance(counted, StepSucceeded)
    payload, blob = Packer(Limits()).pack(msgspec.json.encode(rows_of(ROWS)), "rows")
    assert blob is not None
    counted = replace(counted, result=replace(counted.result, v=Raw(b"%d" % ROWS)))
    return [_given(created, STEPS, ROWS), replace(loaded, result=payload), *_calls(counted, STEPS), rest], blob


async def record(workflow: Any, *args: int) -> list[AnyEvent]:
    """The journal of a short run, which waits for its signal."""
    async with TestEngine() as engine:
        run = await engine.start(workflow, *args)
        await engine.settle()
        return await view_of(engine).journal(run.id)


def _given(created: AnyEvent, *args: int) -> RunCreated:
    assert isinstance(created, RunCreated)
    return replace(created, input=replace(created.input, v=Raw(msgspec.json.encode(args))))


def _calls(event: AnyEvent, count: int) -> list[AnyEvent]:
    """The same outcome for many calls of a step."""
    assert isinstance(event, StepSucceeded)
    return [event, *[replace(event, call=f"{event.call}#{number}") for number in range(2, count + 1)]]


def _store(url: str) -> Store:
    return store_for(url, clock=SystemClock().now)


async def write(store: Store, prefix: str, runs: int, events: list[AnyEvent], *blobs: Blob) -> None:
    """Runs with this journal, in a store that is not open."""
    await store.open()
    for number in range(runs):
        fold, nonce = Fold(f"{prefix}-{number}"), abs(hash((prefix, number)))
        created = events[0]
        assert isinstance(created, RunCreated)
        own = [replace(created, nonce=nonce, at=store.now()), *events[1:]]
        for event in own:
            fold.apply(event)
        rows = [seal(event, salt=salt_of(nonce), seq=seq) for seq, event in enumerate(own)]
        await store.commit([Change(journal=0, after=-1, rows=rows, runs=[fold.root], blobs=list(blobs))])
    await store.close()


class Loop:
    """The longest turn of the event loop, in CPU of its thread."""

    longest = 0.0

    async def watch(self) -> None:
        """Look at the clock a thousand times a second."""
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self.longest = max(self.longest, time.thread_time() - before)

    @contextmanager
    def watched(self) -> Iterator[Loop]:
        """Watch while the block runs."""
        task = asyncio.ensure_future(self.watch())
        try:
            yield self
        finally:
            task.cancel()

    def shown(self, name: str, target: str) -> None:
        """One line."""
        shown(f"{name}: longest turn of the loop", self.longest * 1000, "ms", target)


async def lengths(url: str, store: str) -> None:
    """CPU for conversations of several lengths, the lower of two."""
    for turns in TURNS:
        await write(_store(url), f"talk{turns}", 2, await record_talk(turns))
    cost: dict[int, float] = {}
    async with outlive.Engine(url, poll_seconds=60, worker=WorkerOptions(name="bench")) as engine:
        for turns in TURNS:
            cpu = []
            for number in range(2):
                run = engine.get(f"talk{turns}-{number}")
                cpu_at = time.process_time()
                await run.signal("go", "on")
                assert await run.result(timeout=SECONDS_MAX) == turns
                cpu.append(time.process_time() - cpu_at)
            cost[turns] = min(cpu)
            target = "< 0.3 s" if turns == 2_000 else "none"
            shown(f"{store}: CPU of a replay of {turns:,} turns of 5 kB", cost[turns], "s", target)
    more = cost[10_000] / 10_000 / (cost[2_000] / 2_000)
    shown(f"{store}: a turn among 10,000, beside one among 2,000", more, "x", "< 1.5 x")


async def neighbours(url: str, store: str) -> None:
    """The rate of short runs, around and during replays of long ones."""
    await write(_store(url), "long", LONG_RUNS, await record_talk(LONG_TURNS))
    async with outlive.Engine(url, poll_seconds=60, worker=WorkerOptions(name="bench")) as engine:
        done, is_over = 0, False

        async def lane() -> None:
            nonlocal done
            while not is_over:
                await (await engine.start(bench_short)).result()
                done += 1

        async def replay(number: int) -> None:
            run = engine.get(f"long-{number}")
            await run.signal("go", "on")
            assert await run.result(timeout=SECONDS_MAX) == LONG_TURNS

        lanes = [asyncio.ensure_future(lane()) for _ in range(LANES)]
        await asyncio.sleep(1)
        spent = {"quiet": 0.0, "replay": 0.0}
        cpu = {"quiet": 0.0, "replay": 0.0}
        runs = {"quiet": 0, "replay": 0}
        loops = {"quiet": Loop(), "replay": Loop()}
        # In turns, because a machine is rarely alone.
        for number in range(LONG_RUNS):
            for kind, work in (("quiet", asyncio.sleep(QUIET_SECONDS)), ("replay", replay(number))):
                with loops[kind].watched():
                    before, at, cpu_at = done, time.perf_counter(), time.process_time()
                    await work
                    spent[kind] += time.perf_counter() - at
                    cpu[kind] += time.process_time() - cpu_at
                    runs[kind] += done - before
        rates = {kind: runs[kind] / spent[kind] for kind in runs}
        shown(f"{store}: short runs, no replay", rates["quiet"], "/s", "none")
        name = f"{store}: while {LONG_TURNS:,} turns are replayed"
        shown(f"{name}, of that rate", 100 * rates["replay"] / rates["quiet"], "%", "> 80 %")
        each = {kind: runs[kind] / cpu[kind] for kind in runs}
        shown(f"{name}, of that for each second of CPU", 100 * each["replay"] / each["quiet"], "%", "> 80 %")
        shown(f"{name}, a replay takes", spent["replay"] / LONG_RUNS, "s", "none")
        loops["quiet"].shown(f"{store}: no replay", "none")
        loops["replay"].shown(name, "< 50 ms")
        is_over = True
        await asyncio.gather(*lanes)


async def large(url: str, store: str) -> None:
    """One list for many steps, in a worker that has just begun."""
    events, blob = await record_rows()
    await write(_store(url), "rows", 1, events, blob)
    async with outlive.Engine(url, poll_seconds=60, worker=WorkerOptions(name="bench")) as engine:
        loop = Loop()
        with loop.watched():
            cpu_at, at = time.process_time(), time.perf_counter()
            run = engine.get("rows-0")
            await run.signal("go", "on")
            assert await run.result(timeout=SECONDS_MAX) == STEPS * ROWS
            cpu, seconds = time.process_time() - cpu_at, time.perf_counter() - at
        name = f"{store}: {STEPS} x {ROWS:,} rows"
        shown(f"{name}, until it goes on", seconds, "s", "none")
        shown(f"{name}, CPU", cpu, "s", "none")
        # One value of 14 MB is decoded in one go.
        loop.shown(name, "none")


MEASUREMENTS = {"lengths": lengths, "neighbours": neighbours, "large": large}


def measure_all(
    stores: Sequence[str], *, directory: Path, postgres_url: str | None, only: Sequence[str] = tuple(MEASUREMENTS)
) -> None:
    """All of them, for `python -m bench`."""
    print("the replay of a long run", flush=True)
    for store in stores:
        for name in only:
            with fresh(store, directory=directory, postgres_url=postgres_url) as url:
                asyncio.run(MEASUREMENTS[name](url, store))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.replays", description=__doc__)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--only", default=",".join(MEASUREMENTS), help="which of them, by comma")
    parser.add_argument("--postgres-url", help="a private server unless given")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    stores = given.stores.split(",")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        measure_all(stores, directory=given.dir, postgres_url=url, only=given.only.split(","))


if __name__ == "__main__":
    main()
