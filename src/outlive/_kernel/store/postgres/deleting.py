"""Trees and blobs that are needed no longer. The contract of each verb is in `_kernel.store.deleting`; whether a
tree may go is judged in functions/delete_trees.sql."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from outlive._kernel.store.audit import Action
from outlive._kernel.store.deleting import References
from outlive._kernel.store.postgres.audit import append_audit
from outlive._kernel.store.postgres.commit import Writing, retry_deadlocks
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.tables.references import FIRST, place_of, references_of

TABLES = FIRST | {"streams": (-1, -1), "events": (-1, -1)}


async def delete_trees(
    session: Session, journals: Sequence[int], ended_before: int, audit: Mapping[int, Action], writing: Writing
) -> list[int]:
    """Delete what may go."""

    async def delete() -> list[int]:
        ((gone,),) = await session.fetch("delete_trees", writing.time(), list(journals), ended_before)
        return list(gone)

    async def delete_and_say_so() -> list[int]:
        async with session.transaction():
            gone = await delete()
            if actions := [audit[journal] for journal in gone if journal in audit]:
                await append_audit(session, actions, writing.time())
        return gone

    return await retry_deadlocks(delete_and_say_so if audit else delete)


async def find_references(session: Session, after: str, limit: int) -> References:
    """The blobs that the next rows refer to."""
    place = place_of(after, TABLES)
    rows = await session.fetch(f"references_in_{place.table}", *place.row, limit)
    return references_of(place, [(*row[:-1], _as_bytes(row[-1])) for row in map(tuple, rows)], TABLES, limit=limit)


def _as_bytes(text: Any) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


async def keep_blobs(session: Session, ids: Collection[str], writing: Writing) -> None:
    """Remember that these blobs are in use."""
    await retry_deadlocks(lambda: session.fetch("remember_blobs", writing.time(), sorted(ids)))


async def delete_blobs(session: Session, kept_before: int, limit: int) -> int:
    """Delete blobs that were not remembered for long."""
    return len(await retry_deadlocks(lambda: session.fetch("delete_blobs", kept_before, limit)))
