"""The verbs that only read; each answers from one statement, and so from one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from outlive._journal.codec import Row
from outlive._model import Run, RunFilter
from outlive._store.contract import Inbound, ItemResult
from outlive._store.postgres.connection import Session
from outlive._store.postgres.rows import tags_to_json, to_inbound, to_run, to_text
from outlive._store.tables.rows import to_item

NO_LIMIT = 2**62

Cursor = tuple[int, str] | None
"""Where a page of runs begins."""


async def read_journal(session: Session, journal: int, after: int, limit: int | None) -> list[Row]:
    """The rows of a journal after a seq."""
    rows = await session.fetch("read_rows", journal, after, NO_LIMIT if limit is None else limit)
    return [(seq, format_, crc, body) for seq, format_, crc, body in rows]


async def read_journals(session: Session, journals: Sequence[int]) -> dict[int, list[Row]]:
    """Whole journals."""
    found: dict[int, list[Row]] = {}
    for journal, seq, format_, crc, body in await session.fetch("read_journals", sorted(set(journals))):
        found.setdefault(journal, []).append((seq, format_, crc, body))
    return found


async def find_runs(session: Session, run_ids: Sequence[str]) -> dict[str, Run]:
    """Runs by id."""
    runs = [to_run(tuple(row)) for row in await session.fetch("get_runs", list(map(to_text, run_ids)))]
    return {run.id: run for run in runs}


async def list_runs(session: Session, wanted: RunFilter, limit: int, before: Cursor) -> list[Run]:
    """Runs that pass a filter, by the index that fits best."""
    values = [
        None if before is None else before[0],
        None if before is None else to_text(before[1]),
        limit,
        [status.value for status in wanted.statuses] or None,
        *(
            None if name is None else to_text(name)
            for name in (wanted.workflow, wanted.root_id, wanted.parent_id, wanted.owner)
        ),
        wanted.roots_only,
        tags_to_json(wanted.tags),
    ]
    if wanted.root_id is not None:
        name = "list_runs_of_root"
    elif wanted.parent_id is not None:
        name = "list_runs_of_parent"
    elif wanted.owner:
        name = "list_runs_of_owner"
    elif wanted.tags:
        name = "list_runs_with_tag"
        values += map(to_text, next(iter(wanted.tags.items())))
    else:
        name = "list_runs"
    return [to_run(tuple(row)) for row in await session.fetch(name, *values)]


async def read_inbox(session: Session, journals: Sequence[int]) -> dict[int, list[Inbound]]:
    """Waiting messages by journal, oldest first."""
    inboxes: dict[int, list[Inbound]] = {}
    for row in await session.fetch("read_inbox", list(journals)):
        journal, inbound = to_inbound(tuple(row))
        inboxes.setdefault(journal, []).append(inbound)
    return inboxes


async def find_mail(session: Session, worker_id: str) -> list[int]:
    """Trees of this worker with mail."""
    return [journal for (journal,) in await session.fetch("find_mail", worker_id)]


async def get_blobs(session: Session, ids: Sequence[str]) -> dict[str, bytes]:
    """Blobs by id."""
    return {id: data for id, data in await session.fetch("get_blobs", list(map(to_text, ids)))}  # noqa: C416 (rows are no pairs)


async def read_items(session: Session, run_id: str, after: int, limit: int) -> list[ItemResult]:
    """Item results of a run after an index."""
    return [to_item(tuple(row)) for row in await session.fetch("read_items", to_text(run_id), after, limit)]
