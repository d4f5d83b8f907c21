"""What the engines of a trial count is written down, whatever else their counters have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from outlive.telemetry import Counters
from proof.storm.tally import PLACE, Tally, keep_tally, total


async def test_the_counters_of_an_engine_are_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a long trial says that things never came about."""
    place = tmp_path / "tallies.jsonl"
    monkeypatch.setenv(PLACE, str(place))
    counters = Counters()
    counters.conflicts = 3
    telling = asyncio.create_task(keep_tally(counters))
    await asyncio.sleep(0)
    telling.cancel()

    (line,) = place.read_text("utf-8").splitlines()
    assert total([msgspec.json.decode(line, type=Tally)])["conflicts"] == 3
