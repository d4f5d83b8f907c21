"""Free pages of a file: they go back to the system in small steps, where the file was made for that."""

from __future__ import annotations

from pathlib import Path

import apsw

from outlive._kernel.store.sqlite import SqliteStore
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import blob


async def delete_much(store: SqliteStore, clock: ManualClock) -> None:
    """Leave thousands of free pages behind."""
    await store.put_blobs([blob(bytes([number]) * 2_000_000) for number in range(5)])
    clock.advance(seconds=1)
    assert await store.delete_blobs(kept_before=store.now(), limit=10) == 5


def pages_of(path: Path) -> tuple[int, int]:
    """How many pages there are, and how many of them are free."""
    connection = apsw.Connection(str(path))
    try:
        return int(connection.pragma("page_count")), int(connection.pragma("freelist_count"))
    finally:
        connection.close()


async def test_file_gets_smaller_in_small_steps(tmp_path: Path) -> None:
    """A few pages at a time, until as many are left as the rows to come may need."""
    clock = ManualClock()
    store = SqliteStore(tmp_path / "new.db", clock=clock)
    await store.open()
    await delete_much(store, clock)
    before, free = pages_of(tmp_path / "new.db")
    assert free > 2_000

    steps = 1
    while await store.give_back():
        steps += 1

    after, left = pages_of(tmp_path / "new.db")
    assert after < before - 1_500
    assert 400 < left <= 512
    assert steps > 20
    assert await store.give_back() is False
    await store.close()
    assert (tmp_path / "new.db").stat().st_size == after * 4096


async def test_file_of_an_earlier_release_is_left_as_it_is(tmp_path: Path) -> None:
    """It was made without; its free pages are used again."""
    path = tmp_path / "old.db"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 0; CREATE TABLE t (x); DROP TABLE t")
    connection.close()
    clock = ManualClock()
    store = SqliteStore(path, clock=clock)
    await store.open()
    await delete_much(store, clock)
    assert await store.give_back() is False
    before, free = pages_of(path)
    await store.put_blobs([blob(b"x" * 2_000_000)])
    after, left = pages_of(path)
    assert after == before
    assert left < free
    await store.close()
