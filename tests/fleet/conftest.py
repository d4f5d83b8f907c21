"""Every test of a fleet runs on a file and on a server, and leaves them whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engine.support import Place
from tests.fleet.world import World


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A place for a fleet; nothing was executed twice in it without need, whatever the test did."""
    server_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    place = Place(None if server_url else tmp_path / "fleet.db", server_url)
    async with World(place, tmp_path) as world:
        yield world
        await world.check()
