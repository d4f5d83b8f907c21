"""Forty machines, a failure at every step, a SIGKILL at every commit: what was rolled back is nothing, the rest is all.

`tests.machine.killing` says how the processes die. All of it is slow: `make slow`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outlive._kernel.model import RunStatus
from tests.engine.support import Place
from tests.machine import killed_trips
from tests.machine.deaths import kill_everywhere, read_ends
from tests.machine.killing import Ledger


async def check_trips(meeting_place: Place, ledger: Path, trials: dict[str, Any]) -> None:
    """Every trip of every trial holds all that it booked, or nothing, as it ended."""
    ends = await read_ends(meeting_place)
    book = Ledger(ledger)
    trips = [trip for trial in trials for trip in killed_trips.trips(trial)]
    wanted = {trip.name: [] if trip.failing else killed_trips.WHOLE for trip in trips}
    assert wanted == {trip.name: sorted(book.held(trip.name)) for trip in trips}
    assert ends == {trip.name: RunStatus.FAILED if trip.failing else RunStatus.SUCCEEDED for trip in trips}


@pytest.mark.slow
@pytest.mark.timeout(120)  # Some ten seconds where no other process is busy: fifty processes.
@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_forty_sagas_survive_a_kill_at_every_commit(meeting_place: Place, tmp_path: Path, moment: str) -> None:
    """Forty sagas are whole or rolled back after a kill at every commit, and one more kill of the process that goes on.
    [CA-X4 CA-X8 CA-X10]"""
    ledger = tmp_path / "ledger.db"
    trials = kill_everywhere("killed_trips", meeting_place, ledger, moment, "grouped", seconds_max=110)

    assert len(trials) >= 6
    assert max(map(len, trials.values())) == 3, "those that go on are killed as well"
    await check_trips(meeting_place, ledger, trials)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_forty_sagas_survive_a_kill_between_all_changes(
    meeting_place: Place, tmp_path: Path, moment: str
) -> None:
    """Each change is a commit of its own: a process dies with any number of machines one change further. [CA-X8]"""
    ledger = tmp_path / "ledger.db"
    trials = kill_everywhere("killed_trips", meeting_place, ledger, moment, "singly", seconds_max=1_500)

    assert len(trials) >= 4 * killed_trips.COUNT
    await check_trips(meeting_place, ledger, trials)
