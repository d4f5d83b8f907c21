"""The programs of a trial, from a seed, each with the end it must come to.

Job n of seed s is the same in every process, so client, checks and a developer who repeats a failed trial agree on it
without talking to each other. Most jobs are programs; some are relays (a run of several generations) and some are
batches.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from outlive._kernel.model import RunStatus
from proof.storm.op import Op, Program, Relay

OPS_MAX = 5
PARTS_MAX = 4
DEPTH_MAX = 2
PLAIN = ("work",) * 9 + ("thread", "flaky", "slow", "pieces", "broken", "nap", "expire") * 3
KINDLY = ("once", "once", "transaction", "transaction", "publish", "patched", "lapse", "stream")
SIMPLE = PLAIN + KINDLY * 3 + ("process",)
"""Processes are slow to start, so there are few of them."""
NESTED = ("gather", "gather", "race", "child", "saga", "saga", "map", "map_runs", "flow")
WORLDLY = ("signal", "patience", "detached", "orphan", "lineage", "approval", "ask", "promise")
"""Only in programs that run to their end and outside races: elsewhere it is not known whether they happen."""
DETACHED = ("detached", "orphan", "lineage")
FLAVOURS = ("relay", "batch_of_steps", "batch_of_runs", "batch_of_writes", "paused", "repaired", "forked")
KINDS = frozenset((*SIMPLE, *NESTED, *WORLDLY, *FLAVOURS))
RUN_TIMEOUT_SECONDS = 1.5
GENERATIONS_MAX = 4
ITEMS_MAX = 12
MANY_ITEMS = 270
"""More than one chunk."""
MANY_SHARE = 0.04
PAUSED_SHARE = 0.1
REPAIRED_SHARE = 0.1
FORKED_SHARE = 0.1
CHUNK_ITEMS = 256


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
    relay: Relay | None = None
    pause_seconds: float | None = None
    """When to pause it, counted from its start; it is resumed a moment later."""
    is_repaired: bool = False
    """Whether it fails at first, until it is repaired and retried."""
    is_forked: bool = False
    """Whether it is forked when it has ended; the fork ends like it."""
    batch: str = ""
    """For a batch: what its items are, `steps`, `runs` or `writes`. They are the operations of the program."""

    @property
    def approvals(self) -> tuple[str, ...]:
        """What people have to decide."""
        return tuple(op.id for op in walk(self.program.ops) if op.kind == "approval")

    @property
    def forks(self) -> tuple[str, ...]:
        """The runs that begin with its history."""
        return (f"{self.id}-fork",) if self.is_forked else ()

    @property
    def asks(self) -> dict[str, int]:
        """What is asked of it, by name."""
        return {op.id: op.value for op in walk(self.program.ops) if op.kind == "ask"}

    @property
    def promises(self) -> dict[str, int]:
        """What its promises are settled with, by the name that their ids are published under."""
        return {op.id: op.value for op in walk(self.program.ops) if op.kind == "promise"}

    @property
    def chunks(self) -> tuple[str, ...]:
        """The runs that carry the items of a batch."""
        count = -(-len(self.program.ops) // CHUNK_ITEMS) if self.batch else 0
        return tuple(f"{self.id}~chunk{number}" for number in range(1, count + 1))

    @property
    def generations(self) -> tuple[str, ...]:
        """The runs that went on as the next one, if all do."""
        return tuple(
            f"{run_id}~gen{number}" for run_id, count in self.lineages.items() for number in range(1, count + 1)
        )

    @property
    def lineages(self) -> dict[str, int]:
        """By run id, how often it goes on as a new one."""
        detached = {op.id: op.fails for op in walk(self.program.ops) if op.kind == "lineage"}
        return detached if self.relay is None else {self.id: self.relay.generations}

    @property
    def rows(self) -> list[Program]:
        """For a batch of runs: what it is started with. If it is to be cancelled the last one never ends."""
        last = len(self.program.ops) - 1
        is_endless = self.cancel_seconds is not None
        return [
            Program((op,), "wait" if is_endless and index == last else "return")
            for index, op in enumerate(self.program.ops)
        ]

    @property
    def kinds(self) -> set[str]:
        """Everything that is tried in it."""
        flavour = f"batch_of_{self.batch}" if self.batch else "relay" if self.relay else ""
        treated = {"paused"} if self.pause_seconds is not None else set()
        treated |= {"repaired"} if self.is_repaired else set()
        treated |= {"forked"} if self.is_forked else set()
        return {flavour, *treated, *(op.kind for op in walk(self.program.ops))}


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
            case "gather" | "child" | "detached" | "map" | "map_runs" | "flow":
                total += predict(op.parts, signals)
            case "item":
                total += 0 if op.fails else op.value
            case "saga":
                total += op.value if op.fails else predict(op.parts, signals)
            case _:
                total += op.value
    return total


def total_of_detached(op: Op) -> int:
    """The result of the run that an operation starts detached."""
    return op.value if op.kind == "lineage" else predict(op.parts, iter([]))


def walk(ops: Sequence[Op]) -> Iterator[Op]:
    """Every operation with its parts."""
    for op in ops:
        yield op
        yield from walk(op.parts)


def of_root(ops: Sequence[Op]) -> Iterator[Op]:
    """The operations that the root itself performs, for certain."""
    for op in ops:
        yield op
        if op.kind == "gather":
            yield from of_root(op.parts)


def stream_ops(planned: Job) -> list[Op]:
    """The streams that the root of a job fills, if it comes to its end."""
    is_complete = planned.status in (RunStatus.SUCCEEDED, RunStatus.FAILED) and not planned.batch
    return [op for op in of_root(planned.program.ops) if op.kind == "stream"] if is_complete else []


class _Writer:
    """Writes one job."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")
        self._number = number
        self._places = itertools.count(1)

    def write(self) -> Job:
        """Choose what kind of job it is."""
        match self._random.choices(["program", "relay", "batch"], weights=[88, 7, 5])[0]:
            case "relay":
                return self._relay()
            case "batch":
                return self._batch()
            case _:
                return self._program()

    def _program(self) -> Job:
        """Choose an ending, then operations that fit it."""
        end = self._random.choices(["return", "raise", "cancel", "timeout"], weights=[80, 6, 9, 5])[0]
        runs_to_its_end = end in ("return", "raise")
        ops = [self._op(0, worldly=runs_to_its_end) for _ in range(self._random.randint(1, OPS_MAX))]
        signals = self._signals(sum(op.kind in ("signal", "patience") for op in walk(ops)))
        # A run cannot be retried when a saga of it was rolled back.
        can_retry = end == "return" and not any(op.kind == "saga" and op.fails for op in walk(ops))
        is_repaired = can_retry and self._random.random() < REPAIRED_SHARE
        # The id of a promise has that of its run in it: a fork would publish another one, which contradicts the copy.
        can_fork = end == "return" and not any(op.kind == "promise" for op in walk(ops))
        ending = "repair" if is_repaired else end if runs_to_its_end else "wait"
        return Job(
            number=self._number,
            id=f"job-{self._number}",
            program=Program(tuple(ops), ending, self._number),
            is_repaired=is_repaired,
            # With every ending: a paused run that is cancelled goes on to clean up, and one whose time is over times
            # out when it is resumed.
            pause_seconds=self._random.uniform(0, 0.3) if self._random.random() < PAUSED_SHARE else None,
            status=_STATUS[end],
            total=predict(ops, iter([signal.value for signal in signals])),
            signals=signals,
            cancel_seconds=self._random.uniform(0, 0.6) if end == "cancel" else None,
            timeout_seconds=RUN_TIMEOUT_SECONDS if end == "timeout" else None,
            detached={op.id: total_of_detached(op) for op in walk(ops) if op.kind in DETACHED},
            starts=2 if self._random.random() < 0.1 else 1,
            is_forked=self._random.random() < FORKED_SHARE and can_fork,
        )

    def _relay(self) -> Job:
        """A run of several generations, to which signals are sent while it goes on as the next."""
        end = self._random.choices(["return", "cancel"], weights=[85, 15])[0]
        generations, each = self._random.randint(1, GENERATIONS_MAX), self._random.randint(1, 2)
        signals = self._signals((generations + 1) * each)
        return Job(
            number=self._number,
            id=f"job-{self._number}",
            program=Program(()),
            relay=Relay(generations, each, place=1, ending="wait" if end == "cancel" else "return"),
            status=_STATUS[end],
            total=sum(signal.value for signal in signals),
            signals=signals,
            cancel_seconds=self._random.uniform(0, 0.4) if end == "cancel" else None,
        )

    def _batch(self) -> Job:
        """Items that are steps, runs, or rows in the store's own database; some fail."""
        batch = self._random.choice(("steps", "runs", "writes"))
        is_big = batch == "steps" and self._random.random() < MANY_SHARE * 3
        count = MANY_ITEMS if is_big else self._random.randint(2, ITEMS_MAX)
        if batch == "runs":
            ops = tuple(self._op(DEPTH_MAX, worldly=False) for _ in range(count))
        else:
            ops = tuple(self._item(2 if is_big else 20) for _ in range(count))
        end = "cancel" if batch == "runs" and self._random.random() < 0.3 else "return"
        return Job(
            number=self._number,
            id=f"job-{self._number}",
            program=Program(ops),
            batch=batch,
            status=_STATUS[end],
            cancel_seconds=self._random.uniform(0, 0.6) if end == "cancel" else None,
            total=predict(ops, iter([])),
            starts=self._random.choice((1, 2)),
        )

    def _signals(self, count: int) -> tuple[SignalPlan, ...]:
        return tuple(
            SignalPlan(f"go-{self._number}-{index}", self._random.randint(1, 99), self._random.choice((1, 1, 2)))
            for index in range(count)
        )

    def _op(self, depth: int, *, worldly: bool) -> Op:
        groups: list[tuple[str, ...]] = [SIMPLE, SIMPLE]
        if depth < DEPTH_MAX:
            groups.append(NESTED)
            if worldly:
                groups.append(WORLDLY)
        kind = self._random.choice(self._random.choice(groups))
        place, value = next(self._places), self._random.randint(1, 40)
        match kind:
            case "detached" | "orphan":
                return Op(kind, place, value, self._parts(depth), id=f"{kind}-{self._number}-{place}")
            case "lineage":
                generations = self._random.randint(1, GENERATIONS_MAX)
                return Op(kind, place, value, fails=generations, id=f"{kind}-{self._number}-{place}")
            case "approval" | "ask" | "promise":
                return Op(kind, place, value, id=f"{kind}-{place}")
            case "saga":
                parts = tuple(
                    Op("booking", next(self._places), self._random.randint(1, 40))
                    for _ in range(self._random.randint(2, PARTS_MAX))
                )
                return Op(kind, place, value, parts, fails=self._random.randint(0, 1))
            case "map":
                items = tuple(self._item(20) for _ in range(self._random.randint(2, PARTS_MAX)))
                return Op(kind, place, value, items, fails=sum(item.fails for item in items))
            case _ if kind in NESTED:
                return Op(kind, place, value, self._parts(depth, worldly=worldly and kind == "gather"))
            case "flaky":
                return Op(kind, place, value, fails=self._random.randint(1, 3))
            case "once" | "transaction":
                return Op(kind, place, value, fails=self._random.choice((0, 0, 1)))
            case _:
                return Op(kind, place, value)

    def _item(self, value_max: int) -> Op:
        is_broken = self._random.random() < 0.2
        return Op("item", next(self._places), self._random.randint(1, value_max), fails=int(is_broken))

    def _parts(self, depth: int, *, worldly: bool = False) -> tuple[Op, ...]:
        return tuple(self._op(depth + 1, worldly=worldly) for _ in range(self._random.randint(2, PARTS_MAX)))


_STATUS = {
    "return": RunStatus.SUCCEEDED,
    "raise": RunStatus.FAILED,
    "cancel": RunStatus.CANCELLED,
    "timeout": RunStatus.TIMED_OUT,
}
