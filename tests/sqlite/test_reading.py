"""What is read in pages, or row by row where a page is too big, is what was written."""

from __future__ import annotations

import apsw
import pytest

from outlive._store.sqlite import SqliteStore, read
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
