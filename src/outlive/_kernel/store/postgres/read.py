"""The verbs that only read; what each answers is from one statement, and so from one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run
from outlive._kernel.model.queue import QUEUE_CELLS, QUEUE_CELLS_END
from outlive._kernel.store.contract import NO_LIMIT, Answer, InboxMessage, ItemResult
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.examine import ONE_MOMENT
from outlive._kernel.store.postgres.rows import from_text, to_inbox_message, to_run, to_text
from outlive._kernel.store.tables.rows import to_answer, to_item
from outlive._kernel.store.tables.searching import (
    SIZE_MAX,
    RunSearch,
    SearchIndex,
    covering_source,
    group_search,
    known_groups,
    sources_of,
)


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


async def list_runs(session: Session, search: RunSearch) -> list[Run]:
    """Runs that pass a filter, by the index that fits best."""
    values = _values(search)
    source = await _choose(session, search, values)
    rows = await session.search(source.list_statement(search), values | source.values(to_text))
    return [to_run(tuple(row)) for row in rows]


async def count_runs(session: Session, search: RunSearch) -> int:
    """How many runs pass a filter, up to the limit of the search."""
    values = _values(search)
    if (covering := covering_source(search.filter)) is not None:
        return await _number(session, covering.measure_statement, values | covering.values(to_text))
    source = await _choose(session, search, values)
    return await _number(session, source.count_statement, values | source.values(to_text))


async def count_groups(session: Session, search: RunSearch) -> dict[str, int]:
    """How many runs of each group pass a filter."""
    counts: dict[str, int] = {}
    async with session.transaction(begin=ONE_MOMENT):
        for group in known_groups(search) or await _groups(session, search):
            if (found := await count_runs(session, group_search(search, group))) and len(counts) < search.groups_max:
                counts[group] = found
    return counts


async def _groups(session: Session, search: RunSearch) -> list[str]:
    """The workflows, or the queues, that runs have."""
    if search.by == "queue":
        return ["", *await list_queues(session)]
    return sorted(from_text(name) for (name,) in await session.search("list_workflows", _values(search)))


async def _choose(session: Session, search: RunSearch, values: dict[str, Any]) -> SearchIndex:
    """The shortest of the indexes that find the runs of a search."""
    first, *others = sources_of(search.filter)
    if not others:
        return first
    sizes = {
        source: await _number(session, source.measure_statement, values | source.values(to_text) | {"limit": SIZE_MAX})
        for source in (first, *others)
    }
    return min(sizes, key=lambda source: sizes[source])


async def _number(session: Session, statement: str, values: dict[str, Any]) -> int:
    ((count,),) = await session.search(statement, values)
    assert isinstance(count, int)
    return count


def _values(search: RunSearch) -> dict[str, Any]:
    return search.values(to_text) | {
        "statuses": [status.value for status in search.filter.statuses] or None,
        "ids": list(map(to_text, search.filter.ids)) or None,
        # In JSON, which escapes what PostgreSQL cannot hold. No name has a NUL.
        "waiting_for": None if (name := search.awaited) is None else name.replace("\0", "\1"),
    }


async def list_queues(session: Session) -> list[str]:
    """All queues."""
    return sorted(from_text(name) for (name,) in await session.fetch("list_queues", QUEUE_CELLS, QUEUE_CELLS_END))


async def read_inbox(session: Session, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
    """Waiting messages by journal, oldest first."""
    inboxes: dict[int, list[InboxMessage]] = {}
    for row in await session.fetch("read_inbox", list(journals)):
        journal, inbound = to_inbox_message(tuple(row))
        inboxes.setdefault(journal, []).append(inbound)
    return inboxes


async def find_answers(session: Session, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
    """The answers to messages, by the id of the run and the key."""
    run_ids, keys = [to_text(run_id) for run_id, _ in asks], [to_text(key) for _, key in asks]
    found = [(asks[place - 1], text) for place, text in await session.fetch("find_answers", run_ids, keys)]
    return {ask: None if text is None else to_answer(ask[1], text) for ask, text in found}


async def find_inboxes(session: Session, worker_id: str) -> list[int]:
    """Trees of this worker whose inbox has messages."""
    return [journal for (journal,) in await session.fetch("find_inboxes", worker_id)]


async def get_blobs(session: Session, ids: Sequence[str]) -> dict[str, bytes]:
    """Blobs by id."""
    return {id: data for id, data in await session.fetch("get_blobs", list(map(to_text, ids)))}  # noqa: C416 (rows are not pairs)


async def read_items(session: Session, run_id: str, after: int, limit: int) -> list[ItemResult]:
    """Item results of a run after an index."""
    return [to_item(tuple(row)) for row in await session.fetch("read_items", to_text(run_id), after, limit)]
