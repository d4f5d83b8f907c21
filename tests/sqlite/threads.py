"""A way into the threads of a store: the connection of each serves no other thread, not even when it seems to rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.thread import Job
from outlive._kernel.store.sqlite.transaction import BEGIN
from outlive._kernel.store.sqlite.writer import Writer, WriteVerb


async def on_writer(store: SqliteStore, do: Callable[[apsw.Connection], Any]) -> Any:
    """What `do` makes of the writer's connection, in the writer's thread, between two transactions."""
    return await in_writer(store, lambda session: do(session.connection))


async def in_writer(store: SqliteStore, do: Callable[[Session], Any]) -> Any:
    """What `do` makes of the writer's session, in the writer's thread, between two transactions."""

    def serve(writer: Writer, job: Job) -> None:
        job.result = do(writer.session)
        writer.settle([job])

    return await store.write(WriteVerb(BEGIN.run, serve=serve), None)


async def in_reader(store: SqliteStore, do: Callable[[Session], Any]) -> Any:
    """What `do` makes of the reader's session, in the reader's thread."""
    return await store.read(lambda session, _: do(session), None)
