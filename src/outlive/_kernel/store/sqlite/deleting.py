"""Trees and blobs that are needed no longer. The contract of each verb is in `outlive._kernel.store.deleting`.

Deleted rows leave free pages, which later rows fill. A file that was made with incremental vacuum gives back
superfluous pages, a few at a time: each page that is given back from the end of the file may mean that another one
moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from outlive._kernel.model.payload import Blob
from outlive._kernel.store.audit import Action
from outlive._kernel.store.deleting import BLOB_REFRESH, References
from outlive._kernel.store.sqlite.audit import put_audit
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import each
from outlive._kernel.store.tables.references import FIRST, ids_in, place_of, references_of
from outlive._kernel.store.tables.rows import to_json

INCREMENTAL = 2
"""`PRAGMA auto_vacuum` of a file that can give pages back."""
PAGES_AT_ONCE = 64
"""The number of pages in give_back.sql."""
FREE_PAGES_MIN = 512
FREE_SHARE = 0.1
"""Free pages that stay for the rows to come: so many, and this share of the file."""

TABLES = {name: first for name, first in FIRST.items() if name != "requests"}

_DELETED = (
    "delete_tree_tags",
    "delete_chunks",
    "delete_streams",
    "delete_items",
    "delete_tree_messages",
    "delete_message_keys",
    "delete_events",
    "delete_children",
    "delete_runs",
)


def put_blob(session: Session, blob: Blob) -> None:
    """Store a blob, if it is not there, and remember that it was put."""
    session.execute("put_blob", blob.id, blob.data)
    session.execute("remember_blob", blob.id, session.clock(), BLOB_REFRESH)


def _delete_trees(session: Session, argument: tuple[Sequence[int], int, Mapping[int, Action]]) -> list[int]:
    journals, ended_before, audit = argument
    rows: list[Any] = session.execute("find_deletable", to_json(list(journals)), ended_before).fetchall()
    if not rows:
        return []
    keys = to_json([key for key, _ in rows])
    if session.fetch("has_blobs") == (1,):
        _keep_blobs(session, ids_in(text for (text,) in _fetch(session, "references_of_trees", keys)))
    session.execute("delete_watches", to_json([run_id for _, run_id in rows]))
    for statement in _DELETED:
        session.execute(statement, keys)
    if audit:
        put_audit(session, [audit[key] for key, _ in rows if key in audit])
    return [key for key, _ in rows]


def _fetch(session: Session, name: str, *values: Any) -> list[Any]:
    return session.execute(name, *values).fetchall()


def _keep_blobs(session: Session, ids: Collection[str]) -> None:
    if ids:
        session.execute("keep_blobs", to_json(sorted(ids)), session.clock(), BLOB_REFRESH)


def _delete_blobs(session: Session, argument: tuple[int, int]) -> int:
    ids = [id for (id,) in session.execute("find_unused_blobs", *argument)]
    session.execute("delete_blobs", to_json(ids))
    session.execute("forget_blob_uses", to_json(ids))
    return len(ids)


def _give_back(session: Session, _: None) -> bool:
    connection = session.connection
    if connection.pragma("auto_vacuum") != INCREMENTAL:
        return False
    free, pages = int(connection.pragma("freelist_count")), int(connection.pragma("page_count"))
    spare = free - max(FREE_PAGES_MIN, int(pages * FREE_SHARE))
    if spare <= 0:
        return False
    session.execute("give_back").fetchall()
    return spare > PAGES_AT_ONCE


def find_references(session: Session, argument: tuple[str, int]) -> References:
    """The blobs that the next rows refer to."""
    after, limit = argument
    place = place_of(after, TABLES)
    rows = _fetch(session, f"references_in_{place.table}", *place.row, limit)
    return references_of(place, rows, TABLES, limit=limit)


DELETE_TREES = each(_delete_trees)
KEEP_BLOBS = each(_keep_blobs)
DELETE_BLOBS = each(_delete_blobs)
GIVE_BACK = each(_give_back)
