"""The workloads as data: what is run, how much of it, which figures come out, and what each must reach.

Sizes differ between systems on purpose. A rate needs a run of a second or more to mean something, and what
Outlive does in a second takes DBOS minutes; so DBOS gets fewer runs where the figure is a rate or can be put
per run, and the report prints both counts. W3, W4, W5 and W6 are the same size for all.

`Figure.target` is the sentence in the report, `Figure.is_met` the same as a claim about medians. A target
that needs a rival that was not run is undecided, never met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SYSTEMS: Final = ("outlive", "dbos", "raw")

PROTOTYPE_W1: Final = {"sqlite": 30_900, "postgresql": 14_500}
PROTOTYPE_W2: Final = {"sqlite": 85_500, "postgresql": 40_100}
RIVAL_FACTOR: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Medians:
    """One figure of each system; None where it was not measured."""

    outlive: float | None
    dbos: float | None
    raw: float | None
    store: str


Verdict = bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the report."""

    key: str
    label: str
    unit: str
    higher_is_better: bool = False
    is_per_run: bool = False
    """The figure grows with the number of runs, so a ratio of two sizes is taken per run."""
    target: str = ""
    is_met: Callable[[Medians], Verdict] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Something all systems do, and the figures it yields."""

    name: str
    title: str
    sizes: Mapping[str, int]
    """How many, by system. A system without a size does not run it."""
    figures: tuple[Figure, ...]
    is_killed: bool = False
    """Two processes: one is killed half way, the next finishes its work."""
    repeats: int = 1
    """How often it is taken in each round: more for what is over in an instant and so prey to a neighbour."""
    timeout_seconds: float = 120.0

    def size(self, system: str, scale: float) -> int | None:
        """How many this system does at this scale."""
        full = self.sizes.get(system)
        return None if full is None else max(20, round(full * scale))


def beats_rival(prototype: Mapping[str, float]) -> Callable[[Medians], Verdict]:
    """At least 50x DBOS and half of what the prototype did on this store."""

    def is_met(medians: Medians) -> Verdict:
        if medians.outlive is None or medians.dbos is None:
            return None
        half = prototype[medians.store] / 2
        return medians.outlive >= RIVAL_FACTOR * medians.dbos and medians.outlive >= half

    return is_met


def rival_target(prototype: Mapping[str, float]) -> str:
    """The same as a sentence."""
    halves = ", ".join(f"{store} {rate / 2:,.0f}" for store, rate in prototype.items())
    return f">= {RIVAL_FACTOR}x DBOS and {halves}"


def at_most(limit: float) -> Callable[[Medians], Verdict]:
    """No more than the limit."""
    return lambda medians: None if medians.outlive is None else medians.outlive <= limit


def at_most_raw(factor: float) -> Callable[[Medians], Verdict]:
    """No more than so many times the bare driver."""

    def is_met(medians: Medians) -> Verdict:
        if medians.outlive is None or medians.raw is None:
            return None
        return medians.outlive <= factor * medians.raw

    return is_met


def recovers(medians: Medians) -> Verdict:
    """W6 has a second on SQLite and two on PostgreSQL."""
    return at_most(1.0 if medians.store == "sqlite" else 2.0)(medians)


def same(count: int, *, systems: tuple[str, ...] = SYSTEMS) -> dict[str, int]:
    return dict.fromkeys(systems, count)


WORKLOADS: Final = (
    Workload(
        name="W1",
        title="runs of 1 step, 100 open",
        sizes={"outlive": 30_000, "dbos": 1_500, "raw": 30_000},
        figures=(
            Figure(
                key="rate",
                label="runs/s",
                unit="",
                higher_is_better=True,
                target=rival_target(PROTOTYPE_W1),
                is_met=beats_rival(PROTOTYPE_W1),
            ),
        ),
    ),
    Workload(
        name="W2",
        title="runs of 10 steps, 100 open",
        sizes={"outlive": 10_000, "dbos": 400, "raw": 10_000},
        figures=(
            Figure(
                key="rate",
                label="steps/s",
                unit="",
                higher_is_better=True,
                target=rival_target(PROTOTYPE_W2),
                is_met=beats_rival(PROTOTYPE_W2),
            ),
        ),
    ),
    Workload(
        name="W2k",
        title="the same, 1 KB results",
        sizes={"outlive": 5_000, "dbos": 200, "raw": 5_000},
        figures=(Figure(key="rate", label="steps/s", unit="", higher_is_better=True, target="> half of W2"),),
    ),
    Workload(
        name="W3",
        title="1 run of sequential steps",
        sizes=same(100),
        repeats=3,
        figures=(
            Figure(key="p50_ms", label="step p50", unit="ms", target="<= 2x raw", is_met=at_most_raw(2.0)),
            Figure(key="p99_ms", label="step p99", unit="ms"),
        ),
    ),
    Workload(
        name="W3b",
        title="the same, WAL at its full size",
        sizes=same(100),
        repeats=3,
        figures=(
            Figure(key="p50_ms", label="step p50", unit="ms", target="<= 2x raw", is_met=at_most_raw(2.0)),
            Figure(key="p99_ms", label="step p99", unit="ms"),
        ),
    ),
    Workload(
        name="W4",
        title="1 run, gather of steps",
        sizes=same(1_000),
        repeats=3,
        figures=(Figure(key="seconds", label="total", unit="s", target="< 0.5 s", is_met=at_most(0.5)),),
    ),
    Workload(
        name="W5",
        title="1 long run, killed at 99 %",
        sizes=same(10_000),
        is_killed=True,
        timeout_seconds=300.0,
        figures=(
            Figure(key="run_seconds", label="until the kill", unit="s"),
            Figure(key="recover_seconds", label="exec to end", unit="s", target="< 1 s", is_met=at_most(1.0)),
            Figure(key="early_ms", label="step ~100", unit="ms"),
            Figure(key="late_ms", label="step ~10,000", unit="ms"),
            Figure(key="growth", label="late / early", unit="x", target="<= 1.2x", is_met=at_most(1.2)),
        ),
    ),
    Workload(
        name="W6",
        title="runs killed at step 5 of 10",
        sizes=same(1_000),
        is_killed=True,
        timeout_seconds=300.0,
        figures=(
            Figure(
                key="recover_seconds",
                label="exec to all ended",
                unit="s",
                target="< 1 s (PostgreSQL 2 s)",
                is_met=recovers,
            ),
        ),
    ),
    Workload(
        name="W7",
        title="runs asleep, due at once",
        sizes={"outlive": 10_000, "dbos": 2_000, "raw": 10_000},
        timeout_seconds=180.0,
        figures=(
            Figure(
                key="rss_mb",
                label="RSS above idle",
                unit="MB",
                is_per_run=True,
                target="< 100 MB",
                is_met=at_most(100.0),
            ),
            Figure(
                key="wake_seconds",
                label="due to all awake",
                unit="s",
                is_per_run=True,
                target="< 2 s",
                is_met=at_most(2.0),
            ),
        ),
    ),
    Workload(
        name="W7b",
        title="runs asleep, due at once",
        sizes={"outlive": 100_000},
        timeout_seconds=300.0,
        figures=(
            Figure(
                key="rss_mb",
                label="RSS above idle",
                unit="MB",
                is_per_run=True,
                target="< 300 MB",
                is_met=at_most(300.0),
            ),
            Figure(key="wake_seconds", label="due to all awake", unit="s", is_per_run=True),
        ),
    ),
    Workload(
        name="W8",
        title="starts, an idle worker elsewhere",
        sizes={"outlive": 200, "dbos": 20},
        figures=(
            Figure(
                key="p50_ms",
                label="start to step p50",
                unit="ms",
                target="< 10 ms (SQLite 20 ms)",
                is_met=lambda medians: at_most(20.0 if medians.store == "sqlite" else 10.0)(medians),
            ),
            Figure(key="p95_ms", label="start to step p95", unit="ms"),
            Figure(key="p99_ms", label="start to step p99", unit="ms"),
        ),
    ),
    Workload(
        name="W9",
        title="machines of 10 transitions, 100 open",
        sizes={"outlive": 4_000},
        figures=(
            Figure(key="rate", label="transitions/s", unit="", higher_is_better=True),
            Figure(key="step_rate", label="steps/s of a function", unit="", higher_is_better=True),
            Figure(key="ratio", label="transition / step", unit="x", target="<= 1.5x", is_met=at_most(1.5)),
        ),
    ),
    Workload(
        name="W10",
        title="1 machine, transitions replayed",
        sizes={"outlive": 10_000},
        timeout_seconds=300.0,
        figures=(
            Figure(key="replay_seconds", label="open to end", unit="s", target="< 0.5 s", is_met=at_most(0.5)),
            Figure(key="function_seconds", label="the same, steps", unit="s"),
        ),
    ),
    Workload(
        name="W11",
        title="a reply of words, streamed",
        sizes={"outlive": 4_000},
        timeout_seconds=300.0,
        figures=(
            Figure(key="stream_kb", label="in the store", unit="KB", target="< 200 KB", is_met=at_most(200.0)),
            Figure(key="lag_p50_ms", label="lag p50", unit="ms", target="< 30 ms", is_met=at_most(30.0)),
            Figure(key="lag_p99_ms", label="lag p99", unit="ms"),
            Figure(key="publish_kb", label="published instead", unit="KB"),
            Figure(key="ratio", label="published / streamed", unit=""),
        ),
    ),
    Workload(
        name="W12",
        title="flows of 10 steps, 100 open",
        sizes={"outlive": 4_000},
        figures=(
            Figure(key="rate", label="steps/s of a flow", unit="", higher_is_better=True),
            Figure(key="step_rate", label="steps/s of a function", unit="", higher_is_better=True),
            Figure(key="ratio", label="flow / function", unit="x", target="<= 1.5x", is_met=at_most(1.5)),
        ),
    ),
    Workload(
        name="cost",
        title="each step of W2, not timed",
        sizes={"outlive": 2_000, "dbos": 100, "raw": 2_000},
        figures=(
            Figure(key="rows", label="rows", unit="", target="1 + O(1)/run"),
            Figure(key="commits", label="commits", unit="", target="1 per batch"),
            Figure(key="statements", label="statements", unit=""),
            Figure(key="bytes", label="bytes written", unit="B"),
            Figure(key="cpu_ms", label="CPU", unit="ms"),
        ),
    ),
)

IMPORT_FIGURE: Final = Figure(
    key="import_ms", label="import outlive", unit="ms", target="< 100 ms", is_met=at_most(100.0)
)
