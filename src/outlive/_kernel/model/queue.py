"""Queues: how many runs of one kind may be under way at once, and who is next.

A queue is declared in code (`Queue`); what all workers share of it lies in a cell of the store (`QueueRecord`), so that
every claim sees the same limits, whichever worker makes it. What was set at run time wins over what code declares.

The nouns of a queue are in a table in `docs/internals/store.md`. In a cell, the turn served last is called `virtual`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec

from outlive._kernel.model import given
from outlive._kernel.model.limit import (
    FixedWindow,
    LimitState,
    RateLimit,
    SlidingWindow,
    Tier,
    TokenBucket,
    charge_limit,
    limit_fits_at,
)
from outlive._kernel.model.pause import Pause
from outlive.errors import ArgumentTypeError, InvalidArgumentError

QUEUE_CELLS = "outlive.queue/"
"""How the name of the cell of a queue begins."""
QUEUE_CELLS_END = QUEUE_CELLS[:-1] + chr(ord(QUEUE_CELLS[-1]) + 1)
"""Behind all such names."""
DEFAULT = "default"
"""The name that people see for the runs without a queue."""
KEY_LENGTH_MAX = 200
PRIORITY_MAX = 1_000_000
WEIGHT_MIN, WEIGHT_MAX = 0.001, 1_000
WEIGHTS_MAX = 10_000
"""How many keys may have a weight: every claim reads them."""
SLOTS_MAX = 1_000_000_000
"""The largest limit that is one: above it, a queue has none."""
TIERS_MAX = 10
AGEING_SECONDS = 60.0
Hold = Literal["end", "running"]
TierKind = Literal["bucket", "window", "sliding"]
"""A `TokenBucket`, a `FixedWindow` or a `SlidingWindow`."""
WINDOWS: dict[str, type[FixedWindow | SlidingWindow]] = {"window": FixedWindow, "sliding": SlidingWindow}


class RateTier(msgspec.Struct, frozen=True):
    """How many runs may begin, as a cell has it: tokens a second and at once, or runs in a window of seconds."""

    kind: TierKind
    amount: Annotated[float, msgspec.Meta(gt=0)]
    """Tokens a second of a bucket; runs in one window."""
    extent: Annotated[float, msgspec.Meta(gt=0)]
    """Tokens that a bucket holds; seconds of a window."""

    @property
    def tier(self) -> Tier:
        """The tier itself."""
        if self.kind == "bucket":
            return TokenBucket(self.amount, int(self.extent))
        return WINDOWS[self.kind](int(self.amount), self.extent)

    @classmethod
    def of(cls, tier: Tier) -> RateTier:
        """A tier as a cell has it."""
        if isinstance(tier, TokenBucket):
            return cls("bucket", tier.rate, tier.burst)
        return cls("window" if isinstance(tier, FixedWindow) else "sliding", tier.limit, tier.seconds)


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue, as its cell has them; None for no limit."""

    concurrency: int | None = None
    """Slots in all workers: runs under way at once, if each takes one."""
    per_worker: int | None = None
    """Slots in one worker."""
    per_key: int | None = None
    """Runs under way at once with the same key."""
    rate: tuple[RateTier, ...] = ()
    """How often runs may begin; all of them hold at once."""
    priorities: bool = False
    """Whether runs with a higher priority go first."""
    ageing: timedelta = timedelta(seconds=AGEING_SECONDS)
    """The waiting that counts as much as one level of priority."""
    weights: dict[str, float] = {}
    """How many turns keys have when others have one, where that is not one."""
    hold: Hold = "end"
    """Until when a run keeps its slot: to its `end`, or only while it is `running`."""

    @property
    def slots_max(self) -> int:
        """The most slots that a run can take."""
        return min(most for most in (self.concurrency, self.per_worker, SLOTS_MAX) if most is not None)


class QueueRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of a queue that all workers of a store share, as its cell has it."""

    declared: QueueLimits = QueueLimits()
    declared_at: int = 0
    """When the code that declares it was started: the newest wins."""
    changed: dict[str, Any] = {}
    """The limits that were set at run time, by name."""
    paused: Pause | None = None
    turn: float = msgspec.field(default=0.0, name="virtual")
    """The turn that was served last."""
    first: tuple[str, float] | None = None
    """The key, and the turn, of a line that is served first: its turn had come, and its first run takes more slots than
    were free."""
    spent: LimitState = LimitState()
    """The state of the rate limit."""

    @property
    def limits(self) -> QueueLimits:
        """The limits that apply: the limits in the code, with the changes made at run time."""
        if not self.changed:
            return self.declared
        fields = {name: getattr(self.declared, name) for name in QueueLimits.__struct_fields__}
        return msgspec.convert(fields | self.changed, QueueLimits, from_attributes=True)

    @property
    def is_open(self) -> bool:
        """Whether every run in it may begin at once."""
        limits = self.limits
        has_limit = any(limit is not None for limit in (limits.concurrency, limits.per_worker, limits.per_key))
        return self.paused is None and not has_limit and not limits.rate

    def declaring(self, limits: QueueLimits, *, at: int) -> QueueRecord:
        """The record with limits declared by code that was started at this instant; older code changes nothing."""
        if at <= self.declared_at or limits == self.declared:
            return self
        return msgspec.structs.replace(self, declared=limits, declared_at=at)

    def _rate(self, name: str) -> RateLimit | None:
        tiers = self.limits.rate
        return RateLimit(name, *(tier.tier for tier in tiers)) if tiers else None

    def room_in_rate(self, name: str, count: int, now_at: int) -> int:
        """How many of `count` runs may begin now."""
        if (limit := self._rate(name)) is None:
            return count
        fits, most = 0, min(count, *(tier.capacity for tier in limit.tiers))
        while fits < most:
            half = (fits + most + 1) // 2
            fits, most = (half, most) if limit_fits_at(limit, self.spent, half, now_at) <= now_at else (fits, half - 1)
        return fits

    def next_in_rate(self, name: str, now_at: int) -> int | None:
        """When the next run may begin; None if no rate stands in its way."""
        limit = self._rate(name)
        return None if limit is None else limit_fits_at(limit, self.spent, 1, now_at)

    def charged(self, name: str, count: int, now_at: int) -> QueueRecord:
        """The record after `count` runs have begun."""
        if not count or (limit := self._rate(name)) is None:
            return self
        return msgspec.structs.replace(self, spent=charge_limit(limit, self.spent, count, now_at))


class QueuePlace(msgspec.Struct, frozen=True):
    """Where a new run is placed: when it is to begin, in which queue, under which key and how far in front, how many
    slots it takes there, and when a worker must have begun it."""

    start_at: int = 0
    queue: str = ""
    queue_key: str = ""
    lead: int = 0
    frees_slot: bool = False
    begin_by: int = 0
    slots: int = 1


NOWHERE = QueuePlace()


_decode = msgspec.json.Decoder(QueueRecord).decode


def queue_cell(name: str) -> str:
    """The name of the cell of a queue."""
    return f"{QUEUE_CELLS}{name}"


def queue_in(data: bytes | None) -> QueueRecord:
    """The record of a queue in its cell; a cell that cannot be read limits nothing."""
    try:
        return _decode(data) if data else QueueRecord()
    except msgspec.MsgspecError:
        return QueueRecord()


def queue_data(record: QueueRecord) -> bytes:
    """The content of the cell for this record."""
    return msgspec.json.encode(record)


@dataclass(frozen=True, slots=True)
class Queue:
    """A line in which runs wait for their turn, and how many of them may be under way at once.

    Args:
        name: workers, people and the store know the queue by it.
        concurrency: how many slots it has, in all workers together. A run under way takes one, or the number that its
            start has given with `slots=`.
        per_worker: how many slots one worker has.
        per_key: how many runs with the same `key` may be under way at once.
        rate: how often runs may begin: a `TokenBucket`, a `FixedWindow`, a `SlidingWindow`, or several of them.
        priorities: whether starts may have a `priority`. The higher one goes first among runs of one key.
        ageing: seconds of waiting that count as much as one level of priority, so that every run has its turn.
        weights: how many turns a key has when others have one; 1 unless given.
        hold: until when a run keeps its slot: to its `end`, or only while it is `running`, so that one that sleeps or
            waits for a signal lets another one go.
    """

    name: str
    concurrency: int | None = None
    per_worker: int | None = None
    per_key: int | None = None
    rate: Tier | Sequence[Tier] | None = None
    priorities: bool = False
    ageing: given.Span = AGEING_SECONDS
    weights: Mapping[str, float] | None = None
    hold: Hold = "end"
    _limits: QueueLimits = field(init=False, repr=False, compare=False)
    """The limits in the form in which the cell of the queue has them."""

    def __post_init__(self) -> None:
        name = queue_name("Queue", "name", self.name)
        wanted = {limit: getattr(self, limit) for limit in QueueLimits.__struct_fields__}
        checked = checked_limits(f"Queue({name!r})", wanted)
        kept = checked | {"rate": self.rate, "weights": dict(self.weights or {})}
        given.keep(self, name=name, _limits=QueueLimits(**checked), **kept)

    def __hash__(self) -> int:
        return hash(self.name)


def queue_name(where: str, what: str, name: object) -> str:
    """A name that a queue can have.

    Raises:
        InvalidArgumentError: it cannot.
    """
    text = given.text(where, what, name, like="emails")
    if text == DEFAULT or "," in text or len(text) > KEY_LENGTH_MAX:
        wanted = (
            f"give a name of at most {KEY_LENGTH_MAX} characters without commas; 'default' stands for the runs without "
            "a queue"
        )
        raise InvalidArgumentError(where, what, name, wanted)
    return text


def checked_limits(where: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Limits as a cell holds them, from what a person gave.

    Raises:
        InvalidArgumentError: one of them cannot be.
        ArgumentTypeError: one of them is of another type.
    """
    checked: dict[str, Any] = {}
    for name, value in limits.items():
        if name in ("concurrency", "per_worker", "per_key"):
            checked[name] = None if value is None else given.whole(where, name, value, most=SLOTS_MAX)
        elif name == "rate":
            checked[name] = _tiers(where, value)
        elif name == "priorities":
            checked[name] = given.flag(where, name, value)
        elif name == "ageing":
            checked[name] = timedelta(seconds=given.seconds(where, name, value))
        elif name == "weights":
            checked[name] = _weights(where, value)
        elif name == "hold":
            checked[name] = given.one_of(where, name, value, ("end", "running"))
        else:
            raise InvalidArgumentError(where, name, value, f"a queue has {', '.join(QueueLimits.__struct_fields__)}")
    return checked


def _weights(where: str, weights: object) -> dict[str, float]:
    if weights is not None and not isinstance(weights, Mapping):
        wanted = "give a number of turns by key, for example weights={'customer-7': 3}"
        raise ArgumentTypeError(where, "weights", weights, wanted)
    if len(weights or {}) > WEIGHTS_MAX:
        raise InvalidArgumentError(where, "weights", weights, f"give those of at most {WEIGHTS_MAX:,} keys")
    return {
        queue_key(where, key): given.number(
            where, f"weights[{key!r}]", weight, least=WEIGHT_MIN, most=WEIGHT_MAX, what="turns", like=2
        )
        for key, weight in (weights or {}).items()
    }


def _tiers(where: str, rate: object) -> tuple[RateTier, ...]:
    tiers = () if rate is None else (rate,) if not isinstance(rate, (list, tuple)) else tuple(rate)
    made = []
    for tier in tiers:
        if not isinstance(tier, Tier):
            wanted = (
                "give a TokenBucket, a FixedWindow or a SlidingWindow, or several of them, for example TokenBucket(10)"
            )
            raise ArgumentTypeError(where, "rate", tier, wanted)
        made.append(RateTier.of(tier))
    if len(made) > TIERS_MAX or len({tier.tier.label for tier in made}) < len(made):
        raise InvalidArgumentError(where, "rate", rate, f"give at most {TIERS_MAX} limits, each of them once")
    return tuple(made)


def queue_key(where: str, key: object) -> str:
    """A key that a run can have in its queue.

    Raises:
        InvalidArgumentError: it cannot.
    """
    text = given.text(where, "key", key, like="customer-7")
    if len(text) > KEY_LENGTH_MAX:
        raise InvalidArgumentError(where, "key", key, f"give one of at most {KEY_LENGTH_MAX} characters")
    return text


def lead_of(where: str, name: str, limits: QueueLimits, priority: Any) -> int:
    """By how many microseconds a priority brings a run of this queue forward.

    Raises:
        InvalidArgumentError: the queue has no priorities, or not this one.
        ArgumentTypeError: it is not a whole number.
    """
    if priority is None:
        return 0
    level = given.whole(where, "priority", priority, least=-PRIORITY_MAX, most=PRIORITY_MAX)
    if not limits.priorities:
        wanted = f"queue {name} has no priorities: declare it with them, or leave the priority out"
        raise InvalidArgumentError(where, "priority", priority, wanted)
    return level * limits.ageing // timedelta(microseconds=1)


def check_queue(where: str, queue: object) -> Queue | str | None:
    """A queue as it was given: itself, or its name; empty for no queue.

    Raises:
        ArgumentTypeError: it is neither.
        InvalidArgumentError: no queue can have this name.
    """
    if queue is None or isinstance(queue, Queue):
        return queue
    if not isinstance(queue, str):
        wanted = "give an outlive.Queue, or the name of one, for example 'emails'"
        raise ArgumentTypeError(where, "queue", queue, wanted)
    return "" if queue == DEFAULT else queue_name(where, "queue", queue)


def queue_names(where: str, queues: Sequence[Queue | str]) -> tuple[str, ...]:
    """The queues that a worker takes from, as the store names them.

    Raises:
        ArgumentTypeError: this is not a list of queues.
        InvalidArgumentError: it is empty, or no queue can have one of the names.
    """
    given.several(where, "queues", queues, like='["emails", "default"]')
    checked = [check_queue(where, queue) for queue in queues]
    names = tuple(dict.fromkeys(queue.name if isinstance(queue, Queue) else queue or "" for queue in checked))
    if not names:
        raise InvalidArgumentError(where, "queues", queues, "name at least one, or leave it out to take from all")
    return names
