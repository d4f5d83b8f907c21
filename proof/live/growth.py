"""What grows and does not stop: memory, files, threads, connections, the store, and the time that things take.

A process is looked at from its warm-up to its end. Growth is the median of the slopes between all pairs of samples
(Theil and Sen), which no single peak can move. A limit has two parts, and both have to be exceeded: a slope, and what
it has come to, so that a short life is not failed for the noise of its beginning.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from proof.live.evidence import Evidence, Timing
from proof.live.watch import Sample

WARM_UP_SHARE, WARM_UP_SECONDS_MAX = 0.4, 120.0
LIFE_SECONDS_MIN = 100.0
"""A process that lived for a shorter time says nothing about growth."""
PINGED = ("web", "worker", "agents")
OUTSIDE = ("bank", "mailer")
"""These keep their ledgers in memory, and a thread for each webhook that is not answered: they are not judged."""
POINTS_MAX = 120
"""Of a line; more are thinned out."""


@dataclass(frozen=True)
class Limit:
    """How much a figure of a process may grow."""

    figure: str
    unit: str
    per_minute: float
    in_all: float
    of: Callable[[Sample], float]


LIMITS = (
    Limit("memory", "MB", 1.0, 12.0, lambda it: it.rss_mb),
    Limit("files", "", 0.5, 25.0, lambda it: float(it.fds - it.connections)),
    Limit("threads", "", 0.5, 6.0, lambda it: float(it.threads)),
    Limit("connections", "", 0.3, 18.0, lambda it: float(it.connections)),
)
STORE_MB_PER_MINUTE, STORE_MB = 2.0, 25.0
"""Of the tables of Outlive, while old runs are deleted as fast as new ones come."""
CONNECTIONS_OF_PROCESS_MAX = 26
"""What a worker may have: it keeps what a burst has opened, up to 23, and a few more while it replaces them."""
CONNECTIONS_MAX = 80
"""To the server, of all processes together."""
PING_TYPICAL_SECONDS_MAX, PING_LATE_SECONDS_MAX = 0.25, 3.0
PROBE_TYPICAL_SECONDS_MAX = 2.0
LATE_SHARE = 0.95
SLOWER_MAX, SLOWER_SECONDS = 3.0, 0.2
"""How much longer things may take in the last third than in the first, as a factor and besides."""
TIMINGS_MIN = 90
"""Fewer say nothing about a trend: in two minutes a third has five probes, and one burst of other work meets three."""


@dataclass(frozen=True)
class Life:
    """One process from its first sample to its last."""

    role: str
    pid: int
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """How long it was seen."""
        return self.samples[-1].at - self.samples[0].at

    @property
    def warm(self) -> tuple[Sample, ...]:
        """The samples after its warm-up."""
        from_then = self.samples[0].at + min(WARM_UP_SECONDS_MAX, self.seconds * WARM_UP_SHARE)
        return tuple(it for it in self.samples if it.at >= from_then)


def lives(samples: Sequence[Sample]) -> list[Life]:
    """Every process that was seen, in the order of their roles."""
    of: defaultdict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        of[sample.role, sample.pid].append(sample)
    return [Life(role, pid, tuple(seen)) for (role, pid), seen in sorted(of.items())]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points: what one second adds."""
    thin = points[:: max(1, -(-len(points) // POINTS_MAX))]
    found = [(b - y) / (a - x) for (x, y), (a, b) in combinations(thin, 2) if a > x]
    return statistics.median(found) if found else 0.0


def grown(life: Life, of: Callable[[Sample], float]) -> tuple[float, float]:
    """What a figure gains in a minute, and what that came to."""
    warm = life.warm
    each = slope([(it.at, of(it)) for it in warm]) * 60
    return each, each * (warm[-1].at - warm[0].at) / 60


def no_process_grows(it: Evidence) -> Iterator[str]:
    """No process of the application grows without end: memory, files, threads, connections."""
    for life in lives(it.samples):
        if life.seconds < LIFE_SECONDS_MIN or life.role in OUTSIDE:
            continue
        for limit in LIMITS:
            each, in_all = grown(life, limit.of)
            if each > limit.per_minute and in_all > limit.in_all:
                yield (
                    f"{life.role} (process {life.pid}) gains {each:.1f} {limit.unit} of {limit.figure} in a minute, "
                    f"{in_all:.0f} in {life.seconds:.0f} s"
                )


def the_store_does_not_grow(it: Evidence) -> Iterator[str]:
    """The store does not grow while old runs are deleted, and connections to its server are few."""
    if not it.sizes:
        yield "the store was never looked at"
        return
    seconds = it.sizes[-1].at - it.sizes[0].at
    from_then = it.sizes[0].at + seconds * WARM_UP_SHARE
    warm = [(size.at, size.mb) for size in it.sizes if size.at >= from_then]
    each = slope(warm) * 60
    in_all = each * (warm[-1][0] - warm[0][0]) / 60
    if each > STORE_MB_PER_MINUTE and in_all > STORE_MB:
        yield f"the store gains {each:.1f} MB in a minute, {in_all:.0f} MB in all"
    for life in lives(it.samples):
        if (most := max(each.connections for each in life.samples)) > CONNECTIONS_OF_PROCESS_MAX:
            yield f"{life.role} (process {life.pid}) had {most} connections to the server"
    most = max(size.connections for size in it.sizes)
    if most > CONNECTIONS_MAX:
        yield f"there were {most} connections to the server"


def answers_stay_quick(it: Evidence) -> Iterator[str]:
    """A ping and a small run take as long at the end as at the beginning, and not long."""
    asked = pings_by_kind(it)
    for kind in PINGED if it.wanted_faults else ("web",):
        if kind not in asked:
            yield f"a ping of {kind} was never timed"
    if not it.probes:
        yield "a small run was never timed"
    for kind, timings in asked.items():
        yield from _slow(f"a ping of {kind}", timings, PING_TYPICAL_SECONDS_MAX, it.began_at)
        late = quantile([each.seconds for each in timings], LATE_SHARE)
        if late > PING_LATE_SECONDS_MAX:
            yield f"of 100 pings of {kind} 5 take longer than {late:.1f} s"
        for role, pid in sorted({(each.role, each.pid) for each in timings}):
            yield from _slower(f"a ping of {role} (process {pid})", [each for each in timings if each.pid == pid])
    if it.probes:
        yield from _slow("a small run", it.probes, PROBE_TYPICAL_SECONDS_MAX, it.began_at)
        yield from _slower("a small run", it.probes)


def pings_by_kind(it: Evidence) -> dict[str, list[Timing]]:
    """The pings of webs, of workers and of agents."""
    found: defaultdict[str, list[Timing]] = defaultdict(list)
    for each in it.pings:
        found[each.role.partition("-")[0]].append(each)
    return dict(found)


def _slow(what: str, timings: Sequence[Timing], most: float, began_at: float) -> Iterator[str]:
    typical = statistics.median(each.seconds for each in timings)
    if typical > most:
        yield f"{what} takes {typical:.2f} s"
    for each in timings:
        if not each.is_fine:
            at = each.at - began_at
            yield f"{what} ({each.role}) failed after {each.seconds:.1f} s, {at:.0f} s from the beginning"


def _slower(what: str, timings: Sequence[Timing]) -> Iterator[str]:
    first, last = thirds(timings)
    if first and last > first * SLOWER_MAX and last > first + SLOWER_SECONDS:
        yield f"{what} takes {last:.2f} s at the end, and took {first:.2f} s at the beginning"


def thirds(timings: Sequence[Timing]) -> tuple[float, float]:
    """The typical time of the first and of the last third; zeros if there are too few."""
    if len(timings) < TIMINGS_MIN:
        return 0.0, 0.0
    third = len(timings) // 3
    first, last = timings[:third], timings[-third:]
    return statistics.median(it.seconds for it in first), statistics.median(it.seconds for it in last)


def quantile(times: Sequence[float], share: float) -> float:
    """The time within which this share of them is; 0 if there is none."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] if times else 0.0


GROWTH_CHECKS = (no_process_grows, the_store_does_not_grow, answers_stay_quick)
