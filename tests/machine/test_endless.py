"""A machine that goes round for a hundred thousand transitions takes no more room than after the first few thousand."""

from __future__ import annotations

import enum
from pathlib import Path

import apsw
import pytest

import outlive
from outlive.testing.fsck import check_store
from tests.engine.inside import journal_of, store_of
from tests.machine.test_snapshots import Data

TRANSITIONS = 100_000
EARLY = 20_000
"""When the first snapshots have been taken, and the room that they free has been used again."""


class S(enum.Enum):
    """Round and round."""

    TURN = "turn"
    DONE = "done"


endless = outlive.Machine("endless.wheel", S, data=Data, start=S.TURN, exits=[S.DONE])


@endless.state(S.TURN)
async def turn(data: Data) -> S:
    """One of very many."""
    data.turns += 1
    return S.DONE if data.turns >= data.until else S.TURN


async def go(url: str, transitions: int) -> int:
    """So many transitions, in a run of their own; how many events it leaves."""
    async with outlive.Engine(url) as engine:
        run = await engine.start(endless, Data(until=transitions), id=f"endless-{transitions}")
        assert (await run.result()).data.turns == transitions
        assert await check_store(store_of(engine)) == []
        return len(await journal_of(run))


@pytest.mark.slow
async def test_a_file_stays_as_small_as_it_was(tmp_path: Path) -> None:
    """One file with few transitions, and one with many."""
    sizes = {}
    for transitions in (EARLY, TRANSITIONS):
        path = tmp_path / f"{transitions}.db"
        assert await go(f"sqlite:{path}", transitions) <= 5_002
        apsw.Connection(str(path)).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sizes[transitions] = path.stat().st_size

    assert sizes[TRANSITIONS] <= sizes[EARLY] * 1.1


@pytest.mark.slow
async def test_a_server_keeps_no_more_rows(postgres_url: str) -> None:
    """Whatever the vacuum has not cleared away yet."""
    assert await go(postgres_url, TRANSITIONS) <= 5_002
