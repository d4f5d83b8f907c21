"""Machines that take snapshots, killed and recovered all along the way: before, in and behind each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outlive.testing import crash_everywhere
from tests.engine.support import stage
from tests.machine.test_snapshots import UNDONE, Data, debt, long, wheel


@pytest.fixture(
    params=["some", pytest.param("many", marks=pytest.mark.slow), pytest.param("file", marks=pytest.mark.slow)]
)
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """At some and at many of the commits in memory, and at some on a file."""
    on_file = {"url": f"sqlite:{tmp_path / 'crash.db'}", "max_points": 3}
    return on_file if request.param == "file" else {"max_points": 3 if request.param == "some" else 30}


async def test_a_machine_of_every_kind_survives_crashes_around_its_snapshots(options: dict[str, Any]) -> None:
    """No completed step runs again, and the end is the same."""
    report = await crash_everywhere(long, Data(), **options)

    assert report.points >= 3
    assert report.result.data.log == ["wrapped", [2, 4, 6, 8]] * 3


async def test_random_numbers_and_signals_are_the_same_behind_a_snapshot(options: dict[str, Any]) -> None:
    """A run that has lived through its journal goes on as a run that begins at the snapshot."""
    answers = [("answer", "one"), ("answer", "two")]
    report = await crash_everywhere(wheel, Data(until=65, asks=30), signals=answers, **options)

    assert [each for each in report.result.data.log if isinstance(each, str)] == [
        *("child 30", "loud", "one"),
        *("child 60", "loud", "two"),
    ]


async def test_a_roll_back_over_snapshots_survives_crashes(options: dict[str, Any]) -> None:
    """Everything is undone, newest first, whatever dies meanwhile."""
    stages: list[list[str]] = []

    def check(survivor: object) -> None:
        undone = [call for call in stage.calls if call.startswith("undo")]
        stages.append(list(dict.fromkeys(undone)))
        stage.calls.clear()

    report = await crash_everywhere(debt, Data(until=6), signals=[("well", False)], check=check, **options)

    assert "not well" in report.error
    assert stages
    assert all(each == UNDONE for each in stages)
