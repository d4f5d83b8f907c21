"""Limits are tried in memory, on a file and on a server, by a clock that skips."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outlive._kernel.define.registry import Registry
from outlive.testing.fsck import check_store
from tests.engine.fixtures import nobody_left
from tests.engine.inside import store_of
from tests.engine.support import stage
from tests.limits.world import World

__all__ = ["no_triggers", "nobody_left", "world"]


@pytest.fixture(autouse=True)
def no_triggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests count and break the changes of cells; the triggers of other test modules, which an engine writes into
    one when it starts, are not theirs."""
    monkeypatch.setattr(Registry, "triggers", lambda self: [])


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path, nobody_left: None) -> AsyncIterator[World]:
    """Where the engines of a test live; whole when the test has ended."""
    urls = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 'limits.db'}"}
    url = urls[request.param] if request.param in urls else request.getfixturevalue("postgres_url")
    world = World(url)
    stage.values["world"] = world
    yield world
    store = store_of(world.engine())
    await store.open()
    problems = await check_store(store)
    await store.close()
    assert [] == problems
