"""Leases: who owns what, and who does not."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class NotOwnerError(OutliveError):
    """A worker lets go of a run that is not its own; nothing was changed."""

    def __init__(self, run_id: str, worker_id: str, owner: str) -> None:
        self.run_id, self.worker_id, self.owner = run_id, worker_id, owner
        whose = f"worker {owner} does" if owner else "nobody does"
        super().__init__(f"worker {worker_id} does not own run {run_id}, {whose}; look at it again before you go on")


class LeaseUrlError(OutliveError, ValueError):
    """A setting for leases that names no kind we have."""

    def __init__(self, lease: object, reason: str) -> None:
        self.lease, self.reason = lease, reason
        super().__init__(f'lease={lease!r}: {reason}; use "store", "none" or "etcd://host:2379,host:2379"')
