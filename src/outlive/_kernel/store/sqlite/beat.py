"""Renewing a lease: blocking, and on a connection of its own.

So neither a busy event loop nor a long queue stands between a worker and its lease.
"""

from __future__ import annotations

import apsw

from outlive._kernel.store.sqlite.claim import expiry
from outlive._kernel.store.sqlite.connection import Session, is_connection_lost, translate
from outlive._kernel.store.tables.session_rows import forgotten
from outlive.errors import StoreUnavailableError
from outlive.errors.store import StoreWentBackError


class SqliteBeat:
    """Renews the lease of one session."""

    def __init__(self, session: Session, worker_id: str) -> None:
        self._session = session
        self._worker_id = worker_id
        self._renewed = 0
        """Until when the lease was renewed the last time. A store that says less has gone back since."""

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        session = self._session
        try:
            expires_at = expiry(session.clock(), lease_seconds)
            session.execute("renew_worker", self._worker_id, expires_at, self._renewed)
            is_ours = session.connection.changes() == 1
            row = None if is_ours else session.fetch("read_lease", self._worker_id)
            session.check_file()
        except apsw.Error as error:
            if is_connection_lost(error):
                session.close()
            refusal = translate(error, session.path)
            if not isinstance(refusal, StoreUnavailableError):  # It leaves the lease unproven all the same.
                refusal = StoreUnavailableError(str(session.path), str(refusal))
            raise refusal from error
        if is_ours:
            self._renewed = expires_at
            return True
        is_retired, stored = row or (0, None)
        if not is_retired:
            raise StoreWentBackError(str(session.path), forgotten(self._worker_id, stored))
        return False

    def close(self) -> None:
        """See `Beat`."""
        self._session.close()
