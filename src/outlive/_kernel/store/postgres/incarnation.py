"""Which incarnation of a store a connection leads to: the server, and its timeline.

A replica that takes over from its primary, and a server that is restored to a point in time, begin a new timeline. What
the one before has acknowledged may be missing there, and other events may stand in its place. A server that is set back
in another way (the snapshot of a disk, a dump) has the same timeline; that is noticed by the beat, which knows until
when its lease was renewed.

The store and its beats share one object: each change is reported once, by the first connection that leads there.
Connections that lead to the incarnation before are not used again: the server that was replaced may still run, and what
is read from one and written to the other fits neither.
"""

from __future__ import annotations

import threading

from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.fault import ERRORS
from outlive.errors.store import StoreWentBackError
from outlive.telemetry import log


class Incarnation:
    """The incarnation of the store that was seen last."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] | None = None
        self._lock = threading.Lock()

    async def look(self, session: Session, *, timeout: float) -> StoreWentBackError | None:
        """An error if the server has changed since the last look over any connection; None if it has not, or does not
        say.

        Servers that do not let their users see this (some that are run by others) are taken for the same.
        """
        try:
            ((system, timeline),) = await session.connection.fetch(session.sql["read_incarnation"], timeout=timeout)
        except ERRORS as error:
            log.debug("the server does not say which incarnation of the store it is: %s", error)
            return None
        session.incarnation = now = system, timeline
        with self._lock:
            before, self._seen = self._seen, now
        if before in (None, now):
            return None
        assert before is not None
        reason = (
            f"another server took over (timeline {timeline} after {before[1]})"
            if system == before[0]
            else f"it is another server (system {system}, and not {before[0]})"
        )
        return StoreWentBackError(str(session.address), reason)

    def is_left(self, session: Session) -> bool:
        """Whether a connection leads to an incarnation that another one has replaced."""
        return session.incarnation not in (None, self._seen)
