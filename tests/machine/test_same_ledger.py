"""The same order process as a function and as a machine: the same ledger, wherever the process dies."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import All, RunStatus
from outlive.testing import crash_everywhere
from outlive.testing.crash import Survivor
from tests.engine.support import Place, stage
from tests.machine import killed_orders
from tests.machine.deaths import kill_everywhere, read_ends
from tests.machine.killing import Ledger


@dataclass
class Order:
    """What is ordered, and which step refuses it."""

    item: str = "lamp"
    refused_by: str = ""


# -- The world: entries that are made again are the same entries -------------------------------------------------------


def enter(what: str, order: Order) -> None:
    """One entry in the ledger."""
    if order.refused_by == what:
        raise ValueError(f"{what} refuses {order.item}")
    stage.values.setdefault("ledger", set()).add((what, order.item))


def remove(what: str, order: Order) -> None:
    """Take it out."""
    stage.values.setdefault("ledger", set()).discard((what, order.item))


# -- As a function -----------------------------------------------------------------------------------------------------


def take_back_reserve(order: Order) -> None:
    """Undo."""
    remove("reserve", order)


def take_back_truck(order: Order) -> None:
    """Undo."""
    remove("truck", order)


@outlive.step(undo=take_back_reserve)
async def ledger_reserve(order: Order) -> Order:
    """The first."""
    enter("reserve", order)
    return order


@outlive.step(undo=take_back_truck)
async def ledger_truck(order: Order) -> Order:
    """A branch."""
    enter("truck", order)
    return order


@outlive.step
async def ledger_label(order: Order) -> None:
    """Another branch."""
    if order.refused_by == "label":
        raise ValueError("label refuses")


@outlive.step
async def ledger_charge(order: Order) -> None:
    """The last."""
    enter("charge", order)


@outlive.workflow
async def ledger_function(order: Order) -> str:
    """In order, in a saga."""
    async with outlive.saga():
        await ledger_reserve(order)
        await asyncio.gather(ledger_truck(order), ledger_label(order))
        await asyncio.sleep(60)
        await ledger_charge(order)
    return "done"


# -- As a machine ------------------------------------------------------------------------------------------------------


class S(enum.Enum):
    """The same."""

    RESERVE = "reserve"
    PACK = "pack"
    COOL = "cool"
    CHARGE = "charge"
    DONE = "done"


machine = outlive.Machine("ledger.machine", S, data=Order, start=S.RESERVE, exits=[S.DONE])


@machine.state(S.RESERVE, undo=take_back_reserve)
async def reserve(data: Order) -> S:
    """The first."""
    enter("reserve", data)
    return S.PACK


machine.split(S.PACK, [ledger_truck, ledger_label], join=All(then=S.COOL))
machine.timer(S.COOL, 60, then=S.CHARGE)


@machine.state(S.CHARGE)
async def charge(data: Order) -> S:
    """The last."""
    enter("charge", data)
    return S.DONE


@pytest.mark.parametrize("process", [ledger_function, machine])
@pytest.mark.parametrize("refused_by", ["", "reserve", "truck", "label", "charge"])
async def test_every_death_leaves_the_same_ledger(process: outlive.Workflow[..., Any], refused_by: str) -> None:
    """Complete, or empty. [CA-X8]"""
    ledgers: set[frozenset[Any]] = set()

    def check(survivor: Survivor) -> None:
        ledgers.add(frozenset(stage.values.pop("ledger", ())))

    report = await crash_everywhere(process, Order(refused_by=refused_by), check=check)

    complete = frozenset((what, "lamp") for what in ("reserve", "truck", "charge"))
    assert ledgers == {frozenset() if refused_by else complete}
    assert bool(report.error) is bool(refused_by)


async def check_orders(place: Place, path: Path, trials: Collection[str]) -> None:
    """Whatever was killed: as a function and as a machine it holds the same, all or nothing, and ended the same."""
    ends, ledger = await read_ends(place), Ledger(path)
    for trial in trials:
        for refusal in killed_orders.REFUSALS:
            names = [f"{trial}-{form}-{refusal}" for form in killed_orders.FORMS]
            held = [sorted(ledger.held(name)) for name in names]
            assert held == 2 * [[] if refusal else killed_orders.WHOLE], names
            assert {ends[name] for name in names} == {RunStatus.FAILED if refusal else RunStatus.SUCCEEDED}


@pytest.mark.timeout(120)  # Some ten seconds where nobody else is busy: thirty processes.
@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_every_kill_leaves_the_same_ledger(meeting_place: Place, tmp_path: Path, moment: str) -> None:
    """The same with SIGKILL: both forms side by side, in processes that die at every commit. [CA-X8 CA-X10]"""
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
