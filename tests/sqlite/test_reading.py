"""What is read in pages, or row by row where a page is too big, is what was written. A search holds no read up."""

from __future__ import annotations

import asyncio
import threading

import apsw
import pytest

from outlive._kernel.model import RunFilter
from outlive._kernel.store.sqlite import SqliteStore, read
from outlive._kernel.store.sqlite.connection import Session
from outlive_conformance.suite.builders import begin
from tests.sqlite.threads import in_reader

LENGTHS = (3, 1, 5, 2)


async def journals_of(store: SqliteStore) -> dict[int, list[int]]:
    """The journals of trees with so many events, and the numbers of these."""
    wanted = {}
    for number, length in enumerate(LENGTHS):
        tree = await begin(store, f"run-{number}")
        for _ in range(length - 1):
            await tree.step()
        wanted[tree.journal] = list(range(length))
    return wanted


@pytest.mark.parametrize("is_big", [False, True], ids=["in one piece", "row by row"])
@pytest.mark.parametrize("page", range(1, sum(LENGTHS) + 2))
async def test_journals_are_whole_however_many_events_are_read_at_once(
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    page: int,
    is_big: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    """A page may end in the middle of a journal or between two; and SQLite cannot hold every page in one value."""
    wanted = await journals_of(store)
    monkeypatch.setattr(read, "READ_ROWS_MAX", page)
    if is_big:
        await in_reader(store, lambda session: session.connection.limit(apsw.SQLITE_LIMIT_LENGTH, 300))

    found = await store.read_journals(list(wanted))

    assert {journal: [row[0] for row in rows] for journal, rows in found.items()} == wanted
    for journal, numbers in wanted.items():
        assert [row[0] for row in await store.read_journal(journal)] == numbers


ENDLESS = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n"


async def test_a_search_does_not_hold_up_other_reads(store: SqliteStore) -> None:
    """Runs by id are read while a search goes on, and the next search waits for it. [S51]"""
    await begin(store, "run-1")
    may_end, begun, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    def search(session: Session, argument: object) -> object:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(20)
        return argument

    first = store.search(search, "first")
    await begun.wait()
    second = asyncio.ensure_future(store.list_runs(RunFilter()))
    found = await asyncio.wait_for(store.find_run("run-1"), 20)
    tree = await asyncio.wait_for(store.list_runs(RunFilter(root_id="run-1")), 20)
    were_done = [first.done(), second.done()]
    may_end.set()

    assert (["run-1"], [False, False]) == ([run.id for run in tree], were_done)
    assert ["first", [found]] == [await first, await second]


async def test_a_search_ends_when_its_caller_has_given_up(store: SqliteStore) -> None:
    """The search of another caller is done then, and does not wait until SQLite has looked at everything. [S51]"""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def search(session: Session, argument: object) -> object:
        loop.call_soon_threadsafe(begun.set)
        return session.connection.execute(ENDLESS).fetchall()

    endless = store.search(search, None)
    await begun.wait()
    endless.cancel()

    assert 0 == await asyncio.wait_for(store.count_runs(RunFilter(), limit=1), 20)
