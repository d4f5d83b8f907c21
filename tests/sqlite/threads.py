"""A way into the thread that writes: its connection serves no other thread, not even when it seems to rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from outlive._store.sqlite import SqliteStore
from outlive._store.sqlite.thread import Job
from outlive._store.sqlite.transaction import BEGIN
from outlive._store.sqlite.writer import Writer, WriteVerb


async def on_writer(store: SqliteStore, do: Callable[[apsw.Connection], Any]) -> Any:
    """What `do` makes of the writer's connection, in the writer's thread, between two transactions."""

    def serve(writer: Writer, job: Job) -> None:
        job.result = do(writer.session.connection)
        writer.settle([job])

    return await store.write(WriteVerb(BEGIN.run, serve=serve), None)
