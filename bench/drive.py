"""The procedures of W1 to W7, written once and used on every system.

Each system brings six workflows and the five verbs of `System`; how many runs are open, when a clock is read,
what is warm before it is, and what counts as done is decided here, for both alike. So a difference between
two figures can only come from the systems, or from their adapters, which are a few lines each.

* One run is completed before any clock is read: lazy imports and first connections are nobody's figure.
* A WAL that still grows makes fsync dearer than one that is written over: on ext4 a commit costs twice as
  much before the first checkpoint as after it. W3 is on a new file, as a first user meets it. W3b, and W5,
  where step 10,000 is compared with step 100, begin after 2,000 other steps, when the WAL has its full size;
  otherwise that saving would hide a cost that doubles.
* W5 and W6 take two processes. The first waits at a known step until it is killed with SIGKILL; the second is
  new in every respect and only waits for the runs to end.
* W7 sends all runs to sleep until one instant. It is chosen from the pace of some runs of one step just
  before, plus 5 s, so that every run is asleep before the first is due, however slow the system; a process in
  which that failed has no figure. Memory is read half a second before the instant.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from bench.meter import (
    OPEN_RUNS,
    SLEEP_SECONDS,
    STEPS_PER_RUN,
    Figures,
    Order,
    Stopwatch,
    bytes_written,
    growth_figures,
    keep_open,
    latency_figures,
    peak_rss_mb,
    report,
    rss_mb,
)
from bench.stage import STAGE, until_killed

CALIBRATION_RUNS = 200
WAL_RUNS = 200
NAP_SECONDS = 0.05
READING_SECONDS = 0.5


class System(Protocol):
    """What a system must be able to do to be measured."""

    one_step: Any
    ten_steps: Any
    ten_large_steps: Any
    long_run: Any
    wide_run: Any
    gated_run: Any
    sleeper: Any

    async def start(self, workflow: Any, run_id: str, *args: Any) -> Any:
        """Begin a run, and return its handle once it is durable."""
        ...

    async def complete(self, workflow: Any, run_id: str, *args: Any) -> None:
        """Begin a run and wait for its result."""
        ...

    async def wait_for_all(self, run_ids: Sequence[str]) -> None:
        """Return as soon as the ends of all these runs are durable."""
        ...

    def begin_counting(self) -> None:
        """Count database work from here on."""
        ...

    def counts(self) -> Figures:
        """Database work since then; None for what this system cannot tell."""
        ...


async def throughput(order: Order, system: System) -> Figures:
    """W1, W2, W2k: how many a second, with 100 open."""
    workflows = {"W1": system.one_step, "W2": system.ten_steps, "W2k": system.ten_large_steps}
    workflow, steps = workflows[order.workload], 1 if order.workload == "W1" else STEPS_PER_RUN
    await system.complete(workflow, "warm-up")
    watch = Stopwatch()
    await keep_open(order.n, lambda number: system.complete(workflow, f"w-{number}"))
    return watch.figures(order.n * steps)


async def cost(order: Order, system: System) -> Figures:
    """W2 again, counted and not timed: what one step asks of the database and the processor."""
    await system.complete(system.ten_steps, "warm-up")
    system.begin_counting()
    written, cpu = bytes_written(), time.process_time()
    await keep_open(order.n, lambda number: system.complete(system.ten_steps, f"w-{number}"))
    steps = order.n * STEPS_PER_RUN
    figures: Figures = {"cpu_ms": 1000 * (time.process_time() - cpu) / steps}
    # A server writes what a client sends; only an embedded database's bytes are this process's own.
    figures["bytes"] = (bytes_written() - written) / steps if order.sqlite_path is not None else None
    for name, count in system.counts().items():
        figures[name] = count / steps if isinstance(count, int | float) else None
    return figures


async def fill_wal(system: System) -> None:
    """Do steps one after the other until SQLite has begun to write over its WAL."""
    await keep_open(WAL_RUNS, lambda number: system.complete(system.ten_steps, f"f-{number}"), width=1)


async def latency(order: Order, system: System) -> Figures:
    """W3, W3b: from the body of one step to the body of the next."""
    await system.complete(system.one_step, "warm-up")
    if order.workload == "W3b":
        await fill_wal(system)
    await system.complete(system.long_run, "w-0", order.n)
    return latency_figures(STAGE.stamps)


async def fan_out(order: Order, system: System) -> Figures:
    """W4: from the start of the run to its result."""
    await system.complete(system.one_step, "warm-up")
    watch = Stopwatch()
    await system.complete(system.wide_run, "w-0", order.n)
    return watch.figures(order.n)


async def long_prepare(order: Order, system: System) -> Figures:
    """W5, first process: as far as the step that never returns."""
    await fill_wal(system)
    STAGE.killed_at = order.killed_at
    await system.start(system.long_run, "w-0", order.n)
    await STAGE.wait_for_arrival()
    return await answer_and_wait(growth_figures(STAGE.stamps))


async def long_recover(order: Order, system: System) -> Figures:
    """W5, second process: from there to the end. No step that was journaled may run again."""
    STAGE.expect(1)
    await system.wait_for_all(["w-0"])
    completed_at = time.monotonic()
    return {"completed_at": completed_at, "steps_redone": len(STAGE.stamps) - (order.n - order.killed_at + 1)}


async def gated_prepare(order: Order, system: System) -> Figures:
    """W6, first process: until every run is held in its fifth step."""
    STAGE.has_gate = True
    for first in range(0, order.n, OPEN_RUNS):
        wave = range(first, min(first + OPEN_RUNS, order.n))
        STAGE.expect(wave.stop)
        await asyncio.gather(*(system.start(system.gated_run, f"w-{number}") for number in wave))
        await STAGE.wait_for_arrival()
    return await answer_and_wait({"blocked": STAGE.at_gate})


async def gated_recover(order: Order, system: System) -> Figures:
    """W6, second process: until every run has ended."""
    STAGE.expect(order.n)
    await system.wait_for_all([f"w-{number}" for number in range(order.n)])
    return {"completed_at": time.monotonic()}


async def sleepers(order: Order, system: System) -> Figures:
    """W7: what a sleeping run weighs, and how soon all are awake."""
    await system.complete(system.sleeper, "warm-up", NAP_SECONDS)
    began = time.perf_counter()
    await keep_open(CALIBRATION_RUNS, lambda number: system.complete(system.one_step, f"c-{number}"))
    pace = (time.perf_counter() - began) / CALIBRATION_RUNS
    STAGE.ended = 0
    STAGE.expect(order.n)
    idle = rss_mb()
    due = time.time() + SLEEP_SECONDS + pace * order.n

    async def send_to_sleep(number: int) -> None:
        await system.start(system.sleeper, f"w-{number}", due - time.time())

    began = time.perf_counter()
    await keep_open(order.n, send_to_sleep)
    submit_seconds = time.perf_counter() - began
    assert time.time() < due - READING_SECONDS, "the first run was due before the last one slept"
    # Nothing happens while all sleep, so there is no event to wait for here but the clock.
    await asyncio.sleep(due - time.time() - READING_SECONDS)
    asleep = rss_mb()
    await STAGE.wait_for_arrival()
    await system.wait_for_all([f"w-{number}" for number in range(order.n)])
    return {
        "rss_mb": asleep - idle,
        "idle_mb": idle,
        "peak_mb": peak_rss_mb(),
        "wake_seconds": STAGE.last_ended_at - due,
        "complete_seconds": time.time() - due,
        "submit_seconds": submit_seconds,
    }


async def answer_and_wait(figures: Figures) -> Figures:
    """Tell the parent that this process may be killed, and hold still."""
    report(figures)
    await until_killed()
    raise AssertionError("unreachable: the process was to be killed")


MEASURES: dict[tuple[str, str], Callable[[Order, System], Awaitable[Figures]]] = {
    ("W1", "run"): throughput,
    ("W2", "run"): throughput,
    ("W2k", "run"): throughput,
    ("W3", "run"): latency,
    ("W3b", "run"): latency,
    ("W4", "run"): fan_out,
    ("W5", "prepare"): long_prepare,
    ("W5", "recover"): long_recover,
    ("W6", "prepare"): gated_prepare,
    ("W6", "recover"): gated_recover,
    ("W7", "run"): sleepers,
    ("W7b", "run"): sleepers,
    ("cost", "run"): cost,
}


async def drive(order: Order, system: System) -> Figures:
    """Carry out the order on this system."""
    return await MEASURES[order.workload, order.phase](order, system)
