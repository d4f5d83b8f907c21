"""Renewing a lease: blocking, and on a connection of its own.

So neither a busy event loop nor a long queue stands between a worker and its lease.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from outlive._store.sqlite.claim import expiry
from outlive._store.sqlite.connection import Role, Session, is_connection_lost, translate
from outlive._store.sqlite.place import file_of
from outlive.errors import StoreUnavailableError


class SqliteBeat:
    """Renews the lease of one session."""

    def __init__(self, path: Path, worker_id: str, *, clock: Callable[[], int], inode: int) -> None:
        self._session = Session(path, clock=clock, role=Role.BEAT)
        self._worker_id = worker_id
        self._inode = inode

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        self._check_file()
        session = self._session
        try:
            session.execute("renew_worker", self._worker_id, expiry(session.clock(), lease_seconds))
            return session.connection.changes() == 1
        except apsw.Error as error:
            session.roll_back()
            if is_connection_lost(error):
                session.close()
            raise StoreUnavailableError(str(session.path), str(translate(error, session.path))) from error

    def close(self) -> None:
        """See `Beat`."""
        self._session.close()

    def _check_file(self) -> None:
        """Somebody may delete or replace the file; this process would go on writing to one that nobody else sees."""
        try:
            _, inode = file_of(self._session.path)
        except OSError as error:
            raise StoreUnavailableError(str(self._session.path), f"the file is gone: {error.strerror}") from error
        if inode != self._inode:
            raise StoreUnavailableError(str(self._session.path), "the file was replaced while it was in use; restart")
