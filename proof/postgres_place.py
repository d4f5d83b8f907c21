"""A schema for a store that is used again and again: to delete its rows is much faster than to make another one.

Most of that time goes into the connection, which the server has to acquaint with all tables. So it stays open.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg

from outlive_conformance.servers.postgres import PostgresServer

EMPTY = Path(__file__).with_name("empty_schema.sql").read_text("utf-8")


class PostgresPlace:
    """The schema, and the connection that empties it."""

    def __init__(self, server: PostgresServer, database: str, *, schema: str) -> None:
        self.database = database
        self.url = server.store_url(database, schema=schema)
        self._server_url = server.url(database)
        self._schema = schema
        self._connection = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def empty(self) -> str:
        """Delete what the store keeps, if it is there, and the tables in `public`; the address of the store."""
        try:
            self._connection.execute(EMPTY)
        except psycopg.OperationalError:  # A test has ended all connections.
            self._connection.close()
            self._connection = self._connect()
            self._connection.execute(EMPTY)
        return self.url

    def _connect(self) -> psycopg.Connection:
        connection = psycopg.connect(self._server_url, autocommit=True)
        connection.execute("SELECT set_config('proof.emptied', %s, false)", [self._schema])
        return connection
