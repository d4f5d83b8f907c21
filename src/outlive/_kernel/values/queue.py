"""Queues as people and programs see them."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from outlive._kernel.model.limit import Tier, TokenBucket
from outlive._kernel.model.queue import AGEING_SECONDS, WINDOWS, Hold, TierKind
from outlive._kernel.model.queue import QueueLimits as StoredLimits
from outlive._kernel.model.queue import RateTier as StoredTier
from outlive._kernel.values.count import Count
from outlive._kernel.values.run import Status


class Holder(msgspec.Struct, frozen=True):
    """A run that holds a slot of a queue."""

    id: str
    key: str
    status: Status
    worker: str
    """The name of the worker that runs it; empty while it waits."""
    slots: int = 1
    """How many slots it holds."""

    def __repr__(self) -> str:
        return f"<Holder {self.id}: {self.status}{self.worker and f' on {self.worker}'}>"


class WaitingKey(msgspec.Struct, frozen=True):
    """A key of which runs wait for a slot."""

    key: str
    """Empty for the runs without one."""
    in_line: Count
    """Its runs that wait, counted up to 1,000."""
    waiting: timedelta
    """How long the oldest run at the head of its lines has waited."""

    def __repr__(self) -> str:
        return f"<WaitingKey {self.key}: {self.in_line} in line for {self.waiting}>"


class RateTier(msgspec.Struct, frozen=True):
    """How many runs may begin: tokens a second and at once, or runs in a window of time."""

    kind: TierKind
    """`window` for a `FixedWindow`, `sliding` for a `SlidingWindow`."""
    amount: float
    """Tokens a second of a bucket; runs in one window."""
    burst: int | None = None
    """Tokens that a bucket holds; None for a window."""
    span: timedelta | None = None
    """How long a window is; None for a bucket."""

    @property
    def tier(self) -> Tier:
        """The tier itself."""
        if self.span is None:
            return TokenBucket(self.amount, self.burst or 0)
        return WINDOWS[self.kind](int(self.amount), self.span.total_seconds())

    def __repr__(self) -> str:
        return f"<RateTier {self.tier.label}>"


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue; None for no limit."""

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

    def __repr__(self) -> str:
        numbers = {"concurrency": self.concurrency, "per worker": self.per_worker, "per key": self.per_key}
        parts = [f"{number} {name}" for name, number in numbers.items() if number is not None]
        return f"<QueueLimits {', '.join([*parts, *(each.tier.label for each in self.rate)]) or 'none'}>"


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it is now. Counting stops at 10,000."""

    name: str
    limits: QueueLimits
    """The limits that apply: a limit that was set at run time, else the one in the code."""
    changed: tuple[str, ...]
    """The limits that were set at run time."""
    paused: str
    """Why it gives no slots; empty if it does."""
    in_line: Count
    """Runs that wait for a slot."""
    running: Count
    """Runs that hold one, or more."""
    slots: Count
    """Slots that they hold."""
    later: Count
    """Runs that will get in line at an instant of their own."""
    waiting: timedelta | None
    """How long the oldest run at the head of its lines has waited; None if none waits."""
    holders: tuple[Holder, ...]
    """Up to 100 runs that hold slots."""
    keys: tuple[WaitingKey, ...] = ()
    """Up to 20 keys that wait, the longest wait first."""

    def __repr__(self) -> str:
        return f"<QueueState {self.name}: {self.paused or 'open'}, {self.in_line} in line, {self.running} running>"


def limits_of(stored: StoredLimits) -> QueueLimits:
    """The limits in the cell of a queue as users see them."""
    fields = msgspec.structs.asdict(stored)
    return QueueLimits(**fields | {"rate": tuple(map(rate_tier, stored.rate))})


def rate_tier(stored: StoredTier) -> RateTier:
    """A limit on how often runs begin, as users see it."""
    if stored.kind == "bucket":
        return RateTier(stored.kind, stored.amount, burst=int(stored.extent))
    return RateTier(stored.kind, stored.amount, span=timedelta(seconds=stored.extent))
