"""Renewing a lease in memory."""

from __future__ import annotations

from typing import Protocol


class ExtendLease(Protocol):
    """Extends the lease of a session that knows until when it was `renewed`; None if the session has ended."""

    def __call__(self, worker_id: str, lease_seconds: float, *, renewed: int) -> int | None: ...


class MemoryBeat:
    """Renews the lease of one session."""

    def __init__(self, extend: ExtendLease, worker_id: str) -> None:
        self._extend, self._worker_id, self._renewed = extend, worker_id, 0

    def renew(self, *, lease_seconds: float) -> bool:
        """Extend the lease, unless the session has ended."""
        renewed = self._extend(self._worker_id, lease_seconds, renewed=self._renewed)
        self._renewed = renewed or self._renewed
        return renewed is not None

    def close(self) -> None:
        """There is nothing to close."""
