"""The contract of a keeper of leases. Not stable: do not implement it outside Outlive before 1.0.

A worker is a session with one lease, and the trees that it owns hang on that lease: keeping 10,000 of them alive costs
one write a beat. Who owns a tree is a fact of its journal (`RunClaimed`), which the store writes by compare-and-swap.
Leases only say who is alive, and therefore who may try: an answer that comes too late or too early costs a moment or a
replay, never a journal.

    none    one process alone: there is nothing to renew, and any earlier process has died
    store   the default: a row with an expiry by the store's clock, and an eye on the processes of this machine
    etcd    a key on an etcd lease says who is alive; the store keeps the sessions and a lease to fall back on

Every sentence of a docstring is checked by `outlive_conformance.suite.leases` on every kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from outlive._kernel.store.contract import Beat, WorkerInfo


class Leases(Protocol):
    """Sessions of workers. Used from one event loop, but for the beats."""

    async def open(self) -> None:
        """Connect. The store is open already.

        Raises:
            StoreUnavailableError: what keeps the leases cannot be reached.
        """

    async def close(self) -> None:
        """Close everything; closing twice is fine."""

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """Begin a session; it is live until `lease_seconds` from now, and longer with every beat."""

    def open_beat(self, worker_id: str) -> Beat:
        """A way to renew the lease of this session from another thread, on a connection of its own.

        Where a lease is for ever there is nothing to renew, and a beat says nothing about the session.
        """

    async def end_session(self, worker_id: str) -> None:
        """End a session: everything that it owns is due for others at once, however much that is. Twice is fine."""

    async def list_workers(self) -> list[WorkerInfo]:
        """All sessions that are live or still own trees, with the number of trees they own."""

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """Sessions of others that the store takes for live, and that have certainly died."""

    def watch(self, ring: Callable[[], None]) -> None:
        """Call `ring`, and no longer the one before, on the event loop, when a session may have died. A hint: the
        caller looks now and then all the same. Kinds that hear nothing never call."""
