"""Rows that were damaged: they harm only their own run."""

from __future__ import annotations

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive_conformance.suite.builders import begin, claim, hire
from tests.postgres.support import connected


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE place.runs SET waits = '{'",
        "UPDATE place.runs SET status = 'confused'",
        "DELETE FROM place.events",
        "UPDATE place.events SET is_last = true",
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_damaged_runs_do_not_keep_others_from_being_claimed(
    store: PostgresStore, postgres_url: str, limit: int, damage: str
) -> None:
    """A worker claims the sound run behind a damaged one, even if it has room for one run only."""
    await hire(store, "worker-a")
    await begin(store, "damaged")
    async with connected(postgres_url) as connection:
        await connection.execute(damage)
    await begin(store, "sound")

    assert await claim(store, "worker-a", limit=limit) == ["sound"]
