"""A store does not cross a fork."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw


def test_store_used_in_a_forked_child_says_so(path: Path, spawn: Callable[..., Any]) -> None:
    """The child hears what to do and can end; the parent, which was writing meanwhile, loses nothing."""
    *answers, parent = spawn("use_after_fork", path).hear_all()

    assert len(answers) == 4
    for answer in answers:
        assert "open a store of your own in the child" in answer
    assert parent == "0 200"
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    assert connection.execute("SELECT count(*) FROM outlive_runs").fetchall() == [(200,)]
