"""The verbs that only read. Each answers from one snapshot of the file, and most of them with one row of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import apsw

from outlive._journal.codec import Row
from outlive._model import Run, RunFilter
from outlive._store.contract import Inbound, ItemResult
from outlive._store.sqlite.connection import Session
from outlive._store.sqlite.query import Value
from outlive._store.sqlite.rows import (
    decode_events,
    decode_items,
    decode_mail,
    decode_numbers,
    decode_page,
    decode_pages,
    decode_runs,
)
from outlive._store.tables.rows import to_json, to_json_or_null

READ_ROWS_MAX = 20_000
"""Events that are read at once."""
NO_LIMIT = 2**62


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


Cursor = tuple[int, str] | None
"""Where a page of runs begins."""


def list_runs(session: Session, argument: tuple[RunFilter, int, Cursor]) -> list[Run]:
    """Runs that pass a filter: the newest keys by the index that fits best, then their rows."""
    wanted, limit, before = argument
    with session.snapshot():
        newest = sorted(_find_newest(session, wanted, limit, before), reverse=True)[:limit]
        keys = [key for _, _, key in newest]
        runs = dict(decode_runs(session.fetch_json("get_runs", to_json(keys), "[]")))
    return [runs[key] for key in keys]


def _find_newest(session: Session, wanted: RunFilter, limit: int, before: Cursor) -> list[tuple[int, str, int]]:
    values: dict[str, Value] = {
        "before": None if before is None else before[0],
        "before_id": None if before is None else before[1],
        "limit": limit,
        "statuses": to_json_or_null([status.value for status in wanted.statuses]),
        "workflow": wanted.workflow,
        "root_id": wanted.root_id,
        "parent_id": wanted.parent_id,
        "owner": wanted.owner,
        "roots_only": int(wanted.roots_only),
        "tags": to_json_or_null(wanted.tags),
    }
    if wanted.root_id is not None:
        return decode_page(session.fetch_text("list_runs_of_root", values))
    if wanted.parent_id is not None:
        return decode_page(session.fetch_text("list_runs_of_parent", values))
    if wanted.owner:
        return decode_page(session.fetch_text("list_runs_of_owner", values))
    if wanted.tags:
        values["tag_name"], values["tag_value"] = next(iter(wanted.tags.items()))
        return decode_page(session.fetch_text("list_runs_with_tag", values))
    return list(chain.from_iterable(decode_pages(session.fetch_text("list_runs", values))))


# -- What hangs on runs --------------------------------------------------------------------------------------


def read_inbox(session: Session, journals: Sequence[int]) -> dict[int, list[Inbound]]:
    """Waiting messages by journal."""
    return decode_mail(session.fetch_json("read_inbox", to_json(journals)))


def find_mail(session: Session, worker_id: str) -> list[int]:
    """Trees of this worker with mail."""
    return decode_numbers(session.fetch_json("find_mail", worker_id))


def get_blobs(session: Session, ids: Sequence[str]) -> dict[str, bytes]:
    """Blobs by id."""
    return dict(session.execute("get_blobs", to_json(ids)))


def read_items(session: Session, argument: tuple[str, int, int]) -> list[ItemResult]:
    """Item results of a run after an index."""
    return decode_items(session.fetch_json("read_items", *argument))
