"""What a trial of hundreds of kills meets and a short one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.checkpoints import CheckpointStore
from outlive.errors import StoreUnavailableError
from outlive.testing import TestEngine
from proof.storm import effects
from proof.storm.evidence import Evidence, collect_streams
from proof.storm.steps import need_repair
from proof.storm.trial import Trial
from tests.engine.inside import row_of


@outlive.workflow
async def repaired_while_away() -> str:
    await need_repair(1, 7)
    return "repaired"


async def test_step_of_a_storm_outlives_a_store_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server was killed while a step asked it whether its run was repaired: that is not the failure by plan."""
    monkeypatch.setenv(effects.PLACE, str(tmp_path / "effects.jsonl"))
    load_run, asked = CheckpointStore.load_run, 0

    async def away_at_first(self: CheckpointStore, run_id: str) -> list[Any]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise StoreUnavailableError("the store", "it was killed")
        return await load_run(self, run_id)

    async with TestEngine() as engine:
        await engine.checkpoints.append("repair-7", outlive.checkpoints.Checkpoint(7, "repaired"))
        monkeypatch.setattr(CheckpointStore, "load_run", away_at_first)

        assert await (await engine.start(repaired_while_away)).result() == "repaired"
    assert asked == 2


@outlive.workflow
async def speaking_for_ever() -> None:
    await outlive.emit("words", 1)
    await outlive.wait_for_signal("never")


async def test_stream_of_a_stuck_run_is_not_waited_for(tmp_path: Path) -> None:
    """Such a run is reported, which a trial that waits for the end of its stream never comes to."""
    url = f"sqlite:{tmp_path / 'stuck.db'}"
    evidence = Evidence(Trial(folder=tmp_path, url=url, store="sqlite", seed=1, kills=0, workers=0))
    async with outlive.Engine(url) as engine:
        run = await engine.start(speaking_for_ever, id="endless")
        evidence.runs["endless"] = await row_of(run)
        await collect_streams(evidence, [("endless", "words")])

    assert {} == evidence.streams
