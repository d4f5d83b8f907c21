"""A worker whose machine has another idea of the time."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive._kernel.runtime.clock import SystemClock
from tests.engine.inside import row_of
from tests.engine.support import in_time

HOUR = 3600 * 1_000_000


@outlive.workflow(name="skewed.sleeper")
async def sleeper() -> str:
    await asyncio.sleep(1.2)  # Longer than a run lingers in memory: the store has to wake it.
    return "awake"


@pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_a_worker_with_a_wrong_clock_wakes_its_runs_in_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, skew: int
) -> None:
    """The server's clock is the only one: instants are stamped by it and judged by it."""
    right = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: right(self) + skew)
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(sleeper)

        assert await in_time(run.result()) == "awake"
        created_at = (await row_of(run)).created_at
    monkeypatch.undo()
    assert abs(created_at - SystemClock().now()) < HOUR / 60
