"""The programs of a trial, from a seed, each with the end it must come to.

Job n of seed s is the same in every process, so client, checks and a developer who repeats a failed trial agree on it
without talking to each other.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from outlive._model import RunStatus
from outlive.testing.kill.program import Op, Program

OPS_MAX = 5
PARTS_MAX = 4
DEPTH_MAX = 2
SIMPLE = ("work", "work", "work", "thread", "flaky", "slow", "pieces", "broken", "nap", "expire")
NESTED = ("gather", "gather", "race", "child")
WORLDLY = ("signal", "patience", "detached", "orphan")
"""Only in programs that run to their end and outside races: elsewhere nobody knows whether they happen."""
KINDS = frozenset((*SIMPLE, *NESTED, *WORLDLY))
RUN_TIMEOUT_SECONDS = 1.5


@dataclass(frozen=True)
class SignalPlan:
    """A signal that the client sends."""

    key: str
    value: int
    times: int
    """How often, with the same key: once counts."""


@dataclass(frozen=True)
class Job:
    """One run that the client starts, what it does to it, and how it must end."""

    number: int
    id: str
    program: Program
    status: RunStatus
    total: int
    """The result, if it succeeds."""
    signals: tuple[SignalPlan, ...] = ()
    cancel_seconds: float | None = None
    """When to cancel it, counted from its start."""
    timeout_seconds: float | None = None
    detached: dict[str, int] = field(default_factory=dict)
    """The results of the runs that it starts detached, by id."""
    starts: int = 1
    """How often the client starts it: the same id is the same run."""


def job(seed: int, number: int) -> Job:
    """The job with this number."""
    return _Writer(seed, number).write()


def predict(ops: Sequence[Op], signals: Iterator[int]) -> int:
    """What the operations add up to."""
    total = 0
    for op in ops:
        match op.kind:
            case "signal" | "patience":
                total += next(signals)
            case "gather" | "child" | "detached":
                total += predict(op.parts, signals)
            case _:
                total += op.value
    return total


def walk(ops: Sequence[Op]) -> Iterator[Op]:
    """Every operation with its parts."""
    for op in ops:
        yield op
        yield from walk(op.parts)


class _Writer:
    """Writes one job."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")
        self._number = number
        self._places = itertools.count(1)

    def write(self) -> Job:
        """Choose an ending, then operations that fit it."""
        end = self._random.choices(["return", "raise", "cancel", "timeout"], weights=[80, 6, 9, 5])[0]
        runs_to_its_end = end in ("return", "raise")
        ops = [self._op(0, worldly=runs_to_its_end) for _ in range(self._random.randint(1, OPS_MAX))]
        signals = [
            SignalPlan(f"go-{self._number}-{index}", self._random.randint(1, 99), self._random.choice((1, 1, 2)))
            for index in range(sum(op.kind in ("signal", "patience") for op in walk(ops)))
        ]
        return Job(
            number=self._number,
            id=f"job-{self._number}",
            program=Program(tuple(ops), "wait" if not runs_to_its_end else end),
            status=_STATUS[end],
            total=predict(ops, iter([signal.value for signal in signals])),
            signals=tuple(signals),
            cancel_seconds=self._random.uniform(0, 0.6) if end == "cancel" else None,
            timeout_seconds=RUN_TIMEOUT_SECONDS if end == "timeout" else None,
            detached={op.id: predict(op.parts, iter([])) for op in walk(ops) if op.id},
            starts=2 if self._random.random() < 0.1 else 1,
        )

    def _op(self, depth: int, *, worldly: bool) -> Op:
        groups: list[tuple[str, ...]] = [SIMPLE, SIMPLE]
        if depth < DEPTH_MAX:
            groups.append(NESTED)
            if worldly:
                groups.append(WORLDLY)
        kind = self._random.choice(self._random.choice(groups))
        place, value = next(self._places), self._random.randint(1, 40)
        if kind in ("detached", "orphan"):
            return Op(kind, place, value, self._parts(depth), id=f"{kind}-{self._number}-{place}")
        if kind in NESTED:
            return Op(kind, place, value, self._parts(depth, worldly=worldly and kind == "gather"))
        return Op(kind, place, value, fails=self._random.randint(1, 3) if kind == "flaky" else 0)

    def _parts(self, depth: int, *, worldly: bool = False) -> tuple[Op, ...]:
        return tuple(self._op(depth + 1, worldly=worldly) for _ in range(self._random.randint(2, PARTS_MAX)))


_STATUS = {
    "return": RunStatus.SUCCEEDED,
    "raise": RunStatus.FAILED,
    "cancel": RunStatus.CANCELLED,
    "timeout": RunStatus.TIMED_OUT,
}
