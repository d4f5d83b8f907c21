"""Every test of the engine runs in memory, on a file and on a server, leaves all whole, and leaves no task behind.

The `conftest.py` of each folder with such tests imports these fixtures.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import outlive
from outlive._kernel.runtime.session import keeper
from outlive.testing.fsck import check_store
from tests.engine.support import Place, stage, until


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Where the runs of a test live; whole when the test has ended, unless it breaks something on purpose."""
    place = Place(tmp_path / "engine.db" if request.param == "sqlite" else None)
    if request.param == "postgres":
        place.server_url = request.getfixturevalue("postgres_url")
    yield place
    if not place.is_damaged:
        store = place.store()
        await store.open()
        problems = await check_store(store)
        await store.close()
        assert [] == problems


@pytest.fixture
async def engine(place: Place) -> AsyncIterator[outlive.Engine]:
    """A running engine."""
    async with place.engine() as engine:
        yield engine


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers renew their leases all the time. With short leases they would too, and lose them when this machine is
    busy for a second."""
    monkeypatch.setattr(keeper, "PAUSE_SECONDS_MAX", 0.02)


@pytest.fixture(autouse=True)
async def nobody_left() -> AsyncIterator[None]:
    """Clear the stage, and see that no task of an engine outlives its test."""
    stage.clear()
    yield
    stage.clear()
    await until(_is_quiet)


async def _is_quiet() -> bool:
    return not [task for task in asyncio.all_tasks() if task.get_name().startswith("outlive-")]
