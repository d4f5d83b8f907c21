"""Machines run where every other workflow runs: in memory, on a file and on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.fixtures import engine, nobody_left, place
from tests.engine.support import Place
from tests.machine.deaths import crash_on_server

__all__ = ["engine", "nobody_left", "place"]


@pytest.fixture(params=["sqlite", "postgres"])
def meeting_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where processes meet."""
    server_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return Place(None if server_url else tmp_path / "program.db", server_url)


@pytest.fixture(params=["memory", "sqlite", "postgres", pytest.param("everywhere", marks=pytest.mark.slow)])
def crash_place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where `crash_everywhere` lets a workflow die: at some places on every store, and everywhere in memory."""
    if request.param == "everywhere":
        return {}
    if request.param == "memory":
        return {"max_points": 6}
    if request.param == "sqlite":
        return {"url": f"sqlite:{tmp_path / 'crash.db'}", "max_points": 2}
    return crash_on_server(request.getfixturevalue("shared_place")) | {"max_points": 2}
