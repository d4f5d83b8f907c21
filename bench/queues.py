"""What queues cost: claiming from long lines, starting into one, and running with one.

`python -m bench.queues` prints a line for each store and figure:

* the median of a claim of 10 runs with `per_key=1`, among few runs in line and among many with many keys;
* starts a second into a queue from one client without a worker, 1,000 at a time;
* runs a second of one step (W1) and of ten (W2), without a queue, with one, and with one that has a limit, in turns;
  and how much of the time of a CPU they take in this process, as that hardly depends on what else the machine does;
* the same for a batch of W1 with the lanes that it has by default: storing its rows, and running it. These alone:
  `make bench ARGS="--only batches"`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

import outlive
from bench.database import fresh, postgres
from bench.figures import shown
from bench.meter import STEPS_PER_RUN
from outlive._kernel.client.birth import birth
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import RunCreated, RunSucceeded
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Payload
from outlive._kernel.model.queue import QueueLimits, QueueRecord, queue_cell, queue_data
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Change, Claim, Store, WorkerInfo
from outlive.engine.url import store_for

QUEUE = "bench"
DEFINITION = "bench_line@1"
CLAIM = 10
CLAIMS = 60
AT_ONCE = 1_000
STARTS = 20_000
RUNS = 5_000
LONG_RUNS = 2_000
ROUNDS = 5
BATCH_ROWS = 20_000
BATCH_ROUNDS = 3
T = TypeVar("T")
NOTHING = Payload(v=msgspec.Raw(b"[]"))
line = outlive.Queue(QUEUE)
limited = outlive.Queue(f"{QUEUE}-limited", concurrency=1_000_000)


class Pace(NamedTuple):
    """How fast runs end."""

    rate: float
    """Runs in a second."""
    cpu: float
    """Seconds of a CPU that a run takes in this process; a server takes its own."""


class BatchCost(NamedTuple):
    """What a batch takes, in seconds."""

    store: float
    run: float
    store_cpu: float
    """Of a CPU in this process; a server takes its own."""
    run_cpu: float


@outlive.step
async def bench_queue_step(number: int) -> int:
    """Does nothing."""
    return number


@outlive.workflow
async def bench_one_step(number: int) -> int:
    """W1."""
    return await bench_queue_step(number)


@outlive.workflow
async def bench_many_steps(number: int) -> int:
    """W2."""
    for step in range(STEPS_PER_RUN):
        await bench_queue_step(step)
    return number


async def fill(store: Store, runs: int, keys: int) -> None:
    """Put runs into the line."""
    for begin in range(0, runs, AT_ONCE):
        changes = [born(store, f"run-{number}", f"key-{number % keys}") for number in range(begin, begin + AT_ONCE)]
        await store.commit(changes)


def born(store: Store, run_id: str, key: str) -> Change:
    """The start of a run in the queue."""
    event = RunCreated(
        at=store.now(), workflow="bench_line", version=1, input=NOTHING, nonce=1, queue=QUEUE, queue_key=key
    )
    return birth(run_id, event, [])


def ended(claim: Claim, at: int) -> Change:
    """The end of a claimed run."""
    fold = Fold(claim.run.id)
    fold.runs[0] = claim.run
    event = RunSucceeded(at=at, result=NOTHING)
    fold.apply(event)
    row = seal(event, salt=salt_of(claim.run.nonce), seq=claim.seq + 1)
    return Change(journal=claim.run.journal, after=claim.seq, rows=[row], runs=[fold.root])


async def measure_claims(url: str, *, runs: int, keys: int) -> float:
    """Seconds of a claim, with so many runs in line."""
    store = store_for(url, clock=SystemClock().now)
    await store.open()
    state = QueueRecord(declared=QueueLimits(per_key=1, concurrency=100))
    await store.change_cell(queue_cell(QUEUE), lambda *_: (queue_data(state), None))
    await fill(store, runs, keys)
    now_at = store.now()
    worker = WorkerInfo(id="w", name="w", definitions=(DEFINITION,), started_at=now_at, expires_at=now_at)
    await store.register_worker(worker, lease_seconds=3600)
    took: list[float] = []
    for _ in range(CLAIMS):
        began = time.perf_counter()
        claims = (await store.claim_runs("w", [DEFINITION], limit=CLAIM)).claims
        took.append(time.perf_counter() - began)
        assert len(claims) == CLAIM
        assert len({claim.run.queue_key for claim in claims}) == CLAIM
        await store.commit([ended(claim, store.now()) for claim in claims])
    await store.close()
    return statistics.median(took[5:])


async def measure_starts(url: str, count: int) -> float:
    """Starts a second, of which each is durable when it returns."""
    async with outlive.Engine(url, worker=False) as engine:
        began = time.perf_counter()
        for begin in range(0, count, AT_ONCE):
            numbers = range(begin, begin + AT_ONCE)
            await asyncio.gather(*(engine.start(bench_one_step, n, queue=line, key=f"key-{n % 100}") for n in numbers))
        return count / (time.perf_counter() - began)


async def measure_runs(
    url: str, count: int, workflow: outlive.types.Workflow[[int], int], queue: outlive.Queue | None
) -> Pace:
    """Runs a second, from the first start to the last end."""
    async with outlive.Engine(url) as engine:
        await (await engine.start(workflow, 0, queue=queue)).result()
        began, began_cpu = time.perf_counter(), time.process_time()
        runs = await asyncio.gather(*(engine.start(workflow, number, queue=queue) for number in range(count)))
        await asyncio.gather(*(run.result() for run in runs))
        return Pace(count / (time.perf_counter() - began), (time.process_time() - began_cpu) / count)


async def measure_batch(url: str, rows: Iterable[int], queue: outlive.Queue | None) -> BatchCost:
    """What it takes to store the rows of a batch, and to run it."""
    async with outlive.Engine(url) as engine:
        await (await engine.start(bench_one_step, 0)).result()
        began, began_cpu = time.perf_counter(), time.process_time()
        batch = await engine.start_batch(bench_one_step, rows, queue=queue)
        stored, stored_cpu = time.perf_counter(), time.process_time()
        await batch.result()
        ended, ended_cpu = time.perf_counter(), time.process_time()
        return BatchCost(stored - began, ended - stored, stored_cpu - began_cpu, ended_cpu - stored_cpu)


def print_lines(
    stores: Sequence[str], *, few: int, many: int, keys: int, directory: Path, postgres_url: str | None
) -> None:
    """Measure, and print a line for each figure."""
    for store in stores:

        def on_fresh(measure: Callable[..., Coroutine[Any, Any, T]], *args: object, **options: object) -> T:
            with fresh(store, directory=directory, postgres_url=postgres_url) as url:  # noqa: B023
                return asyncio.run(measure(url, *args, **options))

        short = on_fresh(measure_claims, runs=few, keys=min(few, keys))
        long = on_fresh(measure_claims, runs=many, keys=min(many, keys))
        print(
            f"{store}: a claim of {CLAIM} takes {short * 1e3:.2f} ms among {few:,} in line, {long * 1e3:.2f} ms among "
            f"{many:,} with {keys:,} keys: {long / short:.2f}x",
            flush=True,
        )
        print(f"{store}: {on_fresh(measure_starts, STARTS):,.0f} starts a second into a queue", flush=True)
        for name, count, workflow in (("W1", RUNS, bench_one_step), ("W2", LONG_RUNS, bench_many_steps)):
            seen: dict[outlive.Queue | None, list[Pace]] = {None: [], line: [], limited: []}
            for turn in range(ROUNDS):
                for queue in list(seen) if turn % 2 else reversed(seen):
                    seen[queue].append(on_fresh(measure_runs, count, workflow, queue))
            paces = {queue: Pace(*map(statistics.median, zip(*each, strict=True))) for queue, each in seen.items()}
            for what, queue in (("with one", line), ("with one that has a limit", limited)):
                without, with_one = paces[None], paces[queue]
                print(
                    f"{store}: {name} {without.rate:,.0f} runs a second without a queue, {with_one.rate:,.0f} {what}: "
                    f"{without.rate / with_one.rate:.2f}x; CPU of a run {without.cpu * 1e6:.0f} and "
                    f"{with_one.cpu * 1e6:.0f} us: {with_one.cpu / without.cpu:.2f}x",
                    flush=True,
                )


def measure_batches(
    stores: Sequence[str], *, directory: Path, postgres_url: str | None, rows: int = BATCH_ROWS
) -> None:
    """Measure batches without a queue and with one, for `python -m bench` too."""
    print("a batch in a queue, beside one without", flush=True)
    for store, is_counted in itertools.product(stores, (True, False)):
        seen: dict[outlive.Queue | None, list[BatchCost]] = {None: [], line: [], limited: []}
        for turn in range(BATCH_ROUNDS):
            for queue in list(seen) if turn % 2 else reversed(seen):
                numbers = range(rows) if is_counted else iter(range(rows))
                with fresh(store, directory=directory, postgres_url=postgres_url) as url:
                    seen[queue].append(asyncio.run(measure_batch(url, numbers, queue)))
        costs = {queue: BatchCost(*map(statistics.median, zip(*each, strict=True))) for queue, each in seen.items()}
        plain, of = costs[None], f"{rows:,} rows{'' if is_counted else ' of a generator'}"
        shown(f"{store}: {of} are stored without a queue", plain.store * 1e3, "ms", "none")
        shown(f"{store}: {of} are run without a queue", plain.run, "s", "none")
        for what, queue in (("a queue", line), ("one with a limit", limited)):
            times = [mine / its for mine, its in zip(costs[queue], plain, strict=True)]
            for name, figure in zip(("stored", "run", "stored, CPU", "run, CPU"), times, strict=True):
                shown(f"{store}: {of} in {what}, {name}", figure, "x", "< 1.5 x")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.queues", description=__doc__)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=BATCH_ROWS, help="of a batch")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    wanted = parser.parse_args()
    stores = wanted.stores.split(",")
    with postgres(wanted.postgres_url, is_needed="postgresql" in stores) as url:
        measure_batches(stores, rows=wanted.rows, directory=wanted.dir, postgres_url=url)
        print_lines(stores, few=wanted.few, many=wanted.many, keys=wanted.keys, directory=wanted.dir, postgres_url=url)


if __name__ == "__main__":
    main()
