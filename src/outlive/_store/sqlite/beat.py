"""Renewing a lease: blocking, and on a connection of its own.

So neither a busy event loop nor a long queue stands between a worker and its lease.
"""

from __future__ import annotations

import apsw

from outlive._store.sqlite.claim import expiry
from outlive._store.sqlite.connection import Session, is_connection_lost, translate
from outlive.errors import StoreUnavailableError


class SqliteBeat:
    """Renews the lease of one session."""

    def __init__(self, session: Session, worker_id: str) -> None:
        self._session = session
        self._worker_id = worker_id

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        session = self._session
        try:
            session.execute("renew_worker", self._worker_id, expiry(session.clock(), lease_seconds))
            is_ours = session.connection.changes() == 1
            session.check_file()
        except apsw.Error as error:
            if is_connection_lost(error):
                session.close()
            refusal = translate(error, session.path)
            if not isinstance(refusal, StoreUnavailableError):  # It leaves the lease unproven all the same.
                refusal = StoreUnavailableError(str(session.path), str(refusal))
            raise refusal from error
        return is_ours

    def close(self) -> None:
        """See `Beat`."""
        self._session.close()
