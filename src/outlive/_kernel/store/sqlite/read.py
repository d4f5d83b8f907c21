"""The verbs that only read. Each answers from one snapshot of the file, and most of them with one row of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import apsw
import msgspec

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run
from outlive._kernel.model.queue import QUEUE_CELLS, QUEUE_CELLS_END
from outlive._kernel.store.contract import NO_LIMIT, Answer, InboxMessage, ItemResult
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.query import Value, sql
from outlive._kernel.store.sqlite.rows import (
    AS_IT_IS,
    decode_events,
    decode_items,
    decode_numbers,
    decode_page,
    decode_pages,
    decode_request,
    decode_runs,
)
from outlive._kernel.store.tables.rows import to_answer, to_json, to_json_or_null
from outlive._kernel.store.tables.searching import (
    GROUPS,
    SIZE_MAX,
    RunSearch,
    SearchIndex,
    covering_source,
    group_search,
    known_groups,
    sources_of,
)

READ_ROWS_MAX = 20_000
"""Events that are read at once."""

_decode_names = msgspec.json.Decoder(list[str]).decode


# -- Journals ------------------------------------------------------------------------------------------------


def read_journals(session: Session, journals: Sequence[int]) -> dict[int, list[Row]]:
    """Whole journals."""
    found: dict[int, list[Row]] = {}
    wanted = list(dict.fromkeys(journals))
    while wanted:
        page = _read_page(session, wanted, after=-1, limit=READ_ROWS_MAX)
        found |= page
        if sum(map(len, page.values())) < READ_ROWS_MAX:
            break
        # The page ends somewhere in this journal: read the rest of it, then go on behind it.
        last = next(reversed(page))
        found[last] += read_journal(session, (last, found[last][-1][0], None))
        wanted = wanted[wanted.index(last) + 1 :]
    return found


def read_journal(session: Session, argument: tuple[int, int, int | None]) -> list[Row]:
    """The rows of a journal after a seq."""
    journal, after, limit = argument
    rows: list[Row] = []
    left = NO_LIMIT if limit is None else limit
    while left > 0:
        bite = min(left, READ_ROWS_MAX)
        page = _read_page(session, [journal], after=after, limit=bite).get(journal, [])
        rows += page
        if len(page) < bite:
            break
        after, left = page[-1][0], left - bite
    return rows


def _read_page(session: Session, journals: list[int], *, after: int, limit: int) -> dict[int, list[Row]]:
    try:
        ((numbers, bodies),) = session.execute("read_journals", to_json(journals), after, limit)
    except apsw.TooBigError:
        return _read_page_by_row(session, journals, after=after, limit=limit)
    found: dict[int, list[Row]] = {}
    for journal, row in decode_events(numbers, bodies):
        found.setdefault(journal, []).append(row)
    for rows in found.values():
        rows.sort(key=itemgetter(0))
    return found


def _read_page_by_row(session: Session, journals: list[int], *, after: int, limit: int) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for journal in journals:
        rows: list[Any] = session.execute("read_rows", journal, after, limit).fetchall()
        if rows:
            found[journal] = rows
            limit -= len(rows)
    return found


# -- Runs ----------------------------------------------------------------------------------------------------


def find_runs(session: Session, run_ids: Sequence[str]) -> dict[str, Run]:
    """Runs by id."""
    rows = decode_runs(session.fetch_json("get_runs", "[]", to_json(run_ids)))
    return {run.id: run for _, run in rows}


def list_runs(session: Session, search: RunSearch) -> list[Run]:
    """Runs that pass a filter: the first keys by the index that fits best, then their rows."""
    with session.snapshot():
        found = _find_first(session, search)
        first = sorted(found, reverse=not search.oldest_first)[: search.limit]
        keys = [key for _, _, key in first]
        runs = dict(decode_runs(session.fetch_json("get_runs", to_json(keys), "[]")))
    return [runs[key] for key in keys]


def _find_first(session: Session, search: RunSearch) -> list[tuple[int, str, int]]:
    values = _values(search)
    source = _choose(session, search, values)
    text = session.fetch_text(source.list_statement(search), values | source.values(AS_IT_IS))
    return list(chain.from_iterable(decode_pages(text))) if source.name == GROUPS else decode_page(text)


def count_runs(session: Session, search: RunSearch) -> int:
    """How many runs pass a filter, up to the limit of the search."""
    with session.snapshot():
        return _count(session, search)


def _count(session: Session, search: RunSearch) -> int:
    values = _values(search)
    source = covering_source(search.filter)
    if source is not None:
        return _number(session, source.measure_statement, values | source.values(AS_IT_IS))
    source = _choose(session, search, values)
    return _number(session, source.count_statement, values | source.values(AS_IT_IS))


def count_groups(session: Session, search: RunSearch) -> dict[str, int]:
    """How many runs of each group pass a filter."""
    counts: dict[str, int] = {}
    with session.snapshot():
        for group in known_groups(search) or _groups(session, search):
            if (found := _count(session, group_search(search, group))) and len(counts) < search.groups_max:
                counts[group] = found
    return counts


def _groups(session: Session, search: RunSearch) -> list[str]:
    """The workflows, or the queues, that runs have."""
    if search.by == "queue":
        return ["", *list_queues(session, None)]
    return [name for (name,) in session.connection.execute(sql("list_workflows"), _values(search))]


def _choose(session: Session, search: RunSearch, values: dict[str, Value]) -> SearchIndex:
    """The shortest of the indexes that find the runs of a search."""
    first, *others = sources_of(search.filter)
    if not others:
        return first
    sizes = {
        source: _number(session, source.measure_statement, values | source.values(AS_IT_IS) | {"limit": SIZE_MAX})
        for source in (first, *others)
    }
    return min(sizes, key=lambda source: sizes[source])


def _number(session: Session, statement: str, values: dict[str, Value]) -> int:
    ((count,),) = session.connection.execute(sql(statement), values)
    assert isinstance(count, int)
    return count


def _values(search: RunSearch) -> dict[str, Value]:
    statuses = to_json_or_null([status.value for status in search.filter.statuses])
    return search.values(AS_IT_IS) | {"statuses": statuses, "ids": to_json_or_null(list(search.filter.ids))}


def list_queues(session: Session, _: None) -> list[str]:
    """All queues."""
    return sorted(_decode_names(session.fetch_json("list_queues", QUEUE_CELLS, QUEUE_CELLS_END)))


# -- What hangs on runs --------------------------------------------------------------------------------------


def read_inbox(session: Session, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
    """Waiting messages by journal."""
    return decode_request(session.fetch_json("read_inbox", to_json(journals)))


def find_answers(session: Session, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
    """The answers to messages, by the id of the run and the key."""
    answers: dict[tuple[str, str], Answer | None] = {}
    with session.snapshot():
        for run_id, key in asks:
            if (found := session.fetch("find_answers", run_id, key)) is not None:
                answers[run_id, key] = None if found[0] is None else to_answer(key, found[0])
    return answers


def find_inboxes(session: Session, worker_id: str) -> list[int]:
    """Trees of this worker whose inbox has messages."""
    return decode_numbers(session.fetch_json("find_inboxes", worker_id))


def get_blobs(session: Session, ids: Sequence[str]) -> dict[str, bytes]:
    """Blobs by id."""
    return dict(session.execute("get_blobs", to_json(ids)))


def read_items(session: Session, argument: tuple[str, int, int]) -> list[ItemResult]:
    """Item results of a run after an index."""
    return decode_items(session.fetch_json("read_items", *argument))
