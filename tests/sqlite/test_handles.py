"""Handles of journals in a file that goes back to an earlier state."""

from __future__ import annotations

from pathlib import Path

from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.backup import copy_file
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin


async def test_handle_that_a_backup_has_forgotten_does_not_come_back(tmp_path: Path) -> None:
    """A process that remembers it must not meet it in another journal."""
    clock = ManualClock()
    handles = []
    for name in ("first.db", "backup.db"):
        if name == "backup.db":
            copy_file(tmp_path / "empty.db", tmp_path / name, said=lambda left, total: None)
        store = SqliteStore(tmp_path / name, clock=clock)
        await store.open()
        if name == "first.db":
            copy_file(tmp_path / name, tmp_path / "empty.db", said=lambda left, total: None)
        clock.advance(seconds=1)
        handles += [(await begin(store, f"{name}-{number}")).journal for number in range(3)]
        await store.close()

    assert len(set(handles)) == 6


async def test_handles_rise_also_when_the_clock_does_not(tmp_path: Path) -> None:
    """They are the order in which runs were created, and none is given out twice."""
    clock = ManualClock()
    store = SqliteStore(tmp_path / "new.db", clock=clock)
    await store.open()

    handles = [(await begin(store, "a")).journal, (await begin(store, "b")).journal]
    await store.close()
    slow = SqliteStore(tmp_path / "new.db", clock=ManualClock(clock.now() - 3_600_000_000))
    await slow.open()
    handles.append((await begin(slow, "c")).journal)
    await slow.close()

    assert handles == sorted(set(handles))
