"""A store that is away for long: its server does not run, or somebody holds the write lock of its file."""

from __future__ import annotations

import apsw

from outlive.testing.postgres import PostgresServer

BUSY_MILLISECONDS = 5_000


class Absence:
    """Takes a store away, and brings it back."""

    def __init__(self, url: str, server: PostgresServer | None) -> None:
        self._url = url
        self._server = server
        self._lock: apsw.Connection | None = None
        self.lasts = False

    def begin(self) -> bool:
        """Take it away; False if that does not work at this moment."""
        if self._server is not None:
            if not self._server.is_running:
                return False
            self._server.kill()
        else:
            lock = database_at(self._url)
            try:
                lock.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                lock.close()
                return False
            self._lock = lock
        self.lasts = True
        return True

    def end(self) -> None:
        """Bring it back."""
        if self._server is not None:
            self._server.start()
        elif self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
        self.lasts = False


def empty_log(url: str) -> None:
    """Empty the log of an SQLite file. It is written over and over; emptied, the next commit needs room for it."""
    database = database_at(url)
    try:
        database.pragma("wal_checkpoint", "TRUNCATE")
    except apsw.Error:
        """Somebody reads or writes for too long; then it needs room when it grows by itself."""
    finally:
        database.close()


def database_at(url: str) -> apsw.Connection:
    """A connection that waits for its turn for a while."""
    database = apsw.Connection(url.partition(":")[2])
    database.set_busy_timeout(BUSY_MILLISECONDS)
    return database
