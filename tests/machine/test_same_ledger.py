"""The same order process as a function, a machine and a flow: the same ledger, wherever the process dies."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from outlive._kernel.model import RunStatus
from outlive.testing import crash_everywhere
from outlive.testing.crash import Survivor
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.support import Place
from tests.machine import killed_orders
from tests.machine.deaths import kill_everywhere, read_ends
from tests.machine.killing import Ledger


@pytest.mark.parametrize("form", killed_orders.FORMS)
@pytest.mark.parametrize("points", [2, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
@pytest.mark.parametrize("refusal", killed_orders.REFUSALS)
async def test_every_death_leaves_the_same_ledger(
    form: str, refusal: str, points: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complete, or empty. [CA-X8]"""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("LEDGER", str(path))
    ledgers: list[list[str]] = []

    def check(survivor: Survivor) -> None:
        ledgers.append(sorted(Ledger(path).held("lamp")))
        path.unlink()  # Each trial has a world of its own.

    order = killed_orders.Order("lamp", refusal)
    report = await crash_everywhere(killed_orders.FORMS[form], order, check=check, max_points=points)

    assert len(ledgers) > report.points
    assert all(held == ([] if refusal else killed_orders.WHOLE) for held in ledgers)
    assert bool(report.error) is bool(refusal)


async def check_orders(place: Place, path: Path, trials: Collection[str]) -> None:
    """Whatever was killed: in every form it holds the same, all or nothing, and ended the same."""
    ends, ledger = await read_ends(place), Ledger(path)
    for trial in trials:
        for refusal in killed_orders.REFUSALS:
            names = [f"{trial}-{form}-{refusal}" for form in killed_orders.FORMS]
            held = [sorted(ledger.held(name)) for name in names]
            assert held == len(names) * [[] if refusal else killed_orders.WHOLE], names
            assert {ends[name] for name in names} == {RunStatus.FAILED if refusal else RunStatus.SUCCEEDED}


@pytest.mark.timeout(120)  # Some ten seconds where no other process is busy: thirty processes.
@pytest.mark.parametrize("moment", ["AFTER", pytest.param("BEFORE", marks=pytest.mark.slow)])
async def test_every_kill_leaves_the_same_ledger(meeting_place: Place, tmp_path: Path, moment: str) -> None:
    """Function, machine and flow leave the same ledger side by side after a SIGKILL at every commit.
    [CA-X8 CA-X10 SF-X1 SF-X2]"""
    path = tmp_path / "ledger.db"
    trials = kill_everywhere("killed_orders", meeting_place, path, moment, "grouped", seconds_max=110)

    assert len(trials) >= 6
    await check_orders(meeting_place, path, trials)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_a_kill_between_all_changes_leaves_the_same_ledger(
    meeting_place: Place, tmp_path: Path, moment: str
) -> None:
    """One change at a time: no run can hide behind the commit of another one. [CA-X8 CA-X10]"""
    path = tmp_path / "ledger.db"
    trials = kill_everywhere("killed_orders", meeting_place, path, moment, "singly", seconds_max=600)

    assert len(trials) >= len(killed_orders.REFUSALS) * 4, "each of ten runs has some changes of its own"
    await check_orders(meeting_place, path, trials)
