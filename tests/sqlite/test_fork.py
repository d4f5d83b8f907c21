"""A store does not cross a fork."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from outlive._kernel.store.sqlite import SqliteStore
from outlive.testing.clock import ManualClock


def test_store_used_in_a_forked_child_says_so(path: Path, spawn: Callable[..., Any]) -> None:
    """The child hears what to do, also of other files, and ends; the parent was writing and loses nothing."""
    *answers, parent = spawn("use_after_fork", path).hear_all()

    assert len(answers) == 6
    for answer in answers:
        assert "open it after the fork only" in answer
    assert parent == "0 200"
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    assert connection.execute("SELECT count(*) FROM outlive_runs").fetchall() == [(200,)]


async def test_store_that_was_closed_may_be_opened_in_a_forked_child(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is nothing of the parent's any more."""
    store = SqliteStore(path, clock=ManualClock())
    await store.open()
    await store.close()

    monkeypatch.setattr("os.getpid", lambda: 4_000_000)

    await store.open()
    assert await store.find_run("run-1") is None
    await store.close()
