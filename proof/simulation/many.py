"""Many seeds, on several processors: what they found, and how often each situation came up."""

from __future__ import annotations

import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from proof.simulation.episode import Story, collect, play
from proof.simulation.plan import draw
from proof.simulation.sometimes import missing
from proof.simulation.switches import without

CHUNK = 50
"""Seeds that one process plays before it reports."""
COLLECT_EVERY = 25
FAILURES_MAX = 5
"""So many failing seeds are enough to look at."""


@dataclass(slots=True)
class Report:
    """What many seeds found."""

    seeds: int = 0
    failures: list[Story] = field(default_factory=list)
    sometimes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Simulated."""
    events: int = 0
    runs: int = 0

    def add(self, other: Report) -> None:
        """Take in what others found."""
        self.seeds += other.seeds
        self.failures += other.failures
        self.sometimes += other.sometimes
        self.seconds += other.seconds
        self.events += other.events
        self.runs += other.runs

    @property
    def missing(self) -> list[str]:
        """Situations that should have come up, and never did."""
        return missing(self.sometimes)


def simulate_many(
    first: int,
    seeds: int,
    *,
    jobs: int = 1,
    without: str | None = None,
    failures_max: int = FAILURES_MAX,
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Play seeds one after the other, until all are played or some have failed.

    Args:
        first: the first seed.
        jobs: processes at once.
        without: for testing the simulator: a protection of the engine to switch off (`switches`).
        failures_max: how many failing seeds end it.
        progress: called now and then with what was found so far.
    """
    chunks = [(start, min(CHUNK, first + seeds - start)) for start in range(first, first + seeds, CHUNK)]
    report = Report()
    for part in _parts(chunks, jobs, without, failures_max):
        report.add(part)
        progress(report)
        if len(report.failures) >= failures_max:
            break
    report.failures.sort(key=lambda story: story.seed)
    return report


def _parts(chunks: list[tuple[int, int]], jobs: int, without_: str | None, failures_max: int) -> Iterator[Report]:
    if jobs == 1:
        for first, count in chunks:
            yield play_chunk(first, count, without_, failures_max)
        return
    # Not forked: a simulation begins with a clean process, as the command for one seed does.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(play_chunk, first, count, without_, failures_max) for first, count in chunks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def play_chunk(first: int, count: int, without_: str | None, failures_max: int) -> Report:
    """Play some seeds in this process."""
    report = Report()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with without(without_):
            for seed in range(first, first + count):
                report.add(_brief(play(draw(seed))))
                if len(report.failures) >= failures_max:
                    break
                if seed % COLLECT_EVERY == 0:
                    collect()
    finally:
        collect()
        if was_enabled:
            gc.enable()
    return report


def _brief(story: Story) -> Report:
    return Report(
        seeds=1,
        failures=[story] if story.violations else [],
        sometimes=story.sometimes,
        seconds=story.seconds,
        events=story.events,
        runs=story.runs,
    )
