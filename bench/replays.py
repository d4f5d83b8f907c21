"""What the replay of a long run costs, and what it costs the other runs of its worker.

`python -m bench.replays` prints three tables for each store (`--stores sqlite,postgresql`):

* the CPU seconds of this process from the signal that wakes a run to its end, for runs of 200 to 10,000 turns with
  results of 5 kB each: a conversation. Two columns of one length show how far the figure varies;
* the rate of short runs before and while runs of 10,000 turns are replayed one after the other, and the longest turn of
  the event loop in both;
* a run that gave one list of 200,000 rows to each of 60 steps, in another worker: until it goes on, and the longest
  turn.

The journals are written by the store's own verbs and not by a worker: a worker would encode the whole conversation for
each turn, 250 GB in 10,000 turns. The longest turn is what a timer of one millisecond was late at most, so the rest of
the machine is in it; the CPU beside it is that of the loop's thread alone.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

import outlive
from bench.database import fresh, postgres
from outlive._journal.codec import salt_of, seal
from outlive._journal.event import AnyEvent, RunCreated, StepSucceeded
from outlive._journal.fold import Fold
from outlive._journal.packing import Packer
from outlive._model import Limits
from outlive._model.payload import Blob
from outlive._runtime.clock import SystemClock
from outlive._store.contract import Change
from outlive.engine.url import store_for
from outlive.testing import TestEngine

TURNS = (200, 1_000, 2_000, 5_000, 10_000)
TURN_BYTES = 5_000
LONG_TURNS = 10_000
LONG_RUNS = 5
LANES = 20
QUIET_SECONDS = 5.0
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
        return list(await run.history())


def _given(created: AnyEvent, *args: int) -> RunCreated:
    assert isinstance(created, RunCreated)
    return replace(created, input=replace(created.input, v=Raw(msgspec.json.encode(args))))


def _calls(event: AnyEvent, count: int) -> list[AnyEvent]:
    """The same outcome for many calls of a step."""
    assert isinstance(event, StepSucceeded)
    return [event, *[replace(event, call=f"{event.call}#{number}") for number in range(2, count + 1)]]


async def write(url: str, prefix: str, runs: int, events: list[AnyEvent], *blobs: Blob) -> None:
    """Runs with this journal."""
    store = store_for(url, clock=SystemClock().now)
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
    """The longest turn of the event loop, on the clock and in CPU of its thread."""

    longest = longest_cpu = 0.0

    def __str__(self) -> str:
        return f"longest turn {self.longest * 1000:.0f} ms ({self.longest_cpu * 1000:.0f} ms of CPU)"

    async def watch(self) -> None:
        """Look at the clock a thousand times a second."""
        while True:
            before, cpu_before = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self.longest = max(self.longest, time.perf_counter() - before - TICK_SECONDS)
            self.longest_cpu = max(self.longest_cpu, time.thread_time() - cpu_before)

    @contextmanager
    def watched(self) -> Iterator[Loop]:
        """Watch while the block runs."""
        self.longest, self.longest_cpu, task = 0.0, 0.0, asyncio.ensure_future(self.watch())
        try:
            yield self
        finally:
            task.cancel()


async def lengths(url: str) -> None:
    """CPU and time for conversations of several lengths."""
    print(f"{'turns':>8} {'CPU s':>8} {'CPU s':>8} {'s':>8}")
    for turns in TURNS:
        await write(url, f"talk{turns}", 2, await record_talk(turns))
    async with outlive.Engine(url, poll_seconds=60, name="bench") as engine:
        for turns in TURNS:
            cpu = []
            with Loop().watched() as loop:
                for number in range(2):
                    run = engine.get(f"talk{turns}-{number}")
                    cpu_at, at = time.process_time(), time.perf_counter()
                    await run.signal("go", "on")
                    assert await run.result(timeout=SECONDS_MAX) == turns
                    cpu.append(time.process_time() - cpu_at)
                    seconds = time.perf_counter() - at
            print(f"{turns:>8,} {cpu[0]:>8.3f} {cpu[1]:>8.3f} {seconds:>8.3f}  {loop}", flush=True)


async def neighbours(url: str) -> None:
    """The rate of short runs, before and during replays of long ones."""
    await write(url, "long", LONG_RUNS, await record_talk(LONG_TURNS))
    async with outlive.Engine(url, poll_seconds=60, name="bench") as engine:
        done, is_over = 0, False

        async def lane() -> None:
            nonlocal done
            while not is_over:
                await (await engine.start(bench_short)).result()
                done += 1

        lanes = [asyncio.ensure_future(lane()) for _ in range(LANES)]
        await asyncio.sleep(1)
        for _ in range(2):
            with Loop().watched() as loop:
                before, at = done, time.perf_counter()
                await asyncio.sleep(QUIET_SECONDS)
                quiet = (done - before) / (time.perf_counter() - at)
            print(f"no replay: {quiet:,.0f} runs/s, {loop}", flush=True)
        with Loop().watched() as loop:
            before, at = done, time.perf_counter()
            for number in range(LONG_RUNS):
                run = engine.get(f"long-{number}")
                await run.signal("go", "on")
                assert await run.result(timeout=SECONDS_MAX) == LONG_TURNS
            seconds = time.perf_counter() - at
            rate = (done - before) / seconds
        each = f"{LONG_RUNS} replays of {LONG_TURNS:,} turns, {seconds / LONG_RUNS:.2f} s each"
        print(f"{each}: {rate:,.0f} runs/s ({rate / quiet:.0%}), {loop}", flush=True)
        is_over = True
        await asyncio.gather(*lanes)


async def large(url: str) -> None:
    """One list for many steps, in a worker that has just begun."""
    events, blob = await record_rows()
    await write(url, "rows", 1, events, blob)
    print(f"{ROWS:,} rows of {len(blob.data) / 1e6:.0f} MB", flush=True)
    async with outlive.Engine(url, poll_seconds=60, name="bench") as engine:
        with Loop().watched() as loop:
            cpu_at, at = time.process_time(), time.perf_counter()
            run = engine.get("rows-0")
            await run.signal("go", "on")
            assert await run.result(timeout=SECONDS_MAX) == STEPS * ROWS
            cpu, seconds = time.process_time() - cpu_at, time.perf_counter() - at
        print(f"{seconds:.2f} s, {cpu:.2f} s of CPU, {loop}", flush=True)


MEASUREMENTS = {"lengths": lengths, "neighbours": neighbours, "large": large}


async def main(stores: list[str], only: list[str], postgres_url: str | None) -> None:
    """Measure all of it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres(postgres_url, is_needed="postgresql" in stores) as server,
    ):
        for store in stores:
            for name in only:
                print(f"\n{store}, {name}", flush=True)
                with fresh(store, directory=Path(folder), postgres_url=server) as url:
                    await MEASUREMENTS[name](url)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--only", default=",".join(MEASUREMENTS))
    parser.add_argument("--postgres-url")
    given = parser.parse_args()
    asyncio.run(main(given.stores.split(","), given.only.split(","), given.postgres_url))
