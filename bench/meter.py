"""What every measured process shares: its order, its clock, its own weight, and the one line it answers with.

A measurement is a process. It gets an order in argv, does the work against a database nobody has used
before, and prints one JSON line. Nothing is carried from one measurement to the next: no warm page cache of
SQLite's own, no heap that an earlier workload has grown, no thread pool that is already there.

Instants are `time.monotonic()`, which Linux counts from boot for all processes alike. So the parent can take
one before it starts a child, the child can take another when its work is done, and the difference is the time
a user would have waited, with the start of the interpreter in it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

OPEN_RUNS: Final = 100
"""How many runs W1 and W2 keep open at any moment."""

STEPS_PER_RUN: Final = 10
"""The length of a run in W2 and W6."""
LARGE_BYTES = 1024
"""What each step of W2k returns."""

BLOCKED_STEP: Final = 5
"""The step of W6, counted from 1, in which the first process waits to be killed."""

SLEEP_SECONDS: Final = 5.0
"""The shortest sleep any run of W7 gets: the last one started has this long to go."""

KILLED_FRACTION: Final = 0.99
"""The part of W5 that is journaled when the kill comes."""

WINDOW_STEPS: Final = 160
"""How many step costs make one median in W5: wide enough to see past a checkpoint of the WAL."""

WINDOW_CENTRE: Final = 100
"""The early step of W5 with which the late ones are compared."""

Figures = dict[str, float | int | str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one process is asked to measure."""

    workload: str
    phase: str
    n: int
    database: str
    """`sqlite:/absolute/path` or `postgresql://...`; each side puts it into the spelling of its system."""

    @property
    def killed_at(self) -> int:
        """The step of W5, counted from 1, that never returns in the first process."""
        return max(2, int(self.n * KILLED_FRACTION))

    @property
    def sqlite_path(self) -> str | None:
        """The file of the database, if it is one."""
        return self.database.removeprefix("sqlite:") if self.database.startswith("sqlite:") else None


@dataclass(slots=True)
class Stopwatch:
    """Wall and CPU seconds since it was made."""

    _wall: float = field(default_factory=time.perf_counter)
    _cpu: float = field(default_factory=time.process_time)

    def figures(self, count: int) -> Figures:
        """How long `count` things took, as figures."""
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return {"seconds": wall, "rate": count / wall, "cpu_ms_each": 1000 * cpu / count}


def report(figures: Figures) -> None:
    """Answer the parent. A process answers once."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


async def keep_open(n: int, run_one: Callable[[int], Awaitable[None]], *, width: int = OPEN_RUNS) -> None:
    """Do `run_one(0)` to `run_one(n - 1)`, always `width` of them at a time."""
    numbers: Iterator[int] = iter(range(n))

    async def lane() -> None:
        for number in numbers:
            await run_one(number)

    await asyncio.gather(*(lane() for _ in range(min(width, n))))


def rss_mb() -> float:
    """The resident memory of this process, after a collection, in MB."""
    gc.collect()
    with Path("/proc/self/status").open(encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError("/proc/self/status has no VmRSS")


def peak_rss_mb() -> float:
    """The most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def bytes_written() -> int:
    """The bytes this process has passed to write calls so far, to any file."""
    with Path("/proc/self/io").open(encoding="ascii") as counters:
        for line in counters:
            if line.startswith("wchar:"):
                return int(line.split()[1])
    raise AssertionError("/proc/self/io has no wchar")


def percentile(values: Sequence[float], fraction: float) -> float:
    """The value below which `fraction` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def intervals_ms(stamps: Sequence[float]) -> list[float]:
    """The time from each stamp to the next: what one step costs, from body to body."""
    return [1000 * (later - earlier) for earlier, later in itertools.pairwise(stamps)]


def latency_figures(stamps: Sequence[float]) -> Figures:
    """W3: the usual and the unlucky cost of a step."""
    costs = intervals_ms(stamps)
    return {"p50_ms": percentile(costs, 0.5), "p99_ms": percentile(costs, 0.99)}


def growth_figures(stamps: Sequence[float]) -> Figures:
    """W5: what a step costs around step 100 and at the end of a long history, and how they compare."""
    costs = intervals_ms(stamps)
    width = max(1, min(WINDOW_STEPS, len(costs) // 3))
    first = max(0, min(WINDOW_CENTRE - width // 2, len(costs) - 2 * width))
    early = percentile(costs[first : first + width], 0.5)
    late = percentile(costs[-width:], 0.5)
    return {"early_ms": early, "late_ms": late, "growth": late / early, "run_seconds": stamps[-1] - stamps[0]}
