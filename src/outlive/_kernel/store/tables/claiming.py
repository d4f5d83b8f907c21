"""Claims: which of the runs that are due one takes, oldest wake-up first and not too many orphans, and what it writes.

Both lists come from the index of claiming, each sorted by wake-up: runs without an owner, and orphans, whose owners are
not live. However many orphans there are, what their own limit leaves of the claim goes to the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from outlive._kernel.journal.claiming import claim_of
from outlive._kernel.journal.codec import Row, salt_of, seal
from outlive._kernel.model import Run
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.queue import QueueRecord, queue_in
from outlive._kernel.store.contract import Change, Claim, Claims, Declared

WakeUp = tuple[int, int]
"""A wake-up and the key of its run."""


SESSION_KEPT_MICROSECONDS = 24 * 3600 * MICROSECONDS
"""For how long an expired session is remembered: its worker may only be asleep, and come back."""


class ClaimRequest(NamedTuple):
    """The request of a worker to claim runs; see `Store.claim_runs`."""

    worker_id: str
    definitions: Sequence[str]
    limit: int
    orphans_max: int
    stale_seconds: float
    declined: Collection[tuple[int, int]]
    queues: Sequence[str] | None = None
    declared: Declared | None = None

    def record_of(self, name: str, data: bytes | None) -> QueueRecord:
        """The record of a queue for this claim, given the content of its cell."""
        record = queue_in(data)
        if self.declared is None or name not in self.declared.limits:
            return record
        return record.declaring(self.declared.limits[name], at=self.declared.at)

    def without(self, claims: Claims) -> ClaimRequest:
        """The request that remains after these claims."""
        orphans = sum(claim.interrupted for claim in claims.claims)
        return self._replace(limit=self.limit - len(claims.claims), orphans_max=self.orphans_max - orphans)

    @property
    def stale_microseconds(self) -> int:
        """For how long an orphan is left alone."""
        return round(self.stale_seconds * MICROSECONDS)


def joined(first: Claims, second: Claims) -> Claims:
    """Two parts of one claim as one."""
    instants = [at for at in (first.next_wake_at, second.next_wake_at) if at is not None]
    return Claims([*first.claims, *second.claims], min(instants, default=None), first.open_queues | second.open_queues)


class Picked(NamedTuple):
    """The runs that a claim takes, in order, and the earliest wake-up that it leaves."""

    free: list[WakeUp]
    orphans: list[WakeUp]
    later_at: int | None
    """The earliest wake-up that is left, as `Claims.next_wake_at` counts it."""

    @property
    def keys(self) -> list[int]:
        """All that is taken, oldest wake-up first."""
        return [key for _, key in sorted([*self.free, *self.orphans])]


def not_declined(wake_ups: list[WakeUp], declined: Collection[tuple[int, int]]) -> list[WakeUp]:
    """The wake-ups that the worker has not declined, each with its key."""
    return [(wake_at, key) for wake_at, key in wake_ups if (key, wake_at) not in declined] if declined else wake_ups


def pick(
    free: list[WakeUp], orphans: list[WakeUp], *, now: int, limit: int, orphans_max: int, skipped: Collection[int] = ()
) -> Picked:
    """Take what is due, without the keys in `skipped`."""
    wake_ups = [(wake_at, key, False) for wake_at, key in free] + [(wake_at, key, True) for wake_at, key in orphans]
    picked = Picked([], [], None)
    left: list[tuple[int, bool]] = []
    for wake_at, key, is_orphan in sorted(wake_ups):
        if key in skipped:
            continue
        taken = picked.orphans if is_orphan else picked.free
        is_full = len(picked.free) + len(picked.orphans) >= limit or (is_orphan and len(taken) >= orphans_max)
        if wake_at > now or is_full:
            left.append((wake_at, is_orphan))
        else:
            taken.append((wake_at, key))
    counted = [wake_at for wake_at, is_orphan in left if not is_orphan or len(picked.orphans) < orphans_max]
    return picked._replace(later_at=min(counted, default=None))


def claim_change(root: Run, tail: Row, *, worker_id: str, now: int) -> tuple[Change, Claim]:
    """The change that makes a tree, whose journal ends with `tail`, this worker's, and what it brings."""
    event, run = claim_of(root, worker_id=worker_id, at=now)
    seq, _, prior, _ = tail
    row = seal(event, salt=salt_of(run.nonce), seq=seq + 1)
    change = Change(journal=root.journal, after=seq, prior=prior, rows=[row], runs=[run])
    return change, Claim(run, seq + 1, prior=prior, crc=row[2], interrupted=event.interrupted)
