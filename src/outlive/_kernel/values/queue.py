"""Queues as people and programs see them."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from outlive._kernel.model.queue import QueueLimits
from outlive._kernel.values.count import Count
from outlive._kernel.values.run import Status


class Holder(msgspec.Struct, frozen=True):
    """A run that holds a slot of a queue."""

    id: str
    key: str
    status: Status
    worker: str
    """The name of the worker that runs it; empty while it waits."""

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
    """Runs that hold one."""
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
